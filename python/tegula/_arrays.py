"""Arrays of whatever library: where their memory is. PyTorch, NumPy, anything with __cuda_array_interface__ or DLPack.

No array library is imported here: what is not passed in is not needed.
"""

import ctypes
import sys
from dataclasses import dataclass

from ._c import Error, wrong

DTYPES = {"bfloat16": 2, "float16": 2, "float32": 4, "int32": 4, "int64": 8}  # bytes


@dataclass
class View:
    """The memory of an array. Strides are in elements; device None is the host; `owner` keeps the memory."""

    address: int
    shape: tuple
    strides: tuple
    dtype: str
    device: object
    owner: object
    is_read_only: bool = False

    @property
    def bytes(self):
        n = DTYPES[self.dtype]
        for extent in self.shape:
            n *= extent
        return n

    def key(self):
        """Which memory it is."""
        return self.address, self.shape, self.strides

    def is_contiguous(self):
        return all(s == d or n == 1 for n, s, d in zip(self.shape, self.strides, dense(self.shape))) or 0 in self.shape


def numbers(view):
    """What a table on the host has in it."""
    of, places = ctypes.c_int64 if view.dtype == "int64" else ctypes.c_int32, [0]
    for extent, stride in zip(view.shape, view.strides):
        places = [place + i * stride for place in places for i in range(extent)]
    return [of.from_address(view.address + ctypes.sizeof(of) * place).value for place in places]


def dense(shape):
    """Strides of a contiguous array, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def is_torch(array):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _of_torch(array):
    if str(array.layout) != "torch.strided":
        raise wrong("layout", "torch.strided", str(array.layout))
    device = array.device.index if array.is_cuda else None
    if array.device.type not in ("cpu", "cuda"):
        raise wrong("device", "a tensor on the CPU or a CUDA GPU", f"one on {array.device}")
    if array.is_neg():
        raise wrong("values", "numbers as they are in memory; see torch.resolve_neg", "a view with the negative bit")
    return View(array.data_ptr(), tuple(array.shape), array.stride(), str(array.dtype)[6:], device, array)


def _of_numpy(array):
    size = array.dtype.itemsize
    if any(s % size for s in array.strides):
        raise wrong("strides", f"multiples of {size} bytes", str(array.strides))
    strides = tuple(s // size for s in array.strides)
    address, is_read_only = array.__array_interface__["data"]
    dtype = array.dtype.name if array.dtype.isnative else array.dtype.str
    return View(address, array.shape, strides, dtype, None, array, is_read_only)


_TYPESTR = {"<f2": "float16", "<f4": "float32", "<i4": "int32", "<i8": "int64", "<V2": "bfloat16"}


def _of_cuda(array, device):
    """Of the stream protocol there is only the default: work on another stream is the caller's to wait for."""
    interface = array.__cuda_array_interface__
    dtype, shape = _TYPESTR.get(interface["typestr"], interface["typestr"]), tuple(interface["shape"])
    size = DTYPES.get(dtype, 1)
    strides = tuple(s // size for s in interface["strides"]) if interface.get("strides") else dense(shape)
    address, is_read_only = interface["data"]
    return View(address, shape, strides, dtype, device, array, is_read_only)


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DL_DTYPES = {(4, 16): "bfloat16", (2, 16): "float16", (2, 32): "float32", (0, 32): "int32", (0, 64): "int64"}
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _of_dlpack(array, stream):
    kind, ordinal = (int(x) for x in array.__dlpack_device__())
    if kind not in (1, 2, 3, 13):
        raise wrong("device", "an array on the CPU or a CUDA GPU", f"one of DLPack's device type {kind}")
    on_gpu = kind in (2, 13)
    capsule = array.__dlpack__(stream=stream or 1) if on_gpu else array.__dlpack__()
    tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else dense(shape)
    dtype = _DL_DTYPES.get((tensor.code, tensor.bits) if tensor.lanes == 1 else None,
                           f"DLPack's type {tensor.code} of {tensor.bits} bits")
    return View(tensor.data + tensor.byte_offset, shape, strides, dtype, ordinal if on_gpu else None, (array, capsule))


def view(name, array, device, stream):
    """The memory of an array that is called `name`; `device` is where the call runs, if that is known."""
    if isinstance(array, View):
        return array
    if hasattr(array, "_tegula_view"):
        return array._tegula_view
    try:
        if is_torch(array):
            return _of_torch(array)
        if hasattr(array, "__cuda_array_interface__"):
            return _of_cuda(array, 0 if device is None else device)
        if hasattr(array, "__array_interface__"):
            return _of_numpy(array)
        if hasattr(array, "__dlpack__"):
            return _of_dlpack(array, stream)
    except Error as error:
        raise wrong(f"{name}.{error.field}", error.expected, error.found) from None
    raise wrong(name, "an array of PyTorch or NumPy, or one with DLPack or __cuda_array_interface__",
                type(array).__name__)


def contiguous(name, array):
    """A copy in one piece, where it is not so already."""
    if is_torch(array):
        return array.contiguous()
    if hasattr(array, "__array_interface__"):
        return sys.modules["numpy"].ascontiguousarray(array)
    raise wrong(f"{name}.strides", "a contiguous array, or one of PyTorch or NumPy", type(array).__name__)


def empty(like, shape, dtype):
    """A new array beside `like`, of the same library; dtype is that of `like` or float32."""
    if is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(like, numpy.ndarray):
        return numpy.empty(shape, like.dtype if like.dtype.name == dtype else dtype)
    return None
