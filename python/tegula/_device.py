"""A device: driver, kernels that were loaded into its context, memory. One for each ordinal, and the emulator."""

import ctypes
import functools
import os
import threading
import warnings
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from . import _c
from ._arrays import View, contiguous, dense, view as view_of


def _options():
    """Kernels and what tuning found are kept where the command keeps them."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    if not os.path.isabs(base):
        return _c.JitOptions(None, None, None)
    folder = os.path.join(base, "tegula")
    return _c.JitOptions(folder.encode(), os.path.join(folder, "wisdom.txt").encode(), None)


@functools.cache
def _driver(path):
    handle = c_void_p()
    _c.call("tg_driver_open", path, byref(handle))
    return handle


_current = threading.local()  # the device whose context was made current on this thread


class Device:
    def __init__(self, name):
        self.name, self.ordinal = name, 0 if name == "emu" else name
        self.driver = _driver(_c.library_path("tegula-emu").encode() if name == "emu" else None)
        self.modules, self.workspaces = {}, {}
        self.enter()
        self.jit = c_void_p()
        _c.call("tg_jit_open", self.driver, self.ordinal, byref(_options()), byref(self.jit))

    def enter(self):
        """The device's primary context becomes current, for good: contexts are the process's."""
        if getattr(_current, "device", None) is not self:
            _c.call("tg_context_acquire", self.driver, self.ordinal)
            _current.device = self

    def module(self, variant, shape, sizes, kept=None):
        """The kernels for calls of this kind and these sizes, that keep tensors if that is asked for: module, program."""
        self.enter()
        module = c_void_p()
        if kept is None:
            _c.call("tg_jit_module", self.jit, variant, byref(shape), byref(sizes), byref(module))
        else:
            _c.call("tg_jit_module_keeping", self.jit, variant, byref(shape), byref(sizes), byref(kept), byref(module))
        return module, c_void_p(_c.lib.tg_module_program(module))

    def keeping(self, variant, shape, sizes):
        """What the forward would keep for its backward."""
        self.enter()
        kept = _c.Kept()
        _c.call("tg_jit_keeping", self.jit, variant, byref(shape), byref(sizes), byref(kept))
        return kept

    def allocate(self, n):
        address = c_uint64()
        _c.call("tg_memory_alloc", self.driver, c_size_t(max(n, 1)), byref(address))
        return Memory(self, address.value)

    def copy_in(self, memory, view):
        if view.bytes:
            _c.call("tg_memory_in", self.driver, memory.address, c_void_p(view.address), view.bytes)

    def copy_out(self, view, memory):
        if view.bytes:
            _c.call("tg_memory_out", self.driver, c_void_p(view.address), memory.address, view.bytes)

    def workspace(self, n, stream):
        """Scratch memory that calls on one stream share, one after the other."""
        kept = self.workspaces.get(stream)
        if kept is None or kept[0] < n:
            self.workspaces[stream] = kept = (n, self.allocate(n))
        return kept[1].address

    def synchronize(self):
        _c.call("tg_synchronize", self.driver)


class Memory:
    """Memory of a device, freed with the object."""

    def __init__(self, device, address):
        self.device, self.address = device, address

    def __del__(self):
        if _c is not None:  # at the end of the process nothing is left to free
            self.device.enter()
            _c.lib.tg_memory_free(self.device.driver, self.address)


def device(name):
    """By ordinal, or "emu"."""
    if not isinstance(name, int) and name != "emu":
        raise _c.wrong("device", 'the number of a GPU, or "emu"', repr(name))
    return _device(name)


_device = functools.cache(Device)


@functools.cache
def default():
    """GPU 0; where there is none, the emulator, after a warning."""
    try:
        count = c_int()
        _c.call("tg_device_count", _driver(None), byref(count))
        if count.value:
            return device(0)
    except _c.Error:
        pass
    warnings.warn("there is no GPU: kernels run on the emulator, which is slow", RuntimeWarning, stacklevel=4)
    return device("emu")


class DeviceArray:
    """An array in memory of a device that no array library knows, such as the emulator's. Of a GPU it has
    __cuda_array_interface__."""

    def __init__(self, where, shape, dtype):
        view = View(0, tuple(shape), dense(shape), dtype, where.name, None)
        view.owner = memory = where.allocate(view.bytes)
        view.address = memory.address
        self._tegula_view, self.where = view, where

    shape = property(lambda self: self._tegula_view.shape)
    dtype = property(lambda self: self._tegula_view.dtype)

    @property
    def __cuda_array_interface__(self):
        view = self._tegula_view
        typestr = {"bfloat16": "<V2", "float16": "<f2", "float32": "<f4", "int32": "<i4", "int64": "<i8"}[view.dtype]
        return {"shape": view.shape, "typestr": typestr, "data": (view.address, False), "version": 3}

    def copy_to(self, array):
        """Into a contiguous array on the host, after all work on the device; returns it."""
        to = view_of("array", array, None, None)
        if to.shape != self.shape or to.dtype != self.dtype or to.device is not None or not to.is_contiguous():
            raise _c.wrong("array", f"a contiguous {self.dtype} array {list(self.shape)} on the host",
                           f"{to.dtype} {list(to.shape)}")
        self.where.enter()
        self.where.synchronize()
        self.where.copy_out(to, self._tegula_view.owner)
        return array


def to_device(array, name):
    """A copy of a host array on a device."""
    array = contiguous("array", array)
    view, where = view_of("array", array, None, None), device(name)
    where.enter()
    copy = DeviceArray(where, view.shape, view.dtype)
    where.copy_in(copy._tegula_view.owner, view)
    return copy
