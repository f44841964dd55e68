"""Context parallelism on 1, 2 and 4 processes, on GPUs on 8 too (ranks.py has the cases), and what can be seen without
ranks: which tokens lie where, and what a piece makes of a state. On several GPUs: by NCCL."""

import functools
import os
import subprocess
import sys
import tempfile
import unittest

import torch
import where

import ranks
import tegula.torch as operators
from tegula import _carry, _fragments


class Fragments(unittest.TestCase):
    """Every token is in one piece, and chains of fragments are those that a sequence lies in."""

    def test_pieces(self):
        for cu in ([0, 24], [0, 1, 24], [0, 5, 5, 12, 13, 24, 24], [0, 0, 6, 12, 18, 24]):
            for size, layout in ((1, "contiguous"), (3, "contiguous"), (1, "zigzag"), (2, "zigzag"), (4, "contiguous")):
                self.covers(cu, layout, size)

    def covers(self, cu, layout, size):
        n = size * (1 if layout == "contiguous" else 2)
        per, seen, begins, ends = 24 // n, [], [], []
        for rank in range(size):
            pieces = _fragments.packed(cu, layout, size, rank)
            self.assertEqual(pieces.exchanges, any(f * per not in cu for f in range(1, n)))
            mine = [t for f in _fragments.indices(layout, size, rank) for t in range(f * per, (f + 1) * per)]
            for row, s in enumerate(pieces.sequences):
                tokens = mine[pieces.cu[row] : pieces.cu[row + 1]]
                seen += tokens
                self.assertTrue(all(cu[s] <= t < cu[s + 1] for t in tokens))
                begins += [s] * pieces.begins[row]
                ends += [s] * pieces.ends[row]
            for f in pieces.fragments:
                self.assertEqual(mine[slice(*f.first_tokens)][:1], [f.index * per] * (f.first_tokens[0] < f.first_tokens[1]))
                first, last = (pieces.sequences[rows.start] for rows in (f.first, f.last))
                self.assertEqual(f.before, len({t // per for t in range(cu[first], f.index * per)}))
                self.assertEqual(f.after, len({t // per for t in range((f.index + 1) * per, cu[last + 1])}))
        self.assertEqual(sorted(seen), list(range(24)))
        self.assertEqual((sorted(begins), sorted(ends)), (list(range(len(cu) - 1)),) * 2)


class Transitions(unittest.TestCase):
    """The gates that Python knows are those of the kernels: what these make of a state where nothing is written."""

    def test_decays(self):
        for variant, how in _carry._RULES.items():
            if type(how) is _carry.Decays:
                with self.subTest(variant):
                    self.decays(variant, how)

    def decays(self, variant, how):
        of = operators.programs[variant][0].of
        x = ranks.inputs(variant, T=9)
        x.update((name, torch.zeros_like(t)) for name, t in x.items() if name in ("v", "x"))
        states = [t.name for t in of.outputs if t.is_matrix]
        out = getattr(operators, variant.replace("-", "_"))(**x, final_state=True)
        gates = {name: t.transpose(1, 2) if "T" in of.tensors[name].axes else t for name, t in x.items()}
        found = how.transition(gates, of.scalars, (2, 9, 2), None)
        axes = {t.name: t.axes for t in of.outputs}
        expected = how.through(found, {name: x[f"{name}0"].double() for name in states}, axes, False)
        for name in states:
            self.assertLess(ranks.error(out[name], expected[name]), ranks.FP32)


@functools.cache
def run(size, on):
    """The lines of all ranks, and what the program said."""
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run([sys.executable, ranks.__file__, str(size), folder, "--on", on], capture_output=True,
                               text=True, timeout=1200)
        lines = []
        for rank in range(size):
            path = os.path.join(folder, str(rank))
            lines.append(open(path).read().splitlines() if os.path.exists(path) else [])
        return lines, found.stderr[-2000:]


class Case(unittest.TestCase):
    def passed(self, size, on, name):
        lines, said = run(size, on)
        for rank, found in enumerate(lines):
            if f"ok {name}" not in found:
                self.fail("\n".join([f"rank {rank} of {size}:", *(x for x in found if not x.startswith("ok ")), said]))


def _add(case, size, on):
    for name in ranks.names(size, on):
        word = "".join(c if c.isalnum() else "_" for c in name)
        setattr(case, f"test_{size}_{word}", functools.partialmethod(case.passed, size, on, name))


@unittest.skipUnless(where.DEVICE == "emu", "on a GPU: OneGpu and Nccl")
class Processes(Case):
    """On the emulator, by gloo."""


@unittest.skipUnless(isinstance(where.DEVICE, int), "runs with --device 0")
class OneGpu(Case):
    """All ranks on one GPU, by gloo."""


@unittest.skipUnless(isinstance(where.DEVICE, int), "runs with --device 0")
class Nccl(Case):
    """A GPU each."""

    def passed(self, size, on, name):
        if torch.cuda.device_count() < size:
            self.skipTest(f"{torch.cuda.device_count()} GPUs, and not {size}")
        super().passed(size, on, name)


for _size in (1, 2, 4):
    _add(Processes, _size, "emu")
for _size in (2, 4, 8):
    _add(OneGpu, _size, "shared")
for _size in (2, 4, 8):
    _add(Nccl, _size, "nccl")
