"""What only a GPU has: graphs, streams, compiled surroundings, gradients on threads of their own, and sizes of models.

The truth is the recurrence in fp64, on the GPU too, by autograd.
"""

import threading
import unittest

import numpy  # noqa: F401 - the truth's
import torch
import where

import tegula
import tegula.torch as operators
from tegula import _stable, _torch_ops, fla, mlstm

BF16 = 4e-3  # RMS; of gradients twice that, of parameters eight times: CONTRIBUTING.md
KDA = 3 ** 0.5 * BF16  # outputs: two chains of products, nine rounded factors for six (solve_slack, channel_slack: tuning/judge.c)
SLEEP = 100_000_000  # cycles: about 50 ms


def setUpModule():
    if not isinstance(where.DEVICE, int) or not torch.cuda.is_available():
        raise unittest.SkipTest("runs with --device 0, where PyTorch has CUDA")


def recurrence(q, k, v, log_decay, beta=None, S0=None, scale=None):
    """[B, T, H, d]: S = D S, then S += k (v - S^T k)^T beta or, without beta, S += k v^T; -> o, S. log_decay: of a head,
    of a token, or of channels."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    q, k, v, log_decay, beta, S0 = (None if t is None else t.double() for t in (q, k, v, log_decay, beta, S0))
    q, k = (t.repeat_interleave(v.shape[2] // t.shape[2], 2) for t in (q, k))
    decay = log_decay.exp()
    decay = decay if decay.dim() == 4 else decay[..., None]
    S = v.new_zeros(v.shape[0], v.shape[2], q.shape[-1], v.shape[-1]) if S0 is None else S0
    o = []
    for t in range(v.shape[1]):
        S = decay[:, t, :, :, None] * S
        write = v[:, t]
        if beta is not None:
            write = beta[:, t, :, None] * (write - (k[:, t, :, None] @ S)[:, :, 0])
        S = S + k[:, t, :, :, None] * write[:, :, None]
        o.append(scale * (q[:, t, :, None] @ S)[:, :, 0])
    return torch.stack(o, 1), S


def error(found, expected):
    found, expected = found.detach().double(), expected.detach().double()
    return ((found - expected).pow(2).mean() / expected.pow(2).mean()).sqrt().item()


def bf16(*shape):
    return torch.randn(*shape).bfloat16()


def unit(x):
    return torch.nn.functional.normalize(x.float(), dim=-1).to(x.dtype)


def inputs(B=2, T=200, H=4, groups=2, K=128, V=128, channels=False, N=None):
    """Of a delta rule; S0 of N sequences."""
    torch.manual_seed(0)
    gates = (B, T, H, K) if channels else (B, T, H)
    x = {"q": unit(bf16(B, T, H // groups, K)), "k": unit(bf16(B, T, H // groups, K)), "v": bf16(B, T, H, V),
         "g": torch.nn.functional.logsigmoid(torch.randn(*gates) + 4), "beta": torch.rand(B, T, H),
         "S0": torch.randn(N or B, H, K, V)}
    return {name: t.requires_grad_() for name, t in x.items()}


def gated_delta(q, k, v, g, beta, S0, **options):
    return fla.chunk_gated_delta_rule(q, k, v, g, beta, initial_state=S0, output_final_state=True, **options)


def gradients(outputs, weights, x):
    return torch.autograd.grad(sum((o * w).sum() for o, w in zip(outputs, weights)), list(x.values()))


class Case(unittest.TestCase):
    def agrees(self, function, truth, x):
        """Outputs and gradients of both outputs."""
        found, expected = function(**x), truth(**x)
        weights = [torch.randn_like(t) for t in found]
        for one, other in zip(found, expected):
            self.assertLess(error(one, other), BF16)
        for name, one, other in zip(x, gradients(found, weights, x), gradients(expected, weights, x)):
            self.assertLess(error(one, other), 2 * BF16, name)


class Values(Case):
    def test_gated_delta(self):
        self.agrees(gated_delta, lambda q, k, v, g, beta, S0: recurrence(q, k, v, g, beta, S0), inputs())

    def test_kda(self):
        def kda(q, k, v, g, beta, S0):
            return fla.chunk_kda(q, k, v, g, beta, initial_state=S0, output_final_state=True)

        self.agrees(kda, lambda q, k, v, g, beta, S0: recurrence(q, k, v, g, beta, S0),
                    inputs(groups=1, channels=True))

    def test_gla(self):
        x = inputs(groups=1, channels=True, V=256)
        del x["beta"]

        def gla(q, k, v, g, S0):
            return fla.chunk_gla(q, k, v, g, initial_state=S0, output_final_state=True)

        self.agrees(gla, lambda q, k, v, g, S0: recurrence(q, k, v, g, None, S0), x)

    def test_simple_gla(self):
        x = inputs(groups=1)
        del x["beta"]

        def simple_gla(q, k, v, g, S0):
            return fla.chunk_simple_gla(q, k, v, g, initial_state=S0, output_final_state=True)

        self.agrees(simple_gla, lambda q, k, v, g, S0: recurrence(q, k, v, g, None, S0), x)

    def test_packed(self):
        ends = [0, 70, 71, 200, 520]
        x = inputs(B=1, T=520, N=4)

        def truth(q, k, v, g, beta, S0):
            found = [recurrence(*(t[:, b:e] for t in (q, k, v, g, beta)), S0[n : n + 1])
                     for n, (b, e) in enumerate(zip(ends, ends[1:]))]
            return torch.cat([o for o, _ in found], 1), torch.cat([S for _, S in found])

        for dtype in (torch.int32, torch.int64):
            cu = torch.tensor(ends, dtype=dtype)
            self.agrees(lambda **x: gated_delta(**x, cu_seqlens=cu), truth, x)

    def test_slices_of_one_projection(self):
        """Queries, keys and values that lie between each other are read where they are."""
        qkv = torch.randn(2, 100, 3, 4, 128).bfloat16()
        views = dict(zip("qkv", qkv.unbind(2)))
        a = -torch.rand(2, 100, 4)
        self.assertTrue(all(_torch_ops.ready(t) is t for t in views.values()))
        with torch.no_grad():
            h = operators.simple_gla(**views, a=a, layout="bthd").h
            self.assertLess(error(h, recurrence(**views, log_decay=a)[0]), BF16)

    def test_calls_that_are_alike(self):
        """Python is asked once; the stream, the memory and the device are PyTorch's each time."""
        x = {n: t.detach() for n, t in inputs().items()}
        expected = recurrence(*(x[n] for n in ("q", "k", "v", "g", "beta", "S0")))
        counts = []
        for _ in range(3):
            for one, other in zip(gated_delta(**x), expected):
                self.assertLess(error(one, other), BF16)
            counts.append(_stable.library.tg_torch_plans())
        self.assertEqual(counts[1:], counts[:1] * 2)

    def test_boundaries_on_the_host(self):
        x = {n: t.detach() for n, t in inputs(B=1, N=3).items()}
        cu = torch.tensor([0, 7, 7, 200])
        for one, other in zip(gated_delta(**x, cu_seqlens=cu.cpu()), gated_delta(**x, cu_seqlens=cu)):
            self.assertTrue(torch.equal(one, other))

    def test_autocast(self):
        x = {n: t.float() for n, t in inputs().items()}
        with torch.autocast("cuda", torch.bfloat16):
            o, S = gated_delta(**x)
        self.assertEqual((o.dtype, S.dtype), (torch.bfloat16, torch.float32))
        expected, _ = recurrence(*(x[n] for n in ("q", "k", "v", "g", "beta", "S0")))
        self.assertLess(error(o, expected), BF16)

    def test_dlpack(self):
        class Only:
            def __init__(self, tensor):
                self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

        x = {n: t.detach() for n, t in inputs().items()}
        given = {n: Only(x[n].transpose(1, 2)) for n in ("q", "k", "v", "beta")}
        h = torch.empty(2, 200, 4, 128, dtype=torch.bfloat16).transpose(1, 2)
        torch.cuda.synchronize()
        found = tegula.forward("gated-delta", **given, a=Only(x["g"].transpose(1, 2)), S0=Only(x["S0"]), h=Only(h),
                               want=["S"])
        expected, S = recurrence(x["q"], x["k"], x["v"], x["g"], x["beta"], x["S0"])
        self.assertIsInstance(found.S, tegula.DeviceArray)
        self.assertLess(error(torch.as_tensor(found.S), S), BF16)
        self.assertLess(error(h.transpose(1, 2), expected), BF16)


class Compiled(Case):
    def test_inductor(self):
        """Operators between others, in one graph, forward and backward; and again for other lengths."""
        def layer(q, k, v, g, beta, S0):
            o, S = gated_delta(q, k, v, torch.nn.functional.logsigmoid(g), beta.sigmoid(), S0,
                               use_qk_l2norm_in_kernel=True)
            return torch.nn.functional.silu(o.float()) * 2, S

        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True)
        for T in (200, 264, 136):
            x = inputs(T=T)
            found, expected = compiled(**x), layer(**x)
            weights = [torch.randn_like(t) for t in found]
            for one, other in zip(found, expected):
                self.assertLess(error(one, other), 1e-3)
            for name, one, other in zip(x, gradients(found, weights, x), gradients(expected, weights, x)):
                self.assertLess(error(one, other), 2 * BF16, name)

    def test_graphs_of_inductor(self):
        """mode="reduce-overhead" captures what it compiles, also a pool that is changed in place."""
        x = {n: t.detach() for n, t in inputs(T=1).items()}
        pool, index = torch.zeros(6, 4, 128, 128), torch.tensor([4, 2])
        x["v"].fill_(1)

        def step(q, k, v, g, beta):
            return operators.gated_delta(q=q, k=k, v=v, a=g, beta=beta, S=pool, index=index, step=True,
                                         layout="bthd").h * 2

        torch._dynamo.reset()
        compiled = torch.compile(step, fullgraph=True, mode="reduce-overhead")
        given = [x[n] for n in ("q", "k", "v", "g", "beta")]
        S = torch.zeros(2, 4, 128, 128)
        with torch.no_grad():
            for _ in range(5):
                torch.compiler.cudagraph_mark_step_begin()
                o = compiled(*given).clone()
                h, S = recurrence(*given, S0=S)
                self.assertLess(error(o, 2 * h), BF16)
                self.assertLess(error(pool[index], S), BF16)


class Graphs(Case):
    def capture(self, function):
        """Kernels are made before, on a side stream as PyTorch asks."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            function()
            function()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = function()
        return graph, found

    def test_forward_and_backward(self):
        x, other = inputs(), inputs()
        for n in ("v", "g", "S0"):
            with torch.no_grad():
                other[n].mul_(0.5)
        weights = [torch.randn(2, 200, 4, 128), torch.randn(2, 4, 128, 128)]

        def step():
            outputs = gated_delta(**x)
            return (*outputs, *gradients(outputs, weights, x))

        graph, found = self.capture(step)
        for given in (x, other):
            with torch.no_grad():
                for name in x:
                    x[name].copy_(given[name])
            for t in found:
                t.detach().zero_()
            graph.replay()
            torch.cuda.synchronize()
            expected = recurrence(*(x[n] for n in ("q", "k", "v", "g", "beta", "S0")))
            for one, two in zip(found, (*expected, *gradients(expected, weights, x))):
                self.assertLess(error(one, two), 2 * BF16)

    def test_steps_in_a_pool(self):
        """A replay goes on where the last one ended."""
        x = {n: t.detach() for n, t in inputs(T=1, groups=1).items()}
        pool, index, count = torch.zeros(5, 4, 128, 128), torch.tensor([3, 1], dtype=torch.int32), 6

        def step():
            with torch.no_grad():
                return operators.simple_gla(q=x["q"], k=x["k"], v=x["v"], a=x["g"], S=pool, index=index, step=True,
                                            layout="bthd").h

        graph, h = self.capture(step)
        pool.zero_()
        for _ in range(count):
            graph.replay()
        y = {n: x[n].expand(-1, count, *(-1,) * (x[n].dim() - 2)) for n in ("q", "k", "v", "g")}
        o, S = recurrence(y["q"], y["k"], y["v"], y["g"])
        self.assertLess(error(h[:, 0], o[:, -1]), BF16)
        self.assertLess(error(pool[index.long()], S), BF16)
        self.assertFalse(pool[[0, 2, 4]].any())


    def test_call_in_pieces(self):
        """T of the next piece begins beside the walk of this one; so it must in a graph, and wait as it does outside of one."""
        x = {n: t.detach() for n, t in inputs(B=1, T=8192, H=32, groups=1, channels=True).items()}

        def step():
            with torch.no_grad():
                return fla.chunk_kda(x["q"], x["k"], x["v"], x["g"], x["beta"], initial_state=x["S0"],
                                     output_final_state=True)

        graph, found = self.capture(step)
        direct = [t.clone() for t in step()]
        for t in found:
            t.zero_()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            graph.replay()
            torch.cuda.synchronize()
        self.assertGreater(sum(e.name.endswith("_T") for e in profile.events()), 1, "it is not in pieces")
        for one, two, three in zip(found, direct, recurrence(*(x[n] for n in ("q", "k", "v", "g", "beta", "S0")))):
            self.assertTrue(torch.equal(one, two))
            self.assertLess(error(one, three), KDA)


class Streams(Case):
    """What a stream waits for, its kernels wait for: inputs are written behind a long sleep."""

    def late(self, x):
        """A copy of the inputs that is written when the current stream has slept."""
        copies = {n: torch.zeros_like(t) for n, t in x.items()}
        torch.cuda.synchronize()
        torch.cuda._sleep(SLEEP)
        for n, t in x.items():
            copies[n].copy_(t.detach())
        return copies

    def run_late(self, run):
        x = {n: t.detach() for n, t in inputs().items()}
        expected = recurrence(*(x[n] for n in ("q", "k", "v", "g", "beta", "S0")))[0]
        gated_delta(**x)  # makes the kernels
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            late = self.late(x)
        o = run(late, stream)
        stream.synchronize()
        self.assertLess(error(o, expected), BF16)

    def test_the_current_one(self):
        def run(x, stream):
            with torch.cuda.stream(stream):
                return gated_delta(**x)[0]

        self.run_late(run)

    def test_a_named_one(self):
        def run(x, stream):
            return tegula.forward("gated-delta", q=x["q"], k=x["k"], v=x["v"], a=x["g"], beta=x["beta"], S0=x["S0"],
                                  layout="bthd", stream=stream.cuda_stream).h

        self.run_late(run)

    def test_gradients(self):
        x = inputs()
        expected = torch.autograd.grad(gated_delta(**x)[0].sum(), list(x.values()))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            late = {n: t.requires_grad_() for n, t in self.late(x).items()}
            found = torch.autograd.grad(gated_delta(**late)[0].sum(), list(late.values()))
        stream.synchronize()
        for one, other in zip(found, expected):
            self.assertLess(error(one, other), 1e-6)

    def test_threads(self):
        """Each on a stream of its own, with kernels that another may be making."""
        x = {n: t.detach() for n, t in inputs(T=96).items()}
        expected = recurrence(*(x[n] for n in ("q", "k", "v", "g", "beta", "S0")))[0]
        torch.cuda.synchronize()
        errors = []

        def run():
            with torch.cuda.stream(torch.cuda.Stream(where.DEVICE)):
                for _ in range(5):
                    errors.append(error(gated_delta(**x)[0], expected))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(errors), 20)
        self.assertLess(max(errors), BF16)


class Places(Case):
    def test_one_device(self):
        x = {n: t.detach() for n, t in inputs().items()}
        with self.assertRaises(tegula.Error) as caught:
            gated_delta(**{**x, "g": x["g"].cpu()})
        self.assertEqual(caught.exception.field, "a.device")

    def test_mlstm(self):
        """A variant with states of its own, by the peer's signature: two halves are the whole."""
        q, k, v = (bf16(2, 4, 128, 128) for _ in range(3))
        i, f = torch.randn(2, 4, 128), torch.randn(2, 4, 128) + 3
        whole, last = mlstm.mlstm_chunkwise__xl_chunk(q, k, v, i, f, return_last_states=True)
        cut = [[t[:, :, :64] for t in (q, k, v, i, f)], [t[:, :, 64:] for t in (q, k, v, i, f)]]
        one, states = mlstm.mlstm_chunkwise__xl_chunk(*cut[0], return_last_states=True)
        two, end = mlstm.mlstm_chunkwise__xl_chunk(*cut[1], *states, return_last_states=True)
        self.assertLess(error(torch.cat([one, two], 2), whole), BF16)
        for found, expected in zip(end, last):
            self.assertLess(error(found, expected), BF16)
