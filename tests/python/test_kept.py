"""What a forward leaves for its backward: the same gradients, in eager and compiled code, with packed sequences, gone through
twice, checkpointed. Of the delta rule on the emulator of a Hopper."""

import os
import subprocess
import sys
import unittest
from unittest import mock

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

import tegula.torch as operators
import where
from tegula import _torch_keep, fla
from tegula._operator import Keeping
from test_torch import BF16, error, inputs, truth

COMPILE = {"fullgraph": True, "backend": "aot_eager"}


class Names(torch.utils._python_dispatch.TorchDispatchMode):
    """Which operators of ours ran."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen += [str(function).split(".")[1]] if str(function).startswith("tegula.") else []
        return function(*args, **(kwargs or {}))


def simple_gla(x, keep_states=True, **more):
    found = operators.simple_gla(**x, final_state=True, keep_states=keep_states, **more)
    return found.h, found.S


class Kept(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = inputs(T=150, dtype=torch.bfloat16)
        self.weights = [torch.randn(self.x["v"].shape), torch.randn(self.x["S0"].shape)]
        torch._dynamo.reset()

    def loss(self, outputs):
        return sum((o * w).sum() for o, w in zip(outputs, self.weights))

    def gradients(self, function, **options):
        return torch.autograd.grad(self.loss(function(self.x)), list(self.x.values()), **options)

    def agrees(self, function=simple_gla, wanted=None):
        found = self.gradients(function)
        wanted = wanted or self.gradients(lambda x: truth(**x))
        for name, one, other in zip(self.x, found, wanted):
            self.assertLess(error(one, other), BF16, name)
        return found

    def test_gradients(self):
        with Names() as names:
            self.agrees()
        self.assertEqual(names.seen, ["simple_gla_keep", "simple_gla_backward"])

    def test_who_keeps_nothing(self):
        with Names() as names:
            self.agrees(lambda x: simple_gla(x, False))
            with torch.no_grad():
                simple_gla(self.x)
            simple_gla({n: t.detach() for n, t in self.x.items()})
        self.assertEqual(names.seen, ["simple_gla_forward", "simple_gla_backward", *["simple_gla_forward"] * 2])

    def test_one_output_alone(self):
        for i in range(2):
            loss = (simple_gla(self.x)[i] * self.weights[i]).sum()
            given = [self.x[n] for n in ("k", "v", "a", "S0")]
            found = torch.autograd.grad(loss, given)
            wanted = torch.autograd.grad((truth(**self.x)[i] * self.weights[i]).sum(), given)
            for one, other in zip(found, wanted):
                self.assertLess(error(one, other), BF16)

    def test_layout_and_states_v_first(self):
        def turned(x):
            y = {n: x[n].transpose(1, 2) for n in ("q", "k", "v", "a")}
            h, S = simple_gla({**y, "S0": x["S0"].mT.contiguous()}, layout="bthd", state_v_first=True)
            return h.transpose(1, 2), S.mT

        self.agrees(turned)

    def test_packed_sequences_and_groups(self):
        x = inputs(B=1, H=4, T=150, groups=2, dtype=torch.bfloat16)
        x["S0"] = torch.randn(4, 4, 16, 24, requires_grad=True)
        self.x, self.weights = x, [torch.randn(1, 4, 150, 24), torch.randn(4, 4, 16, 24)]
        cu = torch.tensor([0, 5, 5, 9, 150])
        self.agrees(lambda x: simple_gla(x, cu=cu), self.gradients(lambda x: simple_gla(x, False, cu=cu)))

    def test_short_sequences(self):
        """Shorter than a chunk, packed: what is kept has an entry for each of them, and none between."""
        for T, cu in ((9, [0, 4, 9]), (128, [0, 128, 128])):
            self.x = x = inputs(B=1, T=T, dtype=torch.bfloat16)
            x["S0"] = torch.randn(2, 2, 16, 24, requires_grad=True)
            self.weights = [torch.randn(1, 2, T, 24), torch.randn(2, 2, 16, 24)]
            cu = torch.tensor(cu)
            self.agrees(lambda x: simple_gla(x, cu=cu), self.gradients(lambda x: simple_gla(x, False, cu=cu)))

    def test_twice_through_a_graph(self):
        loss, given = self.loss(simple_gla(self.x)), list(self.x.values())
        first = torch.autograd.grad(loss, given, retain_graph=True)
        for one, other in zip(first, torch.autograd.grad(loss, given)):
            self.assertTrue(torch.equal(one, other))
        with self.assertRaises(RuntimeError):
            torch.autograd.grad(loss, given)

    def test_no_second_gradient(self):
        grad = self.gradients(simple_gla, create_graph=True)[2]
        with self.assertRaises(RuntimeError):
            torch.autograd.grad(grad.sum(), self.x["q"])

    def test_checkpoints(self):
        wanted = self.gradients(simple_gla)
        for use_reentrant in (False, True):
            def run(x):
                return checkpoint(lambda *y: simple_gla(dict(zip(x, y))), *x.values(), use_reentrant=use_reentrant)

            for one, other in zip(self.through(run), wanted):
                self.assertTrue(torch.equal(one, other))

    def through(self, function):
        """By .backward(): checkpoints of the older kind take no autograd.grad."""
        for t in self.x.values():
            t.grad = None
        self.loss(function(self.x)).backward()
        return [t.grad for t in self.x.values()]

    def test_compiled(self):
        seen = []

        def look(graph, _):
            seen.extend(str(n.target).split(".")[1] for n in graph.graph.nodes if str(n.target).startswith("tegula."))
            return make_boxed_func(graph.forward)

        self.agrees(torch.compile(simple_gla, fullgraph=True, backend=aot_autograd(fw_compiler=look, bw_compiler=look)))
        self.assertEqual(seen, ["simple_gla_keep", "simple_gla_backward"])

    def test_compiled_for_all_sizes(self):
        """One graph, with what its first sizes choose; PyTorch wants another where there is only one chunk."""
        compiled = torch.compile(simple_gla, dynamic=True, **COMPILE)
        for T in (150, 300, 129, 7):
            self.x = inputs(T=T, dtype=torch.bfloat16)
            self.weights = [torch.randn(self.x["v"].shape), torch.randn(self.x["S0"].shape)]
            with torch._dynamo.config.patch(error_on_recompile=T in (300, 129)):
                self.agrees(compiled)

    def test_compiled_checkpoint(self):
        def run(*y):
            return checkpoint(lambda *y: simple_gla(dict(zip(self.x, y))), *y, use_reentrant=False)

        compiled = torch.compile(run, **COMPILE)
        self.agrees(lambda x: compiled(*x.values()))

    def test_operators(self):
        """Not what opcheck says of two calls' outputs: nobody writes what tensors that are kept hold beyond a sequence's end."""
        x = inputs(T=20, dtype=torch.bfloat16)
        tests = ("test_schema", "test_autograd_registration", "test_faketensor")
        order = [x[n].detach() for n in ("q", "k", "v", "S0", "a")] + [None, None]
        torch.library.opcheck(torch.ops.tegula.simple_gla_keep.default, (*order, 0, 0, 128, 0, 0, 5), test_utils=tests)
        torch.library.opcheck(torch.ops.tegula.simple_gla_keep.default,
                              (*(t[:1] if t is not None else t for t in order[:5]), torch.tensor([0, 20]), None,
                               0, 0, 128, 0, 0, 7), test_utils=tests)


class Choice(unittest.TestCase):
    """Who decides, and by what."""

    def choose(self, keep_states=None, seconds=0.9, **options):
        tensors = [t.detach() for t in inputs(T=40).values()]
        op = operators.programs["simple-gla"].keep
        names = {n: t for n, t in zip(("q", "k", "v", "a", "S0"), tensors)}
        found = Keeping(("states",), 64, 0, seconds, 1.0)
        with mock.patch.object(op.operator, "keeping", return_value=found), mock.patch.object(op, "choices", {}):
            return _torch_keep.choose(op, [names.get(n) for n in op.names],
                                      operators.Options(0, 0, 0, options.get("step", 0), 0, 1), keep_states)

    def test_it_has_to_pay(self):
        bits = operators.programs["simple-gla"].keep.bits(["states"])
        self.assertEqual(self.choose(), (64, 0, bits))
        self.assertIsNone(self.choose(seconds=0.96))
        self.assertEqual(self.choose(True, seconds=2), (64, 0, bits))
        self.assertIsNone(self.choose(False))
        self.assertIsNone(self.choose(step=1))

    def test_traced_for_a_gpu_that_is_elsewhere(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        x, op = inputs(T=40), operators.programs["simple-gla"].keep
        with FakeTensorMode():
            tensors = [torch.empty(x[n].shape, device="cuda") if n in x else None for n in op.names]
            self.assertIsNone(_torch_keep.choose(op, tensors, operators.Options(0, 0, 0, 0, 0, 1), True))

    def test_the_setting(self):
        x = inputs(T=40)
        for setting in (None, True, False):
            with mock.patch.object(operators, "keep_states_by_default", setting), \
                    mock.patch.object(_torch_keep, "choose", return_value=None) as choose:
                operators.simple_gla(**x)
                operators.simple_gla(**x, keep_states=False)
            self.assertEqual([call.args[3] for call in choose.call_args_list], [setting, False])

    def test_variants_that_keep_nothing(self):
        pair = operators.programs["rotary"]
        self.assertIsNone(pair.keep)
        x = torch.randn(1, 2, 5, 16, requires_grad=True)
        operators.srms_norm(x=x, keep_states=True).h.sum().backward()
        self.assertEqual(x.grad.shape, x.shape)


def delta(B=1, H=2, T=130, K=64, V=64, groups=1):
    torch.manual_seed(0)
    q, k = (torch.nn.functional.normalize(torch.randn(B, T, H // groups, K), dim=-1).bfloat16() for _ in range(2))
    return {"q": q, "k": k, "v": torch.randn(B, T, H, V).bfloat16(), "g": -0.1 * torch.rand(B, T, H),
            "beta": torch.rand(B, T, H)}


@unittest.skipUnless(where.IS_HOPPER, "run.py --hopper")
class Hopper(unittest.TestCase):
    """Walks of the delta rule, by the peer's signatures; and states of segments."""

    def agrees(self, x, function, initial, **more):
        given = {n: t.requires_grad_() for n, t in x.items()}
        found, seen = [], []
        for setting in (False, True):
            with mock.patch.object(operators, "keep_states_by_default", setting), Names() as names:
                outputs = function(**given, initial_state=initial, output_final_state=True, **more)
            torch.manual_seed(1)
            loss = sum((o * torch.randn(o.shape)).sum() for o in outputs)
            with names:
                found.append(torch.autograd.grad(loss, list(given.values())))
            seen.append(names.seen[0].rpartition("_")[2])
        self.assertEqual(seen, ["forward", "keep"])
        for name, one, other in zip(given, *found):
            self.assertLess(error(one, other), BF16, name)

    def test_kda(self):
        x = delta()
        x["g"] = -0.1 * torch.rand(x["q"].shape)
        self.agrees(x, fla.chunk_kda, torch.randn(1, 2, 64, 64))

    def test_gated_delta(self):
        x = delta(K=128, V=128, groups=2)
        cu = torch.tensor([0, 5, 5, 130])
        self.agrees(x, fla.chunk_gated_delta_rule, torch.randn(3, 2, 128, 128), cu_seqlens=cu)

    def test_states_of_segments(self):
        """mlstm-exp's, 8 chunks of 64 each, and the normaliser's of every chunk; packed."""
        torch.manual_seed(0)
        x = {"q": torch.randn(1, 1, 600, 128), "k": torch.randn(1, 1, 600, 128), "v": torch.randn(1, 1, 600, 256)}
        x = {n: t.bfloat16() for n, t in x.items()}
        x.update(f=torch.randn(1, 1, 600) + 3, i=torch.randn(1, 1, 600))
        given = {n: t.requires_grad_() for n, t in x.items()}
        op, cu, found = operators.programs["mlstm-exp"].keep, torch.tensor([0, 0, 5, 590, 600]), []
        bits = op.bits(op.of.kept)
        for cut in (None, (64, 8, bits)):
            with mock.patch.object(_torch_keep, "choose", return_value=cut):
                h = operators.mlstm_exp(**given, cu=cu).h
            torch.manual_seed(1)
            found.append(torch.autograd.grad((h * torch.randn(h.shape)).sum(), list(given.values())))
        for name, one, other in zip(given, *found):
            self.assertLess(error(one, other), BF16, name)

    def test_it_is_chosen(self):
        """What was measured faster on an H200, by the cost model alone: no kernel is made."""
        for variant, B, T, kept in (("kda", 8, 8192, True), ("gated-delta", 8, 4096, True), ("simple-gla", 8, 8192, False)):
            op = operators.programs[variant].keep
            shapes = {"q": (B, 32, T, 128), "k": (B, 32, T, 128), "v": (B, 32, T, 128), "g": (B, 32, T, 128),
                      "a": (B, 32, T), "beta": (B, 32, T)}
            tensors = [torch.empty(shapes[n], device="meta", dtype=torch.bfloat16 if n in "qkv" else torch.float32)
                       if n in shapes else None for n in op.names]
            found = _torch_keep.choose(op, tensors, operators.Options(0, 0, 0, 0, 0, 1), None)
            self.assertEqual(found is not None, kept, variant)


class OnHopper(unittest.TestCase):
    def test_all(self):
        if torch.get_default_device().type != "cpu":
            self.skipTest("the emulator is for tensors on the CPU")
        run = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
        found = subprocess.run([sys.executable, run, "--hopper", "test_kept.Hopper"], capture_output=True, text=True)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        self.assertNotIn("SKIP", found.stdout)
