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

_cached = functools.cache(Operator)


def _operator(variant, device):
    """What cannot be a key gets the operator's own error."""
    is_key = isinstance(variant, str) and isinstance(device, (int, str, type(None)))
    return (_cached if is_key else Operator)(variant, device)


def forward(variant, *, device=None, **call):
    """A variant's outputs: Operator(variant, device)(**call)."""
    return _operator(variant, device)(**call)


def backward(variant, *, device=None, **call):
    """A variant's gradients, as `forward` of "VARIANT-backward"."""
    return _operator(f"{variant}-backward" if isinstance(variant, str) else variant, device)(**call)
