"""tegula.fla.install() on a flash-linear-attention in miniature: names in modules, and both kinds of its registry; and the
same for mlstm_kernels, with its dictionaries, and mamba_ssm."""

import sys
import types
import unittest
import warnings

import numpy as np
import tegula
from tegula import fla, mamba, mlstm

warnings.filterwarnings("ignore", "there is no GPU", RuntimeWarning)


class BaseBackend:
    priority = 5


class Registry:
    """Asks backends by priority, then the function itself."""

    known = {}

    def __init__(self):
        self._backends = {}

    def register(self, backend):
        self._backends[backend.backend_type] = backend

    def dispatch(self, function):
        def asks(*args, **kwargs):
            for backend in self._backends.values():
                accepted, _reason = backend.verify(function.__name__, *args, **kwargs)
                if accepted:
                    return getattr(backend, function.__name__)(*args, **kwargs)
            return function(*args, **kwargs)

        asks.__wrapped__ = function
        return asks

    # as FLA before 0.6 has them
    _registries = known

    @classmethod
    def ensure_initialized(cls, operation):
        cls.known.setdefault(operation, cls())


def chunk_gla(*args, **kwargs):
    return "theirs"


def chunk_kda(*args, **kwargs):
    return "theirs"


def chunk_gated_delta_rule(*args, **kwargs):
    return "theirs"


class Swap(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(0)
        self.x = list(rng.standard_normal((3, 1, 12, 2, 16), dtype=np.float32))
        self.g = -rng.random((1, 12, 2, 16), dtype=np.float32)
        self.beta = rng.random((1, 12, 2), dtype=np.float32)
        self.made = []
        self.addCleanup(self.remove)

    def remove(self):
        fla.uninstall()
        for name in self.made:
            sys.modules.pop(name, None)

    def module(self, name, **content):
        made = sys.modules[name] = types.ModuleType(name)
        made.__dict__.update(content, __path__=[])
        self.made.append(name)
        return made

    def make(self, is_new):
        """kda by a registry of its function, the gated delta rule by one of its operation."""
        self.kda, self.gated = Registry(), Registry()
        kda, gated = self.kda.dispatch(chunk_kda), self.gated.dispatch(chunk_gated_delta_rule)
        self.module("fla")
        self.module("fla.ops")
        for name, function in (("gla", chunk_gla), ("kda", kda), ("gated_delta_rule", gated)):
            self.module(f"fla.ops.{name}", **{f"chunk_{name}": function})
        if is_new:
            self.module("fla.backends", BaseBackend=BaseBackend, _function_registries={chunk_kda: self.kda},
                        _operation_registries={"gated_delta_rule": self.gated})
        else:
            Registry.known.clear()
            Registry.known.update(kda=self.kda, gated_delta_rule=self.gated)
            self.module("fla.ops.backends", BaseBackend=BaseBackend, BackendRegistry=Registry)
        self.kept = kda, gated
        return self.module("of_a_user", attend=chunk_gla)

    def run_all(self, user):
        """By the user's name, by FLA's names and by functions that were kept: what each yields."""
        ops, (kda, gated) = sys.modules, self.kept
        return [user.attend(*self.x, self.g), ops["fla.ops.kda"].chunk_kda(*self.x, self.g, self.beta),
                kda(*self.x, self.g, self.beta), gated(*self.x, self.g[..., 0], self.beta)]

    def test_in_all_places(self):
        for is_new in (False, True):
            user = self.make(is_new)
            self.assertEqual(fla.install(), ["chunk_gated_delta_rule", "chunk_gla", "chunk_kda"])
            expected = [fla.chunk_gla(*self.x, self.g), *[fla.chunk_kda(*self.x, self.g, self.beta)] * 2,
                        fla.chunk_gated_delta_rule(*self.x, self.g[..., 0], self.beta)]
            for found, wanted in zip(self.run_all(user), expected):
                np.testing.assert_array_equal(found[0], wanted[0])
            fla.install()  # once more changes nothing
            fla.uninstall()
            self.assertEqual(self.run_all(user), ["theirs"] * 4)
            self.assertIs(user.attend, chunk_gla)
            self.assertFalse(self.kda._backends or self.gated._backends)

    def test_what_is_refused(self):
        user = self.make(True)
        kda = self.kept[0]
        fla.install()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(user.attend(*self.x, self.g, scale="x"), "theirs")
        self.assertIn("scale: expected a number", str(caught[-1].message))
        self.assertEqual(kda(*self.x, self.g, self.beta, cp_context=self), "theirs")
        fla.install(strict=True)
        self.assertIs(user.attend, fla.chunk_gla)
        for call in (lambda: user.attend(*self.x, self.g, scale="x"),
                     lambda: kda(*self.x, self.g, self.beta, cp_context=self)):
            with self.assertRaises(tegula.Error):
                call()

    def test_without_the_peer(self):
        self.module("fla")
        for package, ours in (("fla", fla), ("mlstm_kernels", mlstm), ("mamba_ssm", mamba)):
            with self.assertRaises(tegula.Error) as caught:
                ours.install()
            self.assertEqual(caught.exception.field, package)

    def test_registries_of_mlstm_kernels(self):
        def mlstm_chunkwise__xl_chunk(*args, **kwargs):
            return "theirs"

        def mlstm_recurrent_step__triton(*args, **kwargs):
            return "theirs"

        for name in ("mlstm_kernels", "mlstm_kernels.torch"):
            self.module(name)
        kernels, steps = {"native": len, "triton_xl_chunk": mlstm_chunkwise__xl_chunk}, {"triton": mlstm_recurrent_step__triton}
        self.module("mlstm_kernels.torch.chunkwise", registry=kernels, mlstm_chunkwise__xl_chunk=mlstm_chunkwise__xl_chunk)
        self.module("mlstm_kernels.torch.recurrent", registry_step=steps,
                    mlstm_recurrent_step__triton=mlstm_recurrent_step__triton)
        self.addCleanup(mlstm.uninstall)
        self.assertEqual(mlstm.install(), ["mlstm_chunkwise__xl_chunk", "mlstm_recurrent_step__triton"])
        x = [t.swapaxes(1, 2) for t in (*self.x, self.g[..., 0], self.beta)]
        np.testing.assert_array_equal(kernels["triton_xl_chunk"](*x, chunk_size=64), mlstm.mlstm_chunkwise__xl_chunk(*x))
        self.assertIs(kernels["native"], len)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(steps["triton"](*x, None, None, None, colour=1), "theirs")
        self.assertIn("mlstm_recurrent_step: colour", str(caught[-1].message))
        mlstm.uninstall()
        self.assertIs(kernels["triton_xl_chunk"], mlstm_chunkwise__xl_chunk)
        self.assertIs(sys.modules["mlstm_kernels.torch.recurrent"].mlstm_recurrent_step__triton, mlstm_recurrent_step__triton)

    def test_functions_of_mamba_ssm(self):
        def selective_state_update(*args, **kwargs):
            return "theirs"

        for name in ("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton", "mamba_ssm.ops.triton.ssd_combined"):
            self.module(name)
        self.module("mamba_ssm.ops.triton.selective_state_update", selective_state_update=selective_state_update)
        user = self.module("of_a_user", step=selective_state_update)
        self.addCleanup(mamba.uninstall)
        self.assertEqual(mamba.install(strict=True), ["selective_state_update"])
        self.assertIs(user.step, mamba.selective_state_update)
        mamba.uninstall()
        self.assertIs(user.step, selective_state_update)
