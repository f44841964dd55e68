"""run.py [--device N] [--hopper] MODULE[.CLASS]...: test modules of this folder, as TAP, on the emulator, which may pass for
a Hopper, or on GPU N. One that needs a package which is not there says so."""

import argparse
import ctypes
import importlib
import sys
import unittest

import where


class Tap(unittest.TestResult):
    n = 0

    def line(self, test, ok, note=""):
        self.n += 1
        print(f"{'ok' if ok else 'not ok'} {self.n} - {test.id()}{note}", flush=True)

    def explain(self, trace):
        print("\n".join("#   " + line for line in trace.splitlines()))

    def addSuccess(self, test):
        self.line(test, True)

    def addSkip(self, test, reason):
        self.line(test, True, f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line(test, False)
        self.explain(self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.line(test, False)
        self.explain(self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.line(subtest, False)
            self.explain((self.failures + self.errors)[-1][1])


def use_gpu(ordinal):
    """For arrays of NumPy, and for tensors that no test places."""
    where.DEVICE = ordinal
    try:
        import torch
    except ModuleNotFoundError:
        return
    if torch.cuda.is_available():
        torch.set_default_device(f"cuda:{ordinal}")


class Config(ctypes.Structure):
    """tgemu_config"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("seed", ctypes.c_uint64), ("cc_major", ctypes.c_int),
                ("cc_minor", ctypes.c_int), ("smem_optin", ctypes.c_size_t), ("sm_count", ctypes.c_int),
                ("threads", ctypes.c_int), ("step_limit", ctypes.c_uint64), ("checks", ctypes.c_uint)]


def be_hopper():
    """Of the emulator, before anybody asks what it is."""
    from tegula import _c
    emulator, config = ctypes.CDLL(_c.library_path("tegula-emu")), Config(struct_size=ctypes.sizeof(Config))
    emulator.tgemu_get_config(ctypes.byref(config))
    config.cc_major, config.smem_optin, config.sm_count = 9, 232448, 132
    if emulator.tgemu_configure(ctypes.byref(config)):
        sys.exit("the emulator is no Hopper")
    where.IS_HOPPER = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int)
    parser.add_argument("--hopper", action="store_true")
    parser.add_argument("module", nargs="+")
    options, result = parser.parse_args(), Tap()
    if options.device is not None:
        use_gpu(options.device)
    if options.hopper:
        be_hopper()
    for name in options.module:
        try:
            importlib.import_module(name.partition(".")[0])
        except ModuleNotFoundError as missing:
            if missing.name not in ("numpy", "torch", "ml_dtypes", "transformers"):
                raise
            result.n += 1
            print(f"ok {result.n} - {name} # SKIP this Python has no {missing.name}")
            continue
        unittest.defaultTestLoader.loadTestsFromName(name).run(result)
    print(f"1..{result.n}")
    return not result.wasSuccessful()


sys.exit(main())
