"""What the peers' signatures are made of: a call by variant for arrays of either library, and functions on them."""

import functools
import sys

from ._arrays import is_torch
from ._c import all_variants, wrong
from ._operator import Operator, Results
from ._signature import signature
from ._widths import filled

STEP = 8  # tokens: what a decode step has at most
_operators, _signatures = {}, {name: signature(name) for name in all_variants()}


def call(variant, final_state=False, layout="bthd", state_v_first=False, step=False, cu=None, cp=None, **given):
    """The variant's outputs, on tensors of PyTorch with gradients; `cp`: the context of tokens that lie on several ranks."""
    if cp is None and any(is_torch(x) for x in given.values()):
        from . import torch
        function = getattr(torch, variant.replace("-", "_"))
        return function(final_state=final_state, layout=layout, state_v_first=state_v_first, step=step, cu=cu, **given)
    of = _signatures[variant]
    given, cut = filled(of, given, layout, state_v_first) or (given, None)
    if cp is not None:
        found = cp.call(variant, final_state=final_state, layout=layout, state_v_first=state_v_first, **given)
    else:
        operator = _operators.setdefault(variant, Operator(variant))
        states = [t.name for t in of.outputs if t.optional and t.is_state]
        found = operator(want=states if final_state else (), layout=layout, state_v_first=state_v_first, step=step,
                         cu=cu, **given)
    return Results(cut(found)) if cut else found


def update(variant, pools, index, **given):
    """A decode step on states in slots of `pools`, by the final states' names, which it changes in place."""
    if not any(is_torch(x) for x in given.values()):
        given.update((f"{name}0", pool) for name, pool in pools.items())
    return call(variant, step=True, index=index, **pools, **given)


def refuse(function, hints, **options):
    """Options that have no other meaning here than their default: `hints` has what to do instead, by name."""
    for name, (value, default) in options.items():
        if value is not default and (default is None or value != default):
            raise wrong(f"{function}: {name}", repr(default), repr(value), hints[name])


def unknown(function, options, taken):
    """Of **kwargs: those of the peer that change no result are taken."""
    for name in options:
        if name not in taken:
            raise wrong(f"{function}: {name}", "an argument of its signature", repr(name))


def given(function, **arrays):
    """That what an option needs is there."""
    for name, (array, why) in arrays.items():
        if array is None:
            raise wrong(f"{function}: {name}", f"an array, which {why} needs", "None")


# ---- functions on arrays of either library ----


def library(x):
    return sys.modules["torch" if is_torch(x) else "numpy"]


def f32(x):
    if x is None:
        return None
    if not hasattr(x, "dtype"):
        raise wrong("array", "one of PyTorch or NumPy", repr(x))
    return x.float() if is_torch(x) else x.astype("float32")


def like(x, other):
    """x in the type of another array."""
    return x.to(other.dtype) if is_torch(x) else x.astype(other.dtype)


def of_one_type(*arrays):
    """In the widest of their types, where they have several."""
    first, *others = (x.dtype for x in arrays)
    if all(dtype == first for dtype in others):
        return arrays
    promote = library(arrays[0]).promote_types
    dtype = functools.reduce(promote, others, first)
    return tuple(x.to(dtype) if is_torch(x) else x.astype(dtype) for x in arrays)


def flip(x, axis):
    """The other way round along an axis."""
    return x.flip(axis) if is_torch(x) else library(x).flip(x, axis)


def joined(arrays, axis):
    """One behind the other along an axis."""
    return library(arrays[0]).concatenate(tuple(arrays), axis)


def beside(*arrays):
    """Their last axes one behind the other."""
    return joined(arrays, -1)


def fixed(x):
    """Without a gradient."""
    return x.detach() if is_torch(x) else x


def zeros(x, shape):
    """float32 zeros beside x."""
    if is_torch(x):
        return x.new_zeros(tuple(shape), dtype=library(x).float32)
    return library(x).zeros(tuple(shape), "float32")


def first_numbers(x, n):
    """0, 1, ... beside x."""
    return library(x).arange(n, device=x.device) if is_torch(x) else library(x).arange(n)


def numbers(x, values):
    """float32 numbers beside x."""
    if is_torch(x):
        import torch
        return torch.tensor(values, dtype=torch.float32, device=x.device)
    return library(x).array(values, "float32")


def sigmoid(x):
    return x.sigmoid() if is_torch(x) else 1 / (1 + library(x).exp(-x))


def softplus(x):
    if is_torch(x):
        return library(x).nn.functional.softplus(x)
    return library(x).logaddexp(x, 0)


def exp(x):
    return library(x).exp(x)


def expm1(x):
    return library(x).expm1(x)


def log(x):
    return library(x).log(x)


def is_tied(x, n):
    """The last n axes are one number each, by strides of 0."""
    strides = x.stride() if is_torch(x) else x.strides
    return not any(stride for stride, extent in zip(strides[-n:], x.shape[-n:]) if extent > 1)


def unit(x, eps=1e-6):
    """Rows by x / sqrt(|x|^2 + eps), in the type of x."""
    y = f32(x)
    return like(y / ((y * y).sum(-1)[..., None] + eps) ** 0.5, x)


def clamp(x, low, high):
    return x.clamp(low, high) if is_torch(x) else library(x).clip(x, low, high)
