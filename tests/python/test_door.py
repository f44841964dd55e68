"""Operators on NumPy arrays, DLPack and device pointers."""

import threading
import unittest

import numpy as np
import tegula
from recurrence import decayed, delta, error, mlstm, slope
from tegula._arrays import view
from tegula._operator import How
from where import DEVICE

FP32 = 2e-5  # RMS; CONTRIBUTING.md
F16 = 4e-3


def inputs(B=2, H=2, T=40, K=16, V=24, groups=1, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    q, k = 0.5 * rng.standard_normal((2, B, H // groups, T, K))
    return {"q": q.astype(dtype), "k": k.astype(dtype), "v": rng.standard_normal((B, H, T, V)).astype(dtype),
            "a": -0.1 * rng.random((B, H, T)).astype(np.float32),
            "S0": rng.standard_normal((B, H, K, V)).astype(np.float32)}


def forward(variant, **call):
    return tegula.forward(variant, device=DEVICE, **call)


def expected(x):
    return decayed(x["q"], x["k"], x["v"], x["a"], x["q"].shape[-1] ** -0.5, x.get("S0"))


class Forward(unittest.TestCase):
    def test_the_recurrence(self):
        for dtype, level in ((np.float32, FP32), (np.float16, F16)):
            x = inputs(dtype=dtype)
            found = forward("simple-gla", **x, want=["S"])
            h, S = expected(x)
            self.assertLess(error(found.h, h), level)
            self.assertLess(error(found["S"], S), level)
            self.assertEqual((found.h.dtype, found.S.dtype), (dtype, np.float32))

    def test_bfloat16(self):
        try:
            import ml_dtypes
        except ModuleNotFoundError:
            self.skipTest("this Python has no ml_dtypes")
        x = inputs(dtype=ml_dtypes.bfloat16)
        found = forward("simple-gla", **x)
        self.assertLess(error(found.h, expected(x)[0]), F16)
        self.assertEqual(found.h.dtype, ml_dtypes.bfloat16)

    def test_optional_outputs_are_made_on_demand(self):
        self.assertEqual(list(forward("simple-gla", **inputs())), ["h"])

    def test_both_layouts_and_strides(self):
        x = inputs()
        other = {n: t.swapaxes(1, 2) for n, t in x.items() if n != "S0"}
        as_views = forward("simple-gla", **other, S0=x["S0"], layout="bthd").h
        dense = forward("simple-gla", **{n: t.copy() for n, t in other.items()}, S0=x["S0"], layout="bthd").h
        self.assertEqual(as_views.shape, (2, 40, 2, 24))
        for h in (as_views, dense):
            np.testing.assert_array_equal(h.swapaxes(1, 2), forward("simple-gla", **x).h)

    def test_widths_that_no_kernel_has(self):
        for K, V in ((60, 100), (16, 5), (3, 24)):
            x = inputs(K=K, V=V, T=20)
            found = forward("simple-gla", **x, want=["S"])
            for one, other in zip((found.h, found.S), expected(x)):
                self.assertLess(error(one, other), FP32)
            self.assertEqual((found.h.shape, found.S.shape), ((2, 2, 20, V), (2, 2, K, V)))
            turned = {**x, "S0": np.ascontiguousarray(x["S0"].swapaxes(2, 3))}
            S = forward("simple-gla", **turned, want=["S"], state_v_first=True).S
            np.testing.assert_array_equal(S.swapaxes(2, 3), found.S)
        x = inputs(K=20, V=12, T=20)
        dh = np.random.default_rng(1).standard_normal(x["v"].shape).astype(np.float32)
        given = {**x, "dh": dh}
        back = tegula.backward("simple-gla", device=DEVICE, **given, want=["dS0"])
        self.assertEqual([back[n].shape for n in ("dq", "dk", "dv", "dS0")], [x[n].shape for n in ("q", "k", "v", "S0")])
        step = 1e-2 * np.random.default_rng(2).standard_normal(x["k"].shape)
        there, here = ((expected({**x, "k": x["k"] + s * step})[0] * dh).sum() for s in (1, -1))
        self.assertLess(abs((there - here) / 2 - (back["dk"] * step).sum()), 1e-3 * abs((back["dk"] * step)).sum())
        with self.assertRaises(tegula.Error):  # where it is to go has the width that no kernel has
            forward("simple-gla", **x, h=np.zeros_like(x["v"]))

    def test_groups(self):
        x = inputs(H=4, groups=2)
        self.assertLess(error(forward("simple-gla", **x).h, expected(x)[0]), FP32)

    def test_scalars_and_chunk(self):
        x = inputs()
        h = forward("simple-gla", **x).h
        np.testing.assert_allclose(forward("simple-gla", **x, scale=0.5).h, h * 2, rtol=1e-4, atol=1e-5)
        self.assertLess(error(forward("simple-gla", **x, chunk=128).h, expected(x)[0]), FP32)

    def test_outputs_of_the_caller(self):
        x, h = inputs(), np.zeros((2, 2, 40, 24), np.float32)
        found = forward("simple-gla", **x, h=h)
        self.assertIs(found.h, h)
        self.assertLess(error(h, expected(x)[0]), FP32)

    def test_packed_sequences(self):
        x = inputs(B=1, T=50)
        cu = [0, 13, 13, 50]
        states = inputs(B=3)["S0"]
        for dtype in (np.int32, np.int64):
            found = forward("simple-gla", **{**x, "S0": states}, cu=np.array(cu, dtype), want=["S"])
            for n, (begin, end) in enumerate(zip(cu, cu[1:])):
                piece = {name: t[:, :, begin:end] for name, t in x.items() if name != "S0"}
                h, S = expected({**piece, "S0": states[n : n + 1]}) if end > begin else (None, states[n : n + 1])
                self.assertLess(error(found.S[n : n + 1], S), FP32)
                if end > begin:
                    self.assertLess(error(found.h[:, :, begin:end], h), FP32)

    def test_steps_in_a_pool(self):
        x = inputs(T=1)
        pool, index = np.full((5, 2, 16, 24), np.nan, np.float32), np.array([3, 1], np.int64)
        pool[index] = x.pop("S0")
        h, S = expected({**x, "S0": pool[index]})
        found = forward("simple-gla", **x, S0=pool, S=pool, index=index, step=True)
        self.assertLess(error(found.h, h), FP32)
        self.assertLess(error(pool[index], S), FP32)
        self.assertTrue(np.isnan(pool[[0, 2, 4]]).all())

    def test_slots_of_their_own(self):
        """One sequence begins from zero, one ends nowhere."""
        x = inputs(B=3, T=1)
        S0, pool = x.pop("S0"), np.full((5, 2, 16, 24), np.nan, np.float32)
        pool[[4, 1]] = S0[[1, 2]]
        S0[0] = 0
        out = np.full((4, 2, 16, 24), np.nan, np.float32)
        found = forward("simple-gla", **x, S0=pool, S=out, index=np.array([-1, 4, 1], np.int32),
                        index_out=np.array([2, 0, -1]), step=True)
        h, S = expected({**x, "S0": S0})
        self.assertLess(error(found.h, h), FP32)
        self.assertLess(error(out[[2, 0]], S[:2]), FP32)
        self.assertTrue(np.isnan(out[[1, 3]]).all())

    def test_states_behind_each_token(self):
        x = inputs(T=3)
        pool = np.full((9, 2, 16, 24), np.nan, np.float32)
        pool[[8, 0]] = x["S0"]
        slots, count = np.array([[1, 2, 3], [4, 5, 6]]), np.array([3, 2], np.int32)
        states = pool.copy()
        found = forward("simple-gla", **{**x, "S0": pool}, S=states, index=np.array([8, 0]), index_out=slots,
                        count=count, step=True)
        for b in range(2):
            for t in range(count[b]):
                one = {n: a[b : b + 1, :, : t + 1] if n != "S0" else a[b : b + 1] for n, a in x.items()}
                h, S = expected(one)
                self.assertLess(error(found.h[b, :, t], h[0, :, t]), FP32)
                self.assertLess(error(states[slots[b, t]], S[0]), FP32)
        self.assertTrue(np.isnan(states[[6, 7]]).all() and not found.h[1, :, 2].any())

    def test_order_and_type_of_states(self):
        x = inputs()
        found = forward("simple-gla", **{**x, "S0": x["S0"].swapaxes(-1, -2).copy()}, want=["S"], state_v_first=True)
        h, S = expected(x)
        self.assertLess(error(found.h, h), FP32)
        self.assertLess(error(found.S.swapaxes(-1, -2), S), FP32)
        x["S0"] = x["S0"].astype(np.float16)
        found = forward("simple-gla", **x, want=["S"])
        h, S = expected(x)
        self.assertEqual(found.S.dtype, np.float16)
        self.assertLess(error(found.h, h), FP32)
        self.assertLess(error(found.S, S), F16)

    def test_no_tokens(self):
        x = inputs(T=0)
        found = forward("simple-gla", **x, want=["S"])
        self.assertEqual(found.h.shape, (2, 2, 0, 24))
        np.testing.assert_array_equal(found.S, x["S0"])

    def test_threads(self):
        x, errors = inputs(), []

        def run():
            for _ in range(3):
                errors.append(error(forward("simple-gla", **x).h, expected(x)[0]))

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(errors), 9)
        self.assertLess(max(errors), FP32)


class Variants(unittest.TestCase):
    """Signatures with something of their own: parameters, states of several tensors, no dqk."""

    def test_mlstm_exp(self):
        x = inputs()
        gates = {n: np.random.default_rng(9).standard_normal((2, 2, 40)).astype(np.float32) for n in "fi"}
        qkv = {n: x[n] for n in "qkv"}
        found = forward("mlstm-exp", **qkv, **gates, want=["C", "n", "m"])
        for name, value in zip("hCnm", mlstm(**qkv, **gates, scale=0.25)):
            self.assertLess(error(found[name], value), 4 * FP32, name)

    def test_delta_net(self):
        x = inputs(groups=2)
        beta = np.random.default_rng(1).random((2, 2, 40)).astype(np.float32)
        found = forward("delta-net-unit", q=x["q"], k=x["k"], v=x["v"], beta=beta, S0=x["S0"], want=["S"])
        h, S = delta(x["q"], x["k"], x["v"], beta, 0.25, S0=x["S0"], unit=True)
        self.assertLess(error(found.h, h), FP32)
        self.assertLess(error(found.S, S), FP32)

    def test_rms_norm(self):
        x = inputs()["v"]
        weight = np.linspace(0.5, 1.5, 48, dtype=np.float32).reshape(2, 24)
        h = forward("rms-norm", x=x, weight=weight).h
        norm = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
        self.assertLess(error(h, norm * weight[None, :, None]), FP32)

    def test_every_variant_has_a_signature(self):
        for name in ("lightning", "gla", "dfw", "rwkv6", "kda-safe", "mamba2", "nla-full", "conv4-bias", "lrpe"):
            for of in (tegula.signature(name), tegula.signature(f"{name}-backward")):
                self.assertTrue(of.inputs and of.outputs)
        self.assertEqual(tegula.signature("kda-safe").scalars["lower_bound"], -5)


class Backward(unittest.TestCase):
    def test_gradients_are_slopes(self):
        x, rng = inputs(T=20), np.random.default_rng(5)
        dh, dS = rng.standard_normal((2, 2, 20, 24)), rng.standard_normal((2, 2, 16, 24))
        found = tegula.backward("simple-gla", **x, dh=dh.astype(np.float32), dS=dS.astype(np.float32), want=["dS0"],
                                device=DEVICE)
        names = ["q", "k", "v", "a", "S0"]
        directions = [rng.standard_normal(x[n].shape) for n in names]

        def loss(*moved):
            h, S = expected(dict(zip(names, moved)))
            return (h * dh).sum() + (S * dS).sum()

        for name, direction in zip(names, directions):
            alone = [d if n == name else 0 * d for n, d in zip(names, directions)]
            wanted = slope(loss, [x[n] for n in names], alone)
            size = np.sqrt((found[f"d{name}"].astype(np.float64) ** 2).sum()) * np.sqrt((direction**2).sum())
            self.assertLess(abs((found[f"d{name}"] * direction).sum() - wanted), 1e-4 * size, name)


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnlyCuda:
    def __init__(self, array):
        self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__


class Turned:
    """[B, T, NH, ...] in memory, [B, NH, T, ...] to see."""

    def __init__(self, array):
        on_device = tegula.to_device(array.swapaxes(1, 2).copy(), DEVICE)
        B, T, H, *rest = on_device.shape
        step = int(np.prod(rest, initial=4))
        inner = tuple(4 * int(np.prod(rest[i + 1 :])) for i in range(len(rest)))
        interface = {**on_device.__cuda_array_interface__, "shape": (B, H, T, *rest),
                     "strides": (T * H * step, step, H * step, *inner)}
        self.kept, self.__cuda_array_interface__ = on_device, interface


class Doors(unittest.TestCase):
    def test_dlpack(self):
        x = inputs()
        h = np.empty((2, 2, 40, 24), np.float32)
        forward("simple-gla", **{n: OnlyDlpack(t) for n, t in x.items()}, h=h)
        self.assertLess(error(h, expected(x)[0]), FP32)

    def test_a_table_on_the_host_beside_device_arrays(self):
        x, cu = inputs(B=1), np.array([0, 9, 40])
        del x["S0"]
        on_device = {n: tegula.to_device(t, DEVICE) for n, t in x.items()}
        found = tegula.forward("simple-gla", **on_device, cu=cu).h
        wanted = forward("simple-gla", **x, cu=cu).h
        self.assertTrue((found.copy_to(np.empty_like(wanted)) == wanted).all())

    def test_device_arrays(self):
        x = inputs()

        def dense(t):
            return tegula.to_device(t, DEVICE)

        for wrap in (dense, lambda t: OnlyCuda(dense(t)), Turned):
            on_device = {n: dense(t) if n == "S0" else wrap(t) for n, t in x.items()}
            found = forward("simple-gla", **on_device, want=["S"])
            self.assertIsInstance(found.h, tegula.DeviceArray)
            h = found.h.copy_to(np.empty(found.h.shape, np.float32))
            self.assertLess(error(h, expected(x)[0]), FP32)


    def test_calls_that_are_alike(self):
        """The first leaves a plan. Addresses differ; other scalars, strides and outputs make other plans."""
        def host(array):
            return array.copy_to(np.empty(array.shape, np.float32))

        operator = tegula.Operator("simple-gla", device=DEVICE)
        for seed in range(3):
            x = inputs(seed=seed)
            on_device = {n: tegula.to_device(t, DEVICE) for n, t in x.items()}
            found = operator(**on_device, want=["S"])
            for name, expected_ in zip(("h", "S"), expected(x)):
                self.assertLess(error(host(found[name]), expected_), FP32)
            h = tegula.to_device(np.zeros((2, 2, 40, 24), np.float32), DEVICE)
            twice = operator(**on_device, h=h, scale=0.5)
            self.assertIs(twice.h, h)
            self.assertLess(error(host(h), 2 * expected(x)[0]), FP32)
        self.assertEqual(len(operator._plans), 2)
        with self.assertRaises(tegula.Error):
            operator(**{**on_device, "a": on_device["v"]}, want=["S"])

    def test_steps_that_are_alike(self):
        x, pool, index = inputs(T=1), np.zeros((5, 2, 16, 24), np.float32), np.array([3, 1], np.int32)
        pool[index] = S = x.pop("S0")
        on_device = {n: tegula.to_device(t, DEVICE) for n, t in {**x, "S0": pool, "index": index}.items()}
        for _ in range(3):
            found = forward("simple-gla", **on_device, S=on_device["S0"], step=True)
            h, S = expected({**x, "S0": S})
            self.assertLess(error(found.h.copy_to(np.empty_like(x["v"])), h), FP32)
        self.assertLess(error(on_device["S0"].copy_to(pool)[index], S), FP32)


class Views(unittest.TestCase):
    """Calls of libtegula-torch: described once, and made by Python where something is on the host."""

    def call(self, x, cu):
        operator = tegula.Operator("simple-gla")
        where = tegula._device.device(DEVICE)
        tables = {"cu": view("cu", cu, None, None)}
        arrays = {n: tegula.to_device(t, DEVICE) for n, t in x.items()}
        given = {**{n: a._tegula_view for n, a in arrays.items()}, **tables}
        found = operator.describe(where, given, {}, ("S",), How())
        return operator, where, given, found

    def test_a_table_on_the_host(self):
        x = inputs(B=1, T=40)
        x["S0"] = np.concatenate([x["S0"]] * 2)
        cu = np.array([0, 9, 40])
        operator, where, given, found = self.call(x, cu)
        self.assertIsNone(found.arguments)
        self.assertEqual(found.outputs, {"h": ((1, 2, 40, 24), "float32"), "S": ((2, 2, 16, 24), "float32")})
        made = {n: tegula.DeviceArray(where, *of) for n, of in found.outputs.items()}
        scratch = tegula.DeviceArray(where, (found.workspace // 4 + 1,), "float32")
        operator.run_views(where, {**given, **{n: a._tegula_view for n, a in made.items()}}, {}, How(), 0,
                           scratch._tegula_view.address, tuple(made))
        wanted = forward("simple-gla", **x, cu=cu, want=["S"])
        for name, array in made.items():
            found = array.copy_to(np.empty(array.shape, "f"))
            self.assertTrue((found == wanted[name]).all(), name)
        with self.assertRaises(tegula.Error) as caught:
            operator.run_views(where, {**given, "cu": view("cu", cu + 1, None, None)}, {}, How(), 0, 0, ())
        self.assertEqual(caught.exception.field, "cu")

    def test_nothing_on_the_host(self):
        x = inputs()
        operator, where = tegula.Operator("simple-gla"), tegula._device.device(DEVICE)
        arrays = {n: tegula.to_device(t, DEVICE) for n, t in x.items()}
        found = operator.describe(where, {n: a._tegula_view for n, a in arrays.items()}, {"scale": 2}, (), How())
        self.assertEqual([a.name for a in found.arguments], [b"q", b"k", b"v", b"a", b"S0", b"h"])
        self.assertEqual((found.workspace, list(found.scalars)), (found.kind.workspace, [2]))


class Errors(unittest.TestCase):
    def fails(self, field, expected_text, found, variant="simple-gla", **changes):
        call = {**inputs(), **changes}
        with self.assertRaises(tegula.Error) as caught:
            forward(variant, **call)
        error_ = caught.exception
        self.assertEqual(error_.field, field, str(error_))
        self.assertIn(expected_text, error_.expected)
        self.assertIn(found, error_.found)

    def test_each_names_field_expected_and_found(self):
        x = inputs()
        f32 = np.float32
        self.fails("variant", "`tegula variants`", "simple", variant="simple")
        self.fails("variant", "`tegula variants`", "None", variant=None)
        self.fails("variant", "`tegula variants`", "[]", variant=[])
        self.fails("scale", "a number", "'x'", scale="x")
        self.fails("chunk", "a whole number", "64.0", chunk=64.0)
        self.fails("chunk", "a whole number", "-1", chunk=-1)
        self.fails("want", "in a list", "'S'", want="S")
        self.fails("g", "q, k, v, S0, h, S, a", "'g'", g=x["a"])
        self.fails("a", "[B, NH, T]", "none", a=None)
        self.fails("k", "B = 2 as in q", "[1, 2, 40, 16]", k=x["k"][:1])
        self.fails("a", "3 axes [B, NH, T]", "[2, 2, 40, 1]", a=x["a"][..., None])
        self.fails("q.dtype", "bfloat16 or float16 or float32", "float64", q=x["q"].astype(np.float64))
        self.fails("v.dtype", "float32 like q", "float16", v=x["v"].astype(np.float16))
        self.fails("a.dtype", "float32", "float16", a=x["a"].astype(np.float16))
        self.fails("layout", '"bhtd" or "bthd"', "'hbtd'", layout="hbtd")
        self.fails("q", "an array of PyTorch or NumPy", "list", q=[1.0])
        self.fails("cu", "end with T = 40", "[0, 7]", cu=np.array([0, 7], np.int32),
                   **{n: x[n][:1] for n in ("q", "k", "v", "a", "S0")})
        self.fails("index", "slots below 2", "[0, 2]", index=np.array([0, 2]), S=np.zeros((2, 2, 16, 24), f32))
        self.fails("index", "a slot for every sequence", "a sequence without one", index=np.array([0, -1]),
                   S=np.zeros((2, 2, 16, 24), f32))
        self.fails("count", "up to T = 3", "[1, 4]", index=np.array([0, 1]), count=np.array([1, 4]), step=True,
                   **{**inputs(T=3), "S": np.zeros((2, 2, 16, 24), f32)})
        self.fails("S.dtype", "float32 like S0", "float16", S=np.zeros((2, 2, 16, 24), np.float16))
        self.fails("S", "an array of slots", "none", index=np.array([0, 1]), want=["S"])
        self.fails("h", "T = 40", "[2, 2, 39, 24]", h=np.zeros((2, 2, 39, 24), f32))
        self.fails("q.dtype", "bfloat16 or float16 or float32", ">f4", q=x["q"].astype(">f4"))
        self.fails("a.dtype", "float32", ">f4", a=x["a"].astype(">f4"))
        self.fails("S.dtype", "float32", ">f4", S=np.zeros((2, 2, 16, 24), ">f4"))
        self.fails("index.dtype", "int32 or int64", ">i8", index=np.array([0, 1], ">i8"), S=x["S0"].copy())
        fixed = np.zeros((2, 2, 16, 24), f32)
        fixed.flags.writeable = False
        self.fails("S", "an array that may be written", "read-only", S=fixed)
        self.assertFalse(fixed.any())
        self.fails("q.device", f"device {DEVICE}", "the host", v=tegula.to_device(x["v"], DEVICE))
        self.fails("NH", "a multiple of the 3", "4", q=np.zeros((2, 3, 40, 16), f32),
                   k=np.zeros((2, 3, 40, 16), f32), v=np.zeros((2, 4, 40, 24), f32),
                   a=np.zeros((2, 4, 40), f32), S0=None)

    def test_those_of_the_libraries(self):
        with self.assertRaises(tegula.Error) as caught:
            x = inputs(K=520)
            forward("simple-gla", **x)
        self.assertIn("dqk", str(caught.exception))
        self.assertTrue(caught.exception.code.startswith("TG"))
        with self.assertRaises(tegula.Error) as caught:
            forward("simple-gla", **inputs(), index=np.array([0, 1]), count=np.array([1, 1]), S=inputs()["S0"])
        self.assertEqual(caught.exception.code, "TG0547")
        self.assertEqual(len(caught.exception.messages), 1)  # not why each schedule does not fit
        with self.assertRaises(tegula.Error) as caught:
            forward("simple-gla", **inputs(), scale=float("nan"))
        self.assertEqual(caught.exception.code, "TG0829")
        for device in ("gpu", [0]):
            with self.assertRaises(tegula.Error) as caught:
                tegula.forward("simple-gla", **inputs(), device=device)
            self.assertEqual(caught.exception.field, "device")
