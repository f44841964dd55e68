"""Kernels of the linear-attention family, compiled at their first call: docs/python.md.

    import tegula
    h = tegula.forward("simple-gla", q=q, k=k, v=v, a=a).h
"""

import functools

from ._c import Error
from ._device import DeviceArray, to_device
from ._operator import Operator, Results
from ._signature import Signature, signature

__all__ = ["DeviceArray", "Error", "Operator", "Results", "Signature", "backward", "forward", "signature", "to_device"]

_operator = functools.cache(Operator)


def forward(variant, *, device=None, **call):
    """A variant's outputs: Operator(variant, device)(**call)."""
    return _operator(variant, device)(**call)


def backward(variant, *, device=None, **call):
    """A variant's gradients, as `forward` of "VARIANT-backward"."""
    return _operator(f"{variant}-backward", device)(**call)
