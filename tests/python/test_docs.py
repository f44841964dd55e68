"""The blocks of docs/python.md run, one after the other in one namespace; those that want PyTorch where it is. And the
example of README.md."""

import importlib.util
import os
import re
import runpy
import unittest
import warnings

import numpy  # noqa: F401 - the first block's

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs", "python.md")


class Page(unittest.TestCase):
    def test_example(self):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "there is no GPU", RuntimeWarning)
            runpy.run_path(os.path.join(ROOT, "examples", "python", "first.py"))

    def test_blocks(self):
        with open(PAGE) as page:
            found = re.findall(r"(<!-- not run: [^\n]*\n)?^```python\n(.*?)^```", page.read(), re.DOTALL | re.MULTILINE)
        blocks = [block for note, block in found if not note]
        self.assertGreater(len(blocks), 3)
        names, left_out = {}, 0
        for block in blocks:
            if "torch" in block and importlib.util.find_spec("torch") is None:
                left_out += 1
                continue
            exec(compile(block, PAGE, "exec"), names)  # noqa: S102
        if left_out:
            self.skipTest(f"this Python has no torch: {left_out} of {len(blocks)} blocks")
