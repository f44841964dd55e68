"""Operators of PyTorch on CPU tensors, that is on the emulator: values, gradients, torch.compile."""

import ctypes
import os
import subprocess
import sys
import types
import unittest
from unittest import mock

import numpy
import torch

import tegula
import tegula.torch as operators
from tegula import _stable, _torch_ops, fla, mamba, mlstm

FP32, BF16 = 4e-5, 8e-3  # RMS of gradients; CONTRIBUTING.md


def inputs(B=2, H=2, T=24, K=16, V=24, groups=1, dtype=torch.float32):
    torch.manual_seed(0)
    x = {"q": torch.randn(B, H // groups, T, K) / 2, "k": torch.randn(B, H // groups, T, K) / 2,
         "v": torch.randn(B, H, T, V), "a": -0.1 * torch.rand(B, H, T), "S0": torch.randn(B, H, K, V)}
    return {n: (t.to(dtype) if n in "qkv" else t).requires_grad_() for n, t in x.items()}


def truth(q, k, v, a, S0):
    """The recurrence in fp64, which autograd goes through."""
    q, k, v, S = (t.double() for t in (q, k, v, S0))
    q, k = (t.repeat_interleave(v.shape[1] // t.shape[1], 1) for t in (q, k))
    h = []
    for t in range(v.shape[2]):
        S = S * a[:, :, t].double().exp()[..., None, None] + k[:, :, t, :, None] * v[:, :, t, None, :]
        h.append(torch.einsum("bhkv,bhk->bhv", S, q[:, :, t]) * q.shape[-1] ** -0.5)
    return torch.stack(h, 2), S


def error(found, expected):
    return ((found.double() - expected.double()).pow(2).mean() / expected.double().pow(2).mean()).sqrt().item()


def gradients(function, x, weights):
    """The outputs, and the gradients of their weighted sum by name."""
    outputs = function(x)
    loss = sum((o * w).sum() for o, w in zip(outputs, weights) if w is not None)
    return outputs, dict(zip(x, torch.autograd.grad(loss, list(x.values()))))


def simple_gla(x):
    found = operators.simple_gla(**x, final_state=True)
    return found.h, found.S


class Gradients(unittest.TestCase):
    def agrees(self, x, level, function=simple_gla, weigh=(True, True)):
        shapes = (x["v"].shape, x["S0"].shape)
        weights = [torch.randn(shape) if is_used else None for shape, is_used in zip(shapes, weigh)]
        found, by_name = gradients(function, x, weights)
        expected, wanted = gradients(lambda x: truth(**x), x, weights)
        for one, other in zip(found, expected):
            self.assertLess(error(one, other), level)
        for name in x:
            self.assertLess(error(by_name[name], wanted[name]), level, name)
            self.assertEqual(by_name[name].dtype, x[name].dtype)

    def test_against_fp64(self):
        self.agrees(inputs(), FP32)
        self.agrees(inputs(groups=2), FP32)
        self.agrees(inputs(dtype=torch.bfloat16), BF16)

    def test_states_v_first(self):
        def turned(x):
            found = operators.simple_gla(**{**x, "S0": x["S0"].transpose(-1, -2).contiguous()}, state_v_first=True,
                                         final_state=True)
            return found.h, found.S.transpose(-1, -2)

        self.agrees(inputs(), FP32, turned)

    def test_states_in_16_bits(self):
        """Their gradients too."""
        x = inputs()
        x["S0"] = x["S0"].detach().bfloat16().requires_grad_()
        self.agrees(x, BF16)

    def test_of_one_output_alone(self):
        self.agrees(inputs(), FP32, weigh=(True, False))
        x = inputs()
        _, S = simple_gla(x)
        weight = torch.randn_like(S)
        found = torch.autograd.grad((S * weight).sum(), [x["k"], x["S0"]])
        wanted = torch.autograd.grad((truth(**x)[1] * weight).sum(), [x["k"], x["S0"]])
        for one, other in zip(found, wanted):
            self.assertLess(error(one, other), FP32)

    def test_strides(self):
        """Rows that are not dense, gradients that are one number, tensors [B, T, NH, d]."""
        def turned(x):
            y = {n: x[n].transpose(2, 3).contiguous().transpose(2, 3) for n in "qkv"}
            found = operators.simple_gla(**y, a=x["a"], S0=x["S0"], final_state=True)
            return found.h, found.S

        def other_layout(x):
            y = {n: x[n].transpose(1, 2) for n in ("q", "k", "v", "a")}
            found = operators.simple_gla(**y, S0=x["S0"], layout="bthd", final_state=True)
            return found.h.transpose(1, 2), found.S

        for function in (turned, other_layout):
            self.agrees(inputs(), FP32, function)
        x = inputs()
        found = torch.autograd.grad(operators.simple_gla(**x).h.sum(), x["v"])[0]
        self.assertLess(error(found, torch.autograd.grad(truth(**x)[0].sum(), x["v"])[0]), FP32)

    def test_packed_sequences(self):
        x = inputs(B=1)
        cu = torch.tensor([0, 9, 24])

        def packed(x):
            found = operators.simple_gla(**x, cu=cu, final_state=True)
            return found.h, found.S

        def apart(x):
            y = [truth(*(x[n][:, :, b:e] for n in ("q", "k", "v", "a")), x["S0"][i : i + 1])
                 for i, (b, e) in enumerate(((0, 9), (9, 24)))]
            return torch.cat([h for h, _ in y], 2), torch.cat([S for _, S in y])

        given = {**x, "S0": torch.randn(2, 2, 16, 24, requires_grad=True)}
        weights = [torch.randn(1, 2, 24, 24), torch.randn(2, 2, 16, 24)]
        found, wanted = gradients(packed, given, weights), gradients(apart, given, weights)
        for name in given:
            self.assertLess(error(found[1][name], wanted[1][name]), FP32, name)

    def test_what_a_backward_takes_of_its_forward(self):
        """mlstm-exp: h and the normaliser."""
        x = {n: t for n, t in inputs().items() if n in "qkv"}
        x["f"], x["i"] = (torch.randn(2, 2, 24, requires_grad=True) for _ in range(2))

        def native(q, k, v, f, i):
            q, k, v, f, i = (t.double() for t in (q, k, v, f, i))
            C, n, m, h = torch.zeros(2, 2, 16, 24).double(), torch.zeros(2, 2, 16).double(), i[:, :, 0] * 0 - 1e9, []
            for t in range(24):
                before = torch.nn.functional.logsigmoid(f[:, :, t]) + m
                m = torch.maximum(before, i[:, :, t])
                keep, write = (before - m).exp(), (i[:, :, t] - m).exp()
                C = keep[..., None, None] * C + write[..., None, None] * k[:, :, t, :, None] * v[:, :, t, None, :]
                n = keep[..., None] * n + write[..., None] * k[:, :, t]
                below = torch.maximum((n * q[:, :, t]).sum(-1).abs() / 4, (-m).exp())
                h.append(torch.einsum("bhkv,bhk->bhv", C, q[:, :, t]) / 4 / below[..., None])
            return (torch.stack(h, 2),)

        weights = [torch.randn(2, 2, 24, 24)]
        found = gradients(lambda x: (operators.mlstm_exp(**x).h,), x, weights)
        wanted = gradients(lambda x: native(**x), x, weights)
        self.assertLess(error(found[0][0], wanted[0][0]), FP32)
        for name in x:
            self.assertLess(error(found[1][name], wanted[1][name]), 4 * FP32, name)

    def test_one_output(self):
        x = torch.randn(1, 2, 5, 16, requires_grad=True)
        weight = torch.randn(1, 2, 5, 16)
        found = torch.autograd.grad((operators.srms_norm(x=x).h * weight).sum(), x)[0]
        norm = x.double() * (x.double().pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
        self.assertLess(error(found, torch.autograd.grad((norm * weight).sum(), x)[0]), FP32)


class Widths(unittest.TestCase):
    """Those that kernels do not have: rows are filled up, and results cut."""

    def test_gradients_of_odd_widths(self):
        torch._dynamo.reset()
        compiled = torch.compile(simple_gla, fullgraph=True, backend="aot_eager")
        for K, V in ((13, 21), (5, 24), (16, 3)):
            x = inputs(K=K, V=V, T=10)
            for function in (simple_gla, compiled):
                Gradients.agrees(self, x, FP32, function)
        Gradients.agrees(self, inputs(K=13, V=21, dtype=torch.bfloat16), BF16)

    def test_layout_and_states_v_first(self):
        def turned(x):
            y = {n: x[n].transpose(1, 2) for n in ("q", "k", "v", "a")}
            found = operators.simple_gla(**y, S0=x["S0"].mT.contiguous(), state_v_first=True, layout="bthd",
                                         final_state=True)
            return found.h.transpose(1, 2), found.S.mT

        Gradients.agrees(self, inputs(K=13, V=21), FP32, turned)

    def test_the_scale_is_of_the_width_that_is_given(self):
        x = {n: t.detach() for n, t in inputs(K=13).items()}
        found = operators.simple_gla(**x).h
        self.assertTrue(torch.equal(operators.simple_gla(**x, scale=13**-0.5).h, found))

    def test_gates_and_parameters_of_keys(self):
        """As with the zeros that a caller puts there."""
        torch.manual_seed(0)
        q, k, w = (torch.randn(1, 2, 9, 20, requires_grad=True) for _ in range(3))
        v, u = torch.randn(1, 2, 9, 19, requires_grad=True), torch.randn(2, 20, requires_grad=True)
        given, weight = [q, k, v, w, u], torch.randn(1, 2, 9, 19)

        def pad(t, n):
            return torch.nn.functional.pad(t, (0, n))

        one = operators.rwkv6(q=q, k=k, v=v, w=w, u=u, scale=1).h
        other = operators.rwkv6(q=pad(q, 4), k=pad(k, 4), v=pad(v, 5), w=pad(w, 4), u=pad(u, 4), scale=1).h[..., :19]
        self.assertTrue(torch.equal(one, other))
        for found, wanted in zip(*(torch.autograd.grad((h * weight).sum(), given) for h in (one, other))):
            self.assertTrue(torch.equal(found, wanted))

    def test_what_cannot_be_filled_up(self):
        x = torch.randn(1, 2, 5, 20)
        with self.assertRaises(tegula.Error):
            operators.srms_norm(x=x)  # a mean over the row
        y = {n: t.detach() for n, t in inputs(K=13).items()}
        with self.assertRaises(tegula.Error):
            operators.simple_gla(**y, h=torch.empty(2, 2, 24, 24))


class Rows(unittest.TestCase):
    """On a GPU tensors go to a kernel as they are, if it can read them."""

    def test_what_kernels_read_is_not_copied(self):
        x = torch.randn(2, 4, 8, 32)
        for good in (x, x[:, 1:], x.transpose(1, 2), x[..., 4:], x[:1].expand(3, -1, -1, -1), x[0, 0, 0]):
            self.assertIs(_torch_ops.ready(good), good)
        for bad in (x[..., ::2], x[..., 1:9], torch.ones(1).expand(2, 4, 8, 32), torch.randn(8, 33)[:, :32],
                    x.bfloat16()[..., 4:],
                    torch.randn(33)[1:]):
            self.assertIsNot(_torch_ops.ready(bad), bad)
            self.assertTrue(_torch_ops.ready(bad).is_contiguous())


class OnEmulator(torch.Tensor):
    """A tensor that says to lie on a GPU, where its memory is the emulator's: what calls on a GPU do, up to the launch."""

    is_cuda = True
    device = types.SimpleNamespace(type="cuda", index="emu")

    @staticmethod
    def of(tensor):
        made = tensor.contiguous().as_subclass(OnEmulator)
        is_scratch = tensor.dtype == torch.uint8
        made.array = tegula.to_device(numpy.zeros(len(tensor) // 4 + 1, "f") if is_scratch else tensor.numpy(), "emu")
        return made

    @staticmethod
    def empty(shape, dtype, device):
        return OnEmulator.of(_empty(shape, dtype=dtype))

    def new_empty(self, n, dtype):
        return OnEmulator.empty(n, dtype, None)

    def get_device(self):
        return 0

    def data_ptr(self):
        return self.array._tegula_view.address

    def read(self):
        return torch.from_numpy(self.array.copy_to(self.as_subclass(torch.Tensor).numpy()))


_empty = torch.empty


class Launched(unittest.TestCase):
    def setUp(self):
        if torch.get_default_device().type != "cpu":
            self.skipTest("on a GPU tensors lie there")

    def test_calls_that_are_alike(self):
        operator = tegula.Operator("simple-gla")
        stream = types.SimpleNamespace(cuda_stream=0)
        with mock.patch("torch.empty", OnEmulator.empty), mock.patch("torch.cuda.current_stream", return_value=stream):
            for seed in range(3):
                with mock.patch("torch.empty", _empty):
                    x = {n: t.detach() for n, t in inputs(T=130, dtype=torch.float16).items()}
                    x["a"] = x["a"] * (seed + 1)
                    given = {n: OnEmulator.of(t) for n, t in x.items()}
                found = operator(**given, want=["S"])
                with mock.patch("torch.empty", _empty):
                    for name, expected in zip(("h", "S"), truth(**x)):
                        self.assertLess(error(found[name].read(), expected), BF16)
                self.assertEqual(found.h.dtype, torch.float16)
        self.assertEqual(len(operator._plans), 1)


class Placed:
    """Tensors on the CPU whose memory is the emulator's: what libtegula-torch does with tensors on a GPU."""

    def __init__(self):
        self.arrays = []

    def of(self, tensor):
        """A copy there, with the same strides."""
        whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        return self.empty(whole.shape, whole.dtype, whole).as_strided(tensor.shape, tensor.stride(),
                                                                      tensor.storage_offset())

    def empty(self, shape, dtype, values=None):
        values = torch.zeros(shape, dtype=dtype) if values is None else values
        n = max(values.numel() * values.element_size(), 1)
        array = tegula.to_device(numpy.frombuffer(ctypes.string_at(values.data_ptr(), n).ljust((n + 3) // 4 * 4, b"\0"),
                                                  "f"), "emu")
        self.arrays.append(array)
        memory = (ctypes.c_char * n).from_address(array._tegula_view.address)
        return torch.frombuffer(memory, dtype=dtype, count=values.numel()).reshape(shape)

    def read(self, tensor):
        array = next(a for a in self.arrays if a._tegula_view.address == tensor.data_ptr())
        found = torch.from_numpy(array.copy_to(numpy.empty(array.shape, "f")))
        return found.view(tensor.dtype)[: tensor.numel()].reshape(tensor.shape)


@unittest.skipIf(_stable.library is None, "this PyTorch has no stable C interface")
class Stable(unittest.TestCase):
    """Operators by libtegula-torch, up to the launch: nothing is copied, and Python is not asked twice."""

    def setUp(self):
        if torch.get_default_device().type != "cpu":
            self.skipTest("tensors of tests that nobody places lie on a GPU")
        self.placed = Placed()
        _stable.library.tg_torch_forget()
        _stable.library.tg_torch_place_cpu(1)
        self.addCleanup(_stable.library.tg_torch_place_cpu, 0)

    def call(self, x, function=operators.simple_gla, **more):
        """Outputs by name, of tensors that are placed, with outputs and workspace there too."""
        given = {n: self.placed.of(t) for n, t in x.items()}
        outputs = {"h": self.placed.empty(x["v"].shape, x["v"].dtype),
                   "S": self.placed.empty((x["v"].shape[0], *x["v"].shape[1:2], x["q"].shape[-1], x["v"].shape[-1]),
                                          torch.float32)}
        workspace = self.placed.empty((operators.simple_gla.workspace_bytes(**given, **more),), torch.uint8)
        found = function(**given, **outputs, workspace=workspace, **more)
        self.assertEqual([found[n].data_ptr() for n in outputs], [t.data_ptr() for t in outputs.values()])
        return [self.placed.read(t) for t in outputs.values()]

    def test_calls_that_are_alike(self):
        for seed in range(3):
            x = {n: t.detach() for n, t in inputs(T=130, dtype=torch.float16).items()}
            x["a"] = x["a"] * (seed + 1)
            with mock.patch.object(_stable, "_describe", wraps=_stable._describe) as described:
                found = self.call(x)
            self.assertEqual(described.call_count, seed == 0)
            for one, expected in zip(found, truth(**x)):
                self.assertLess(error(one, expected), BF16)
        self.assertEqual(_stable.library.tg_torch_plans(), 1)

    def test_strides_and_scalars(self):
        x = {n: t.detach() for n, t in inputs(T=40).items()}
        expected = truth(**x)
        x["q"], x["v"] = (x[n].transpose(1, 2).contiguous().transpose(1, 2) for n in "qv")
        for one, other in zip(self.call(x), expected):
            self.assertLess(error(one, other), FP32)
        h, _ = self.call(x, scale=0.5)
        self.assertLess(error(h, 2 * expected[0]), FP32)  # 16 ** -0.5 is a quarter
        self.assertEqual(_stable.library.tg_torch_plans(), 2)

    def test_pools(self):
        x = {n: t.detach() for n, t in inputs(T=3).items()}
        pool, index = torch.zeros(5, 2, 16, 24), torch.tensor([3, 1])
        pool[index] = x.pop("S0")
        expected = truth(**x, S0=pool[index])
        given = {n: self.placed.of(t) for n, t in {**x, "S": pool, "index": index}.items()}
        h = self.placed.empty(x["v"].shape, torch.float32)
        operators.simple_gla(**given, h=h, step=True, workspace=self.placed.empty((1 << 16,), torch.uint8))
        self.assertLess(error(self.placed.read(h), expected[0]), FP32)
        self.assertLess(error(self.placed.read(given["S"])[index], expected[1]), FP32)

    def test_what_a_launch_refuses(self):
        x = {n: self.placed.of(t.detach()) for n, t in inputs().items()}
        with self.assertRaises(tegula.Error) as caught:
            operators.simple_gla(**x, h=x["v"], workspace=self.placed.empty((1 << 20,), torch.uint8))
        self.assertEqual((caught.exception.code, caught.exception.field), ("TG0833", "h: address"))
        with self.assertRaises(tegula.Error) as caught:
            operators.simple_gla(**x, h=self.placed.empty(x["v"].shape, torch.float32),
                                 workspace=self.placed.empty((16,), torch.uint8))
        self.assertEqual(caught.exception.field, "workspace")


class ByCtypes(unittest.TestCase):
    def test_without_the_library(self):
        """As with a PyTorch that lacks the interface: the same operators, with the same gradients and graphs."""
        program = ("import sys; from tegula import _stable; _stable.library = None; "
                   "import runpy; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')")
        run = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
        tests = ["test_torch.Gradients.test_against_fp64", "test_torch.Gradients.test_strides",
                 "test_torch.Compiled", "test_torch.Pools", "test_torch.Outputs", "test_torch.Errors"]
        found = subprocess.run([sys.executable, "-c", program, run, *tests], capture_output=True, text=True)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        self.assertNotIn("SKIP", found.stdout)


class Outputs(unittest.TestCase):
    """Of the caller's, on the CPU."""

    def test_what_is_given_is_filled(self):
        x = {n: t.detach() for n, t in inputs().items()}
        h, S = torch.full((2, 2, 24, 24), torch.nan), torch.full((2, 2, 16, 24), torch.nan)

        def run(h, S):
            found = operators.simple_gla(**x, h=h, S=S)
            return found.h, found.S

        torch._dynamo.reset()
        for function in (run, torch.compile(run, fullgraph=True, backend="aot_eager")):
            found = function(h.fill_(torch.nan), S.fill_(torch.nan))
            for one, other, given in zip(found, truth(**x), (h, S)):
                self.assertLess(error(one, other), FP32)
                self.assertTrue(torch.equal(one, given))
        self.assertIs(operators.simple_gla(**x, h=h).h, h)

    def test_what_is_missing_is_made(self):
        x = {n: t.detach() for n, t in inputs().items()}
        S = torch.empty(2, 2, 16, 24)
        found = operators.simple_gla(**x, S=S)
        self.assertIs(found.S, S)
        for one, other in zip((found.h, S), truth(**x)):
            self.assertLess(error(one, other), FP32)

    def test_views(self):
        """A slice of a larger buffer, where the kernel may write by strides: not on the host."""
        x = {n: t.detach() for n, t in inputs().items()}
        h = torch.empty(2, 2, 24, 48)[..., :24]
        if h.is_cuda:
            self.assertLess(error(operators.simple_gla(**x, h=h).h, truth(**x)[0]), FP32)
            return
        with self.assertRaises(tegula.Error) as caught:
            operators.simple_gla(**x, h=h)
        self.assertEqual(caught.exception.field, "h.strides")

    def test_with_gradients_they_are_refused(self):
        x = inputs()
        with self.assertRaises(tegula.Error) as caught:
            operators.simple_gla(**x, h=torch.empty(2, 2, 24, 24))
        self.assertEqual(caught.exception.field, "h")
        with torch.no_grad():
            operators.simple_gla(**x, h=torch.empty(2, 2, 24, 24))

    def test_operator(self):
        x = {n: t.detach() for n, t in inputs(T=8).items()}
        order = [x["q"], x["k"], x["v"], x["S0"], x["a"], None, None, *_torch_ops.Options(0, 0, 0, 0, 0, 3)]
        torch.library.opcheck(torch.ops.tegula.simple_gla_forward.out, order,
                              {"h": torch.empty(2, 2, 8, 24), "S": torch.empty(2, 2, 16, 24), "workspace": None})
        torch.library.opcheck(torch.ops.tegula.simple_gla_forward.default, order)


class Modes(unittest.TestCase):
    def test_a_mode_sees_the_operator(self):
        class Names(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                names.append(str(function))
                return function(*args, **(kwargs or {}))

        x, names = {n: t.detach() for n, t in inputs().items()}, []
        with Names():
            seen = operators.simple_gla(**x).h
        self.assertIn("tegula.simple_gla_forward.default", names)
        self.assertTrue(torch.equal(operators.simple_gla(**x).h, seen))


class Autocast(unittest.TestCase):
    def test_what_products_take_has_its_type(self):
        x = inputs()
        device = x["q"].device.type
        with torch.autocast(device, torch.bfloat16):
            out = operators.simple_gla(**x, final_state=True)
            norm = operators.srms_norm(x=x["v"]).h
        self.assertEqual((out.h.dtype, out.S.dtype, norm.dtype), (torch.bfloat16, torch.float32, torch.float32))
        expected = truth(**{n: t.bfloat16() if n in "qkv" else t for n, t in x.items()})
        self.assertLess(error(out.h, expected[0]), BF16)
        weight = torch.randn_like(out.h)
        found = torch.autograd.grad((out.h * weight).sum(), x["q"])[0]
        self.assertEqual(found.dtype, torch.float32)
        self.assertLess(error(found, torch.autograd.grad((expected[0] * weight).sum(), x["q"])[0]), BF16)


class Compiled(unittest.TestCase):
    def test_full_graph(self):
        torch._dynamo.reset()
        compiled = torch.compile(simple_gla, fullgraph=True, backend="aot_eager")
        Gradients.agrees(self, inputs(), FP32, compiled)

    def test_dynamic_shapes(self):
        torch._dynamo.reset()
        compiled = torch.compile(simple_gla, fullgraph=True, backend="aot_eager", dynamic=True)
        for T in (24, 31):
            Gradients.agrees(self, inputs(T=T), FP32, compiled)

    def test_operators_are_what_they_say(self):
        x = inputs(T=8)
        order = [x.get(name) for name in ("q", "k", "v", "S0", "a")]
        for want in ([], ["S"]):
            torch.library.opcheck(torch.ops.tegula.simple_gla.default,
                                  (*order, None, None, "bhtd", False, 0, False, want))
        x = [torch.randn(1, 2, 8, 16) for _ in range(3)]
        torch.library.opcheck(torch.ops.tegula.mlstm_sig.default,
                              (*x, None, x[0][..., 0], x[1][..., 0], None, 0.5, "bhtd", False, 0, False, ["S"]))


class Pools(unittest.TestCase):
    """States in slots, changed in place."""

    def test_mamba_steps_are_a_scan(self):
        torch.manual_seed(2)
        x, dt, A = torch.randn(2, 3, 2, 24), torch.randn(2, 3, 2), -torch.rand(2)
        B, C, bias = torch.randn(2, 3, 1, 16), torch.randn(2, 3, 1, 16), torch.randn(2)
        out, last = mamba.mamba_chunk_scan_combined(x, dt, A, B, C, 64, dt_bias=bias, dt_softplus=True,
                                                    return_final_states=True)
        pool, index = torch.zeros(4, 2, 24, 16), torch.tensor([2, 0])

        def step(t):
            return mamba.selective_state_update(
                pool, x[:, t], dt[:, t, :, None].expand(2, 2, 24), A[:, None, None].expand(2, 24, 16), B[:, t], C[:, t],
                dt_bias=bias[:, None].expand(2, 24), dt_softplus=True, state_batch_indices=index)

        torch._dynamo.reset()
        for t, function in enumerate((step, step, torch.compile(step, fullgraph=True, backend="aot_eager"))):
            self.assertLess(error(function(t), out[:, t]), FP32)
        self.assertLess(error(pool[index], last), FP32)

    def step(self, function):
        x = {n: t.detach() for n, t in inputs(T=3).items()}
        pool, index = torch.full((5, 2, 16, 24), torch.nan), torch.tensor([3, 1])
        pool[index] = x.pop("S0")
        h, S = truth(**x, S0=pool[index])
        found = function(x, pool, index)
        self.assertLess(error(found, h), FP32)
        self.assertLess(error(pool[index], S), FP32)
        self.assertTrue(pool[[0, 2, 4]].isnan().all())

    def test_eager_and_compiled(self):
        def run(x, pool, index):
            return operators.simple_gla(**x, S=pool, index=index, step=True).h

        torch._dynamo.reset()
        self.step(run)
        self.step(torch.compile(run, fullgraph=True, backend="aot_eager"))

    def test_operator(self):
        x = {n: t.detach() for n, t in inputs(T=3).items()}
        order = [x["q"], x["k"], x["v"], x["a"], None, torch.randn(5, 2, 16, 24), torch.tensor([3, 1]), None, None]
        torch.library.opcheck(torch.ops.tegula.simple_gla_pooled.default, (*order, *_torch_ops.Options(0, 0, 0, 1, 0, 1)))

    def test_gradients_are_refused(self):
        x = inputs()
        with self.assertRaises(tegula.Error):
            operators.simple_gla(**{**x, "S0": None}, S=torch.randn(5, 2, 16, 24), index=torch.tensor([3, 1]))


class Shims(unittest.TestCase):
    """The peers' signatures on tensors: gates made in the kernel and around it are one, and no graph breaks."""

    def setUp(self):
        torch.manual_seed(1)
        self.x = {n: torch.randn(2, 16, 2, 16, requires_grad=True) for n in "qkv"}
        self.gates = {"g": torch.randn(2, 16, 2, requires_grad=True), "beta": torch.randn(2, 16, 2, requires_grad=True)}
        self.A = {"A_log": torch.randn(2, requires_grad=True), "dt_bias": torch.randn(2, requires_grad=True)}
        self.weight = torch.randn(2, 16, 2, 16)
        self.all = {**self.x, **self.gates, **self.A}

    def gradients(self, function):
        return gradients(lambda _: (function()[0],), self.all, [self.weight])

    def test_gates_in_the_kernel_and_around_it(self):
        def inside():
            return fla.chunk_gated_delta_rule(**self.all, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True,
                                              use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True)

        def around():
            unit = {n: torch.nn.functional.normalize(self.x[n], dim=-1) for n in "qk"}
            g = -self.A["A_log"].exp() * torch.nn.functional.softplus(self.gates["g"] + self.A["dt_bias"])
            return fla.chunk_gated_delta_rule(**unit, v=self.x["v"], g=g, beta=2 * self.gates["beta"].sigmoid())

        (one,), by_name = self.gradients(inside)
        (other,), wanted = self.gradients(around)
        self.assertLess(error(one, other), FP32)
        for name in self.all:
            self.assertLess(error(by_name[name], wanted[name]), 4 * FP32, name)

    def test_gradients_of_widths_that_are_no_multiple_of_8(self):
        x = {n: t[..., :13] for n, t in self.x.items()}
        S0 = torch.randn(2, 2, 13, 13, requires_grad=True)

        def run():
            return fla.chunk_simple_gla(**x, g=-self.gates["g"].abs(), initial_state=S0, output_final_state=True)

        torch._dynamo.reset()
        given = [*self.x.values(), self.gates["g"], S0]
        weights = [torch.randn(2, 16, 2, 13), torch.randn(2, 2, 13, 13)]
        turned = [t.transpose(1, 2) for t in (*x.values(), -self.gates["g"].abs())]
        h, S = truth(*turned, S0)
        expected = (h.transpose(1, 2), S)
        wanted = torch.autograd.grad(sum((o * w).sum() for o, w in zip(expected, weights)), given)
        for function in (run, torch.compile(run, fullgraph=True, backend="aot_eager")):
            outputs = function()
            found = torch.autograd.grad(sum((o * w).sum() for o, w in zip(outputs, weights)), given)
            for one, other in zip((*outputs, *found), (*expected, *wanted)):
                self.assertLess(error(one, other), FP32)

    def test_bfloat16(self):
        q, k, v, g = (t.detach().bfloat16() for t in (*self.x.values(), -self.gates["g"].abs()))
        o, S = fla.chunk_simple_gla(q, k, v, g, output_final_state=True)
        turned = [t.transpose(1, 2) for t in (q, k, v, g)]
        h, last = truth(*turned, torch.zeros(2, 2, 16, 16))
        self.assertEqual((o.dtype, S.dtype), (torch.bfloat16, torch.float32))
        self.assertLess(error(o.transpose(1, 2), h), BF16)
        self.assertLess(error(S, last), BF16)

    def same(self, one, other, given, level=4 * FP32):
        """Values of two functions, and gradients of what is given."""
        torch.manual_seed(2)
        weights = [torch.randn_like(o) for o in other()]
        found, wanted = one(), other()
        for x, y in zip(found, wanted):
            self.assertLess(error(x, y), level)
        for x, y in zip(*(torch.autograd.grad(sum((o * w).sum() for o, w in zip(outputs, weights)), given)
                          for outputs in (found, wanted))):
            self.assertLess(error(x, y), level)

    def test_gradients_of_sequences_by_their_numbers(self):
        x, dt, A = self.x["v"], self.gates["g"], torch.tensor([-0.5, -2.0], requires_grad=True)
        S0 = torch.randn(2, 2, 16, 16, requires_grad=True)
        seq_idx = torch.tensor([[0] * 5 + [1] * 11, [0] * 16])

        def scan(row, begin, end, S0):
            along = [t[row : row + 1, begin:end] for t in (x, dt, self.x["k"], self.x["q"])]
            return mamba.mamba_chunk_scan_combined(*along[:2], A, *along[2:], 64, dt_softplus=True, initial_states=S0,
                                                   return_final_states=True)

        def together():
            return mamba.mamba_chunk_scan_combined(x, dt, A, self.x["k"], self.x["q"], 64, dt_softplus=True, seq_idx=seq_idx,
                                                   initial_states=S0, return_final_states=True)

        def apart():
            one, two, three = scan(0, 0, 5, S0[:1]), scan(0, 5, 16, None), scan(1, 0, 16, S0[1:])
            return torch.cat([torch.cat([one[0], two[0]], 1), three[0]]), torch.cat([two[1], three[1]])

        self.same(together, apart, [*self.x.values(), dt, A, S0])

    def test_gradients_of_states_between_chunks(self):
        given = {**self.x, "g": -self.x["v"].detach().abs().requires_grad_(), "beta": self.gates["beta"]}

        def by_chunks():
            return fla.chunk_kda(**given, output_final_state=True, return_intermediate_states=True, chunk_size=8)

        def at_once():
            half = fla.chunk_kda(**{n: t[:, :8] for n, t in given.items()}, output_final_state=True)[1]
            return *fla.chunk_kda(**given, output_final_state=True), torch.stack([torch.zeros_like(half), half], 1)

        self.same(by_chunks, at_once, list(given.values()))

    def test_gradients_of_attention_scores(self):
        def scores():
            return fla.parallel_simple_gla(**self.x, g=-self.gates["g"].abs(), output_attentions=True)

        def products():
            o, attention = scores()
            return (attention @ self.x["v"].transpose(1, 2)).transpose(1, 2), attention

        self.same(scores, products, [*self.x.values(), self.gates["g"]])

    def test_gradients_of_the_state_without_normaliser(self):
        q, k, v = (t.transpose(1, 2) for t in self.x.values())
        i, f = (t.transpose(1, 2) for t in self.gates.values())

        def run(normalize):
            h, (C, n) = mlstm.mlstm_siging_chunkwise__xl_chunk(q, k, v, i, f, return_last_states=True, normalize=normalize)
            return (C, n) if normalize else (C, n, h)

        self.same(lambda: run(False)[:2], lambda: run(True), [self.x["k"], self.x["v"], *self.gates.values()])
        h = mlstm.mlstm_siging_chunkwise__xl_chunk(q, k, v, i, f, normalize=False)
        self.same(lambda: run(False)[2:], lambda: (h,), list(self.x.values()))

    def test_full_graphs(self):
        qkv, heads_first = list(self.x.values()), [t.transpose(1, 2) for t in self.x.values()]
        g, beta = (t.transpose(1, 2) for t in self.gates.values())
        x, dt, A, D = self.x["v"], self.gates["g"], -self.A["A_log"].exp(), self.A["dt_bias"]
        for function in (
            lambda: fla.chunk_gated_delta_rule(*qkv, **self.gates, **self.A, use_gate_in_kernel=True,
                                               use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True)[0],
            lambda: fla.fused_recurrent_kda(*(t[:, :4] for t in qkv), -x[:, :4].abs(), self.gates["beta"][:, :4],
                                            output_final_state=True, state_v_first=True)[1],
            lambda: mlstm.mlstm_chunkwise__xl_chunk(*heads_first, g, beta, return_last_states=True)[1][0],
            lambda: mamba.mamba_chunk_scan_combined(x, dt, A, qkv[1], qkv[0], 64, D=D, z=x, dt_softplus=True,
                                                    return_final_states=True)[0],
        ):
            torch._dynamo.reset()
            compiled = torch.compile(function, fullgraph=True, backend="aot_eager")()
            self.assertLess(error(compiled, function()), 1e-6)


class Errors(unittest.TestCase):
    def test_the_door_loses_no_gradient(self):
        x = inputs()
        with self.assertRaises(tegula.Error) as caught:
            tegula.forward("simple-gla", **x)
        self.assertEqual(caught.exception.field, "q")
        with torch.no_grad():
            found = tegula.forward("simple-gla", **x)
        self.assertLess(error(found.h, truth(**x)[0]), FP32)

    def test_are_those_of_the_door(self):
        x = {n: t.detach() for n, t in inputs().items()}
        with self.assertRaises(tegula.Error) as caught:
            operators.simple_gla(**x, g=x["a"])
        self.assertEqual(caught.exception.field, "g")
        with self.assertRaises(tegula.Error) as caught:
            operators.srms_norm(x=x["v"], index=x["a"])
        self.assertEqual(caught.exception.field, "index")
        with self.assertRaises(tegula.Error) as caught:
            operators.simple_gla(**{**x, "k": x["k"][:1]})
        self.assertEqual(caught.exception.field, "k")
        with self.assertRaises(tegula.Error) as caught:
            tegula.forward("simple-gla", **{**x, "q": torch._neg_view(x["q"])})
        self.assertEqual(caught.exception.field, "q.values")
        for field, changes in (("q.layout", {"q": x["q"].to_sparse()}), ("q", {"q": 1.0}), ("scale", {"scale": "x"})):
            for call in (operators.simple_gla, lambda **y: tegula.forward("simple-gla", **y)):
                with self.assertRaises(tegula.Error) as caught:
                    call(**{**x, **changes})
                self.assertEqual(caught.exception.field, field)
        with self.assertRaises(tegula.Error) as caught:
            operators.simple_gla(**{**x, "a": None})
        self.assertEqual(caught.exception.field, "a")
