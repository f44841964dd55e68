"""Operators of PyTorch implemented by libtegula-torch, on libtorch's stable C interface: torch/torch.h.

It asks `_plan` once what calls that are alike come to, and `_run` to make those that it cannot: on arrays on the host, which
the emulator computes.
"""

import ctypes
import math
import threading
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_uint8, c_uint32
from ctypes import c_uint64, c_void_p

from . import _c
from ._arrays import View
from ._device import device

TENSORS, RANK, OPTIONS, MESSAGE, OPERATORS = 40, 6, 8, 1024, 512
I64, HOST, EMULATOR = 100, -1, -2
_MAX_TENSORS, _MAX_SCALARS = 64, 4
_DTYPES = {2: "bfloat16", 3: "float16", 4: "float32", 6: "int32", I64: "int64"}


class Declared(Structure):
    _fields_ = [("name", c_char_p), ("n_inputs", c_uint32), ("n_scalars", c_uint32), ("n_options", c_uint32),
                ("n_outputs", c_uint32), ("optional", c_uint64), ("rows", c_uint64), ("written", c_uint64),
                ("takes_outputs", c_uint32)]


class Tensor(Structure):
    _fields_ = [("address", c_uint64), ("sizes", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("rank", c_int32),
                ("dtype", c_int32), ("device", c_int32)]


class Call(Structure):
    _fields_ = [("number", c_uint32), ("inputs", Tensor * TENSORS), ("outputs", Tensor * TENSORS),
                ("scalars", c_double * _MAX_SCALARS), ("options", c_int64 * OPTIONS), ("workspace", Tensor),
                ("stream", c_void_p), ("message", ctypes.c_char * MESSAGE)]


class Output(Structure):
    _fields_ = [("dtype", c_int32), ("rank", c_int32), ("sizes", c_int64 * RANK)]


class Plan(Structure):
    _fields_ = [("driver", c_void_p), ("module", c_void_p), ("ordinal", c_int32), ("has_scalars", c_uint32),
                ("sizes", _c.Sizes), ("scalars", c_float * _MAX_SCALARS), ("workspace", c_uint64),
                ("outputs", Output * TENSORS), ("n_args", c_uint32), ("sources", c_uint8 * _MAX_TENSORS),
                ("args", _c.TensorArg * _MAX_TENSORS)]


_Planner = ctypes.CFUNCTYPE(c_int, POINTER(Call), POINTER(Plan), c_void_p)
_Runner = ctypes.CFUNCTYPE(c_int, POINTER(Call), c_void_p)


class Host(Structure):
    _fields_ = [("plan", _Planner), ("run", _Runner)]


# ---- errors: they cross libtorch as a text, and wait here meanwhile ----

_waiting = threading.local()


def reason(error):
    """What made an operator raise a RuntimeError of libtorch's."""
    text, (said, found) = str(error), getattr(_waiting, "error", (None, None))
    _waiting.error = None, None
    if said is not None and said in text:
        return found
    if "out of memory. Tried" in text:
        import torch
        return torch.OutOfMemoryError(text)
    return _c.of_text(text) if text.startswith("TG") else error


def _guarded(function, message, *arguments):
    """Exceptions of Python end here, where C goes on."""
    try:
        function(*arguments)
        return 0
    except BaseException as error:
        text = str(error).encode("ascii", "backslashreplace")[: MESSAGE - 1]
        _waiting.error = text.decode(), error
        ctypes.memmove(message, text + b"\0", len(text) + 1)
        return 1


# ---- what the library asks ----

_operators = {}  # by number
_names = {}  # that plans point to


def _view(tensor):
    n, where = tensor.rank, {HOST: None, EMULATOR: "emu"}.get(tensor.device, tensor.device)
    dtype = _DTYPES.get(tensor.dtype, "another type")
    return View(tensor.address, tuple(tensor.sizes[:n]), tuple(tensor.strides[:n]), dtype, where, None)


def _views(names, tensors):
    return {name: _view(tensor) for name, tensor in zip(names, tensors) if tensor.rank >= 0}


class _Seen:
    """A call, as the library sees it."""

    def __init__(self, call):
        self.op = op = _operators[call.number]
        self.given = op.with_initial(_views(op.names, call.inputs))
        self.outputs = _views(op.made, call.outputs)
        self.scalars = {name: x for name, x in zip(op.scalars, call.scalars) if not math.isnan(x)}
        self.options = op.options(*call.options[: len(op.options._fields)])
        gpu = next((v.device for v in self.given.values() if isinstance(v.device, int)), None)
        self.where = device("emu" if gpu is None else gpu)


def _describe(call, plan):
    seen, op = _Seen(call), _operators[call.number]
    given = {**seen.given, **seen.outputs}
    found = op.operator.describe(seen.where, given, seen.scalars, op.by_bits(seen.options.want), seen.options.how)
    for output, t in zip(plan.outputs, op.outputs):
        if t.name in found.outputs:
            shape, dtype = found.outputs[t.name]
            output.dtype, output.rank = _c.FLOATS[dtype], len(shape)
            output.sizes[: len(shape)] = shape
    plan.workspace = found.workspace
    if found.arguments is not None:
        _fill(plan, op, found)


def _fill(plan, op, found):
    plan.driver, plan.ordinal, plan.module = found.where.driver, found.where.ordinal, found.kind.module
    plan.sizes, plan.n_args = found.kind.c_sizes, len(found.arguments)
    plan.has_scalars = found.scalars is not None
    for i, x in enumerate(found.scalars or ()):
        plan.scalars[i] = x
    places = {name: i for i, name in enumerate(op.names)}
    places.update((t.name, TENSORS + i) for i, t in enumerate(op.outputs))
    places.update((f"{name}0", places[name]) for name in op.pools)
    for i, argument in enumerate(found.arguments):
        plan.args[i], plan.sources[i] = argument, places[argument.name.decode()]
        plan.args[i].name = _names.setdefault(argument.name, argument.name)


def _launch(call):
    seen = _Seen(call)
    fresh = () if seen.op.takes_outputs else seen.outputs
    seen.op.operator.run_views(seen.where, {**seen.given, **seen.outputs}, seen.scalars, seen.options.how,
                               call.stream or 0, call.workspace.address if call.workspace.rank >= 0 else 0, fresh)


@_Planner
def _plan(call, plan, message):
    return _guarded(_describe, message, call[0], plan[0])


@_Runner
def _run(call, message):
    return _guarded(_launch, message, call[0])


# ---- the library ----


def _open():
    """None where there is no such library or PyTorch is too old for it."""
    try:
        library = ctypes.CDLL(_c.library_path("tegula-torch"))
        library.tg_torch_open.argtypes = [POINTER(Host), POINTER(_c.Sink)]
        library.tg_torch_implement.argtypes = [POINTER(Declared), POINTER(c_uint32), POINTER(_c.Sink)]
        _c.check(library.tg_torch_open, byref(_host))
    except (OSError, _c.Error):
        return None
    return library


_host = Host(_plan, _run)
library = _open()


def implement(op):
    """An operator that was defined as torch/torch.h says gets its implementation; False: it needs another."""
    if library is None:
        return False
    number = c_uint32()
    declared = Declared(op.full_name.encode(), len(op.names), len(op.scalars), len(op.options._fields), len(op.made),
                        _bits(op.optional), _bits(op.rows), _bits(op.written), op.takes_outputs)
    _c.check(library.tg_torch_implement, byref(declared), byref(number))
    _operators[number.value] = op
    return True


def _bits(flags):
    return sum(1 << i for i, is_set in enumerate(flags) if is_set)
