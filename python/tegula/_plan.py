"""Calls like one before on arrays that lie on the device: of a plan, which the first of them leaves, only addresses are new.

Alike are calls with the same options and scalars, on arrays of the same names, shapes, strides and types.
"""

import sys
from ctypes import byref, c_uint64, c_void_p, sizeof

from . import _c
from ._arrays import is_torch
from ._device import DeviceArray

_WORDS = sizeof(_c.TensorArg) // 8
_ADDRESS = _c.TensorArg.address.offset // 8


def key(given, scalars, *options):
    """What calls that are alike have in common; None where an array may be on the host."""
    parts = [options]
    for name, value in given.items():
        if name in scalars:
            if not isinstance(value, (int, float)):
                return None
            parts.append((name, value))
        elif hasattr(value, "_tegula_view"):
            view = value._tegula_view
            parts.append((name, view.shape, view.strides, view.dtype, view.device))
        elif is_torch(value) and value.is_cuda and not value.is_neg() and value.layout is sys.modules["torch"].strided:
            parts.append((name, value.shape, value.stride(), value.dtype, value.get_device()))
        else:
            return None
    return tuple(parts)


def _address(array):
    return array._tegula_view.address if hasattr(array, "_tegula_view") else array.data_ptr()


class Plan:
    def __init__(self, call, kind, arguments, results):
        """Of a call that was made with these arguments and yielded these results."""
        self.where, self.kind, self.scalars = call.where, kind, call.scalar_values(kind)
        self.template, self.words = arguments, c_uint64 * (_WORDS * len(arguments))
        at = {argument.name.decode(): _WORDS * i + _ADDRESS for i, argument in enumerate(arguments)}
        self.given = [(name, at[name]) for name in call.given if name in at]
        self.made = [(name, at.get(name), name in call.given, tuple(array.shape), array.dtype)
                     for name, array in results.items()]
        self.torch = sys.modules["torch"] if is_torch(call.like) else None
        self.device = call.like.device if self.torch else None

    def run(self, given, results):
        """Launches, and yields the results, which are put into `results`."""
        self.where.enter()
        words = self.words.from_buffer_copy(self.template)
        for name, at in self.given:
            words[at] = _address(given[name])
        for name, at, is_given, shape, dtype in self.made:
            results[name] = array = given[name] if is_given else self._empty(shape, dtype)
            if at is not None:
                words[at] = _address(array)
        stream, workspace, _kept = self._scratch(self.kind.workspace)
        _c.call("tg_launch", self.kind.module, byref(self.kind.c_sizes), self.scalars, words, len(self.template),
                c_uint64(workspace), c_void_p(stream))
        return results

    def _empty(self, shape, dtype):
        if self.torch:
            return self.torch.empty(shape, dtype=dtype, device=self.device)
        return DeviceArray(self.where, shape, dtype)

    def _scratch(self, n):
        """The stream, the workspace, and what keeps that."""
        if not self.torch:
            return 0, self.where.workspace(n, 0) if n else 0, None
        stream = self.torch.cuda.current_stream(self.device).cuda_stream
        kept = self._empty(n, self.torch.uint8) if n else None
        return stream, kept.data_ptr() if n else 0, kept
