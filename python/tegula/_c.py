"""The C interface by ctypes: structs as in the headers, functions, and messages as one exception.

libtegula-jit brings libtegula (the compiler) and libtegula-rt (the runtime) along. The libraries lie in lib/ beside
this file, as in the wheel, or in the folder that TEGULA_LIBRARY names. tests/python/test_layout.py compares the
structs with the headers.
"""

import ctypes
import os
import re
import threading
import warnings
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint8, c_uint16
from ctypes import c_double, c_uint32, c_uint64, c_void_p

MAX_AXES = 3
FLOATS = {"bfloat16": 2, "float16": 3, "float32": 4}  # tg_dtype
IN, OUT, OPTIONAL, NO_BATCH, SHARED, NO_HEADS = 1, 2, 4, 8, 16, 32
CHUNK, POSITION = 2, 10
AXES = {1: "T", CHUNK: "chunks", 3: "dqk", 4: "dhv", POSITION: "positions"}
DSL_VERSION = 7
POOL_SLOTS, POOL_MOVES, POOL_TOKENS = 1, 2, 3
_WARNING, _ERROR = 1, 2


class Error(ValueError):
    """What is wrong with a call. `field` names the tensor, size or argument, `expected` and `found` say what of it,
    `code` is stable where it comes from the C libraries ("TG0703"), `hint` says what to do; each may be None.
    `messages` are all that the libraries had to say."""

    def __init__(self, message, field=None, expected=None, found=None, code=None, hint=None, messages=()):
        more = f"\n  and {len(messages) - 1} more in .messages" if len(messages) > 1 else ""
        super().__init__(message + more + (f"\n  hint: {hint}" if hint else ""))
        self.field, self.expected, self.found, self.code, self.hint = field, expected, found, code, hint
        self.messages = tuple(messages)


def wrong(field, expected, found, hint=None):
    return Error(f"{field}: expected {expected}, found {found}", field, expected, found, hint=hint)


def number(field, value):
    """As a float."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise wrong(field, "a number", repr(value)) from None


def whole(field, value):
    """As it is, or 0 for None."""
    if value is None:
        return 0
    if not isinstance(value, int) or value < 0:
        raise wrong(field, "a whole number", repr(value))
    return value


class Diag(Structure):
    _fields_ = [("severity", c_int), ("code", c_char_p), ("file", c_char_p), ("line", c_int), ("message", c_char_p),
                ("hint", c_char_p)]


Emit = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Diag))


class Sink(Structure):
    _fields_ = [("emit", Emit), ("user", c_void_p)]


class Device(Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char * 64), ("ordinal", c_int), ("cc_major", c_int),
                ("cc_minor", c_int), ("sms", c_int), ("shared_optin", c_int), ("registers_per_sm", c_int),
                ("l2_bytes", c_int), ("clock_khz", c_int), ("memory_clock_khz", c_int), ("memory_bus_bits", c_int),
                ("memory_bytes", c_uint64), ("driver_version", c_int)]


class Tensor(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_uint8), ("flags", c_uint8), ("axes", c_uint8 * MAX_AXES)]


class Scalar(Structure):
    _fields_ = [("name", c_char_p), ("value", c_float)]


class Algorithm(Structure):
    _fields_ = [("struct_size", c_uint32), ("version", c_uint32), ("name", c_char_p), ("title", c_char_p),
                ("file", c_char_p), ("tensors", POINTER(Tensor)), ("n_tensors", c_uint32), ("n_body", c_uint32),
                ("body", c_void_p), ("scalars", POINTER(Scalar)), ("n_scalars", c_uint32)]


class Variant(Structure):
    _fields_ = [("struct_size", c_uint32), ("version", c_uint32), ("name", c_char_p), ("aliases", POINTER(c_char_p)),
                ("algorithm", POINTER(Algorithm)), ("schedules", c_void_p), ("others", c_void_p), ("spaces", c_void_p),
                ("names", c_void_p), ("oracle", c_void_p), ("backward", c_void_p)]


class ShapeClass(Structure):
    _fields_ = [("io", c_int), ("dqk", c_uint32), ("dhv", c_uint32), ("group", c_uint32), ("tokens", c_uint32),
                ("packed", c_uint8), ("pooled", c_uint8), ("state", c_uint8),
                ("values_first", c_uint8), ("counted", c_uint8)]


class Sizes(Structure):
    _fields_ = [("batch", c_int64), ("heads", c_int64), ("tokens", c_int64), ("chunk", c_int64)]


class TensorArg(Structure):
    _fields_ = [("name", c_char_p), ("address", c_uint64), ("stride", c_int64 * (2 + MAX_AXES))]


class JitOptions(Structure):
    _fields_ = [("cache", c_char_p), ("wisdom", c_char_p), ("ptxas", c_char_p)]


class Kept(Structure):
    _fields_ = [("n", c_uint32), ("names", c_char_p * 8), ("chunk", c_uint32), ("segment", c_uint32),
                ("seconds", c_double), ("seconds_without", c_double)]


def library_path(name):
    """A library by its name without lib and .so."""
    here = os.environ.get("TEGULA_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    for file in (f"lib{name}.so", f"lib{name}.so.1"):
        if os.path.exists(os.path.join(here, file)):
            return os.path.join(here, file)
    raise Error(f"TEGULA_LIBRARY: expected a folder with lib{name}.so, found {here}", "TEGULA_LIBRARY",
                f"a folder with lib{name}.so", here, hint="install the wheel, or set it to the lib folder of a build")


_functions = {
    "tg_driver_open": [c_char_p, POINTER(c_void_p), POINTER(Sink)],
    "tg_device_count": [c_void_p, POINTER(c_int), POINTER(Sink)],
    "tg_device_query": [c_void_p, c_int, POINTER(Device), POINTER(Sink)],
    "tg_context_acquire": [c_void_p, c_int, POINTER(Sink)],
    "tg_memory_alloc": [c_void_p, c_size_t, POINTER(c_uint64), POINTER(Sink)],
    "tg_memory_in": [c_void_p, c_uint64, c_void_p, c_size_t, POINTER(Sink)],
    "tg_memory_out": [c_void_p, c_void_p, c_uint64, c_size_t, POINTER(Sink)],
    "tg_synchronize": [c_void_p, POINTER(Sink)],
    "tg_jit_open": [c_void_p, c_int, POINTER(JitOptions), POINTER(c_void_p), POINTER(Sink)],
    "tg_jit_module": [c_void_p, c_void_p, POINTER(ShapeClass), POINTER(Sizes), POINTER(c_void_p), POINTER(Sink)],
    "tg_jit_keeping": [c_void_p, c_void_p, POINTER(ShapeClass), POINTER(Sizes), POINTER(Kept), POINTER(Sink)],
    "tg_jit_module_keeping": [c_void_p, c_void_p, POINTER(ShapeClass), POINTER(Sizes), POINTER(Kept), POINTER(c_void_p),
                              POINTER(Sink)],
    "tg_sizes_check": [c_void_p, POINTER(Sizes), POINTER(Sink)],
    "tg_launch": [c_void_p, POINTER(Sizes), POINTER(c_float), c_void_p, c_uint32, c_uint64, c_void_p, POINTER(Sink)],
}
_others = {
    "tg_memory_free": (None, [c_void_p, c_uint64]),
    "tg_module_program": (c_void_p, [c_void_p]),
    "tg_jit_kept_tensor": (POINTER(Tensor), [c_void_p, c_uint32]),
    "tg_tensor_extent": (c_int64, [c_void_p, POINTER(Sizes), c_uint32, c_uint32]),
    "tg_program_tensor": (c_int, [c_void_p, c_char_p]),
    "tg_workspace_bytes": (c_uint64, [c_void_p, POINTER(Sizes)]),
    "tg_variant_find": (POINTER(Variant), [c_char_p]),
    "tg_status_name": (c_char_p, [c_int]),
}


def _open():
    opened = ctypes.CDLL(library_path("tegula-jit"))
    for name, arguments in _functions.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = c_int, arguments
    for name, (result, arguments) in _others.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, arguments
    return opened


lib = _open()


def all_variants():
    """The names of the variants that come with Tegula."""
    names, i = [], 0
    table = ctypes.cast(lib.tg_builtin_variants, POINTER(POINTER(Variant)))
    while table[i]:
        names.append(table[i][0].name.decode())
        i += 1
    return names


_said = threading.local()  # messages of the call that this thread is in


@Emit
def _emit(_user, diag):
    _said.messages.append(tuple(getattr(diag[0], field) for field in ("severity", "code", "message", "hint")))


_sink = Sink(_emit, None)


def _text(value):
    return value.decode(errors="replace") if value else None


def _error(status, errors):
    if not errors:
        return Error(_text(lib.tg_status_name(status)))
    messages = [f"{_text(code)} {_text(message)}" for _, code, message, _ in errors]
    parts = re.fullmatch(r"\S+ (.*?): expected (.*?), found (.*)", messages[0], re.DOTALL)
    field, expected, found = parts.groups() if parts else (None, None, None)
    hint = next((_text(hint) for *_, hint in errors if hint), None)
    return Error(messages[0], field, expected, found, _text(errors[0][1]), hint, messages)


def of_text(text):
    """An error that came as a text: its code, then the message."""
    code, _, message = text.partition(" ")
    return _error(0, [(_ERROR, code.encode(), message.encode(), None)])


def call(name, *arguments):
    """A function that yields a status, with a sink, by its name."""
    check(getattr(lib, name), *arguments)


def check(function, *arguments):
    """Such a function; raises what it reports."""
    _said.messages = said = []
    status = function(*arguments, byref(_sink))
    for severity, code, message, _ in said:
        if severity == _WARNING:
            warnings.warn(f"{_text(code)} {_text(message)}", RuntimeWarning, stacklevel=4)
    if status:
        raise _error(status, [message for message in said if message[0] == _ERROR])
