"""run.py MODULE...: test modules of this folder, as TAP. One that needs a package which is not there says so."""

import importlib
import sys
import unittest


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


def main():
    result = Tap()
    for name in sys.argv[1:]:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name not in ("numpy", "torch", "ml_dtypes"):
                raise
            result.n += 1
            print(f"ok {result.n} - {name} # SKIP this Python has no {missing.name}")
            continue
        unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    print(f"1..{result.n}")
    return not result.wasSuccessful()


sys.exit(main())
