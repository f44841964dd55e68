"""examples/train: a few steps of each mixer go as those of the recurrence in PyTorch."""

import itertools
import os
import sys
import unittest

import torch  # noqa: F401 - the example's
import where

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "train"))
import train  # noqa: E402

ON_GPU = isinstance(where.DEVICE, int)
SIZES = "--steps 4 --report 1 --rate 0.1 --batch 2 --tokens 40 --width 32 --heads 2 --layers 2".split()


class Training(unittest.TestCase):
    def losses(self, mixer, by):
        options = train.parse(["--mixer", mixer, "--by", by, "--device", "cuda" if ON_GPU else "cpu", *SIZES])
        return [row["loss"] for row in itertools.islice(train.train(options), options.steps)]

    def test_as_the_recurrence(self):
        for mixer in train.GATES:
            found, expected = self.losses(mixer, "tegula"), self.losses(mixer, "torch")
            self.assertGreater(expected[0] - expected[-1], 0.2, mixer)
            for one, other in zip(found, expected):
                self.assertLess(abs(one - other), 3e-2 if ON_GPU else 5e-5, f"{mixer}: {found} and {expected}")
