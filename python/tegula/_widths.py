"""Widths that no kernel has, of operators with products: rows are filled up with zeros, which add nothing to a sum over keys,
and make columns of values that are cut off again. Arrays of NumPy or PyTorch.
"""

import sys

from ._arrays import is_torch
from ._signature import Form

_STEP, _LEAST = 8, 16


def is_odd(width):
    return width % _STEP != 0 or width < _LEAST


def can_fill(of, given, want):
    """Are rows arrays that can be filled up, with no outputs of the caller's and nothing that is kept for a backward?"""
    kept = {t.name for t in of.results if t.is_kept}
    rows = [given[name] for name, _ in of.rows if name in given]
    return (all((is_torch(x) or _is_numpy(x)) and x.ndim for x in rows) and not kept & {*want, *given} and
            not any(t.name in given for t in of.results))


def _is_numpy(x):
    return "numpy" in sys.modules and isinstance(x, sys.modules["numpy"].ndarray)


def filled(of, given, layout, v_first):
    """Arrays and scalars by name, with rows as long as kernels want them, and a function that cuts results by name. None: they
    are so already, or cannot be made so; states in slots of a pool stay as they are, and then so does everything."""
    missing = _missing(of, given)
    if not missing:
        return None
    axes = {name: laid.axes for name, laid in of.laid(Form(layout, v_first)).items()}

    def cut(results):
        return {name: _cut(x, axes[name], missing) for name, x in results.items()}

    found = {name: _padded(x, axes[name], missing) if name in of.tensors else x for name, x in given.items()}
    if "dqk" in missing and of.scalars["scale"] is None and given.get("scale") is None:
        found["scale"] = _width(of, given, "dqk") ** -0.5
    return found, cut


def _width(of, given, axis):
    rows = (given.get(name) for name, of_row in of.rows if of_row == axis)
    return next((x.shape[-1] for x in rows if x is not None), _LEAST)


def _missing(of, given):
    """How many elements rows lack, by axis."""
    if not of.has_products or given.get("index") is not None:
        return {}
    widths = {axis: _width(of, given, axis) for axis in ("dqk", "dhv")}
    return {axis: max(width + -width % _STEP, _LEAST) - width for axis, width in widths.items() if is_odd(width)}


def _library(x):
    return sys.modules["torch" if is_torch(x) else "numpy"]


def _padded(x, axes, missing):
    if x is None or not missing.keys() & set(axes):
        return x
    n = [missing.get(axis, 0) for axis in axes]
    if is_torch(x):
        return _library(x).nn.functional.pad(x, [m for extent in reversed(n) for m in (0, extent)])
    return _library(x).pad(x, [(0, m) for m in n])


def _cut(x, axes, missing):
    if not missing.keys() & set(axes):
        return x
    x = x[tuple(slice(n - missing.get(axis, 0)) for n, axis in zip(x.shape, axes))]
    return x.contiguous() if is_torch(x) else x
