"""run.py [--device N] MODULE[.CLASS]...: test modules of this folder, as TAP, on the emulator or on GPU N. One that needs
a package which is not there says so."""

import argparse
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int)
    parser.add_argument("module", nargs="+")
    options, result = parser.parse_args(), Tap()
    if options.device is not None:
        use_gpu(options.device)
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
