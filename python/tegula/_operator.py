"""Operators: a variant's declaration, sizes from the shapes of arrays, and the call.

A tensor is [B, NH, T, width] as it is declared, less the axes that it lacks. With layout "bthd" tensors with tokens are
[B, T, NH, width]. Sizes follow from the arrays, and every array must agree with the first that told a size.
"""

import functools
from ctypes import byref, c_float, c_uint64, c_void_p
from dataclasses import dataclass

from . import _c
from ._arrays import dense, empty, is_torch, view, contiguous
from ._c import Error, wrong
from ._device import DeviceArray, default, device as device_of

_IO = {"bfloat16": _c.BF16, "float16": _c.F16, "float32": _c.F32}
_LAYOUTS = ("bhtd", "bthd")
_FIXED_WIDTH = 128  # dqk of operators that have none


@dataclass(frozen=True)
class Tensor:
    """One of a declaration. `axes` are names of sizes: B, NH or NH/group, T, dqk, dhv."""

    name: str
    is_input: bool
    optional: bool
    is_io: bool  # of the input type; else float32, cu and index int32 or int64
    axes: tuple
    places: tuple  # where they are in C's [B, NH, axes...]
    is_table: bool = False

    @property
    def is_state(self):
        return "T" not in self.axes and "B" in self.axes and not self.is_table

    def order(self, layout):
        """The axes as they lie in memory, as indices into `axes`."""
        order = list(range(len(self.axes)))
        if layout == "bthd" and "T" in self.axes:
            order.remove(self.axes.index("T"))
            order.insert(1 if "B" in self.axes else 0, self.axes.index("T"))
        return order

    def axes_of_call(self, packed):
        return tuple("1" if packed and a == "B" and "T" in self.axes else a for a in self.axes)


def _tensor(found):
    flags, axes, places = found.flags, [], []
    for name, absent, place in (("B", _c.NO_BATCH, 0), ("NH", _c.NO_HEADS, 1)):
        if not flags & absent:
            axes.append("NH/group" if place and flags & _c.SHARED else name)
            places.append(place)
    for i, axis in enumerate(found.axes):
        if axis:
            axes.append(_c.AXES[axis])
            places.append(2 + i)
    return Tensor(found.name.decode(), bool(flags & _c.IN), bool(flags & _c.OPTIONAL), found.dtype == 1, tuple(axes),
                  tuple(places))


_TABLES = {"cu": Tensor("cu", True, True, False, ("B+1",), (2,), True),
           "index": Tensor("index", True, True, False, ("B",), (0,), True)}


class Signature:
    """What a variant declares: tensors in their order, scalars with their values (None: 1/sqrt(dqk))."""

    def __init__(self, name):
        found = _c.lib.tg_variant_find(name.encode())
        if not found:
            raise wrong("variant", "a name that `tegula variants` lists", repr(name))
        algorithm = found[0].algorithm[0]
        if algorithm.version != _c.DSL_VERSION:
            raise wrong("libtegula", f"declarations of version {_c.DSL_VERSION}", f"version {algorithm.version}")
        self.variant = found
        self.name = found[0].name.decode()
        declared = (algorithm.tensors[i] for i in range(1, algorithm.n_tensors))
        self.tensors = {t.name: t for t in map(_tensor, (d for d in declared if d.flags & (_c.IN | _c.OUT)))}
        self.scalars = {"scale": None}
        for i in range(algorithm.n_scalars if algorithm.scalars else 0):
            scalar = algorithm.scalars[i]
            self.scalars[scalar.name.decode()] = scalar.value if i or scalar.value else None
        self.has_backward = bool(found[0].backward)

    @property
    def inputs(self):
        return [t for t in self.tensors.values() if t.is_input]

    @property
    def outputs(self):
        return [t for t in self.tensors.values() if not t.is_input]

    def tensor(self, name):
        return self.tensors.get(name) or _TABLES.get(name)


@functools.cache
def signature(name):
    return Signature(name)


def _told(sizes):
    return {name: value for name, (value, _) in sizes.items()}


def _describe(tensor, layout, packed):
    axes = tensor.axes_of_call(packed)
    return "[" + ", ".join(axes[i] for i in tensor.order(layout)) + "]"


def learn_sizes(of, shapes, layout, is_checked=True):
    """Sizes by name, from the shapes of the tensors given: {"B": 2, "NH": 4, ...}. Unchecked, only rank matters."""
    sizes, packed, pooled = {}, "cu" in shapes, "index" in shapes
    if packed:
        sizes["1"] = (1, "packed sequences")
        sizes["B"] = (shapes["cu"][0] - 1 if shapes["cu"] else 0, "cu")
    for name, shape in shapes.items():
        tensor = of.tensor(name)
        expected, order = _describe(tensor, layout, packed), tensor.order(layout)
        if len(shape) != len(order):
            raise wrong(name, f"{len(order)} axes {expected}", f"shape {list(shape)}")
        for i, extent in zip(order, shape):
            axis = tensor.axes_of_call(packed)[i]
            if axis == "B+1" or (pooled and tensor.is_state and axis == "B"):
                continue
            value, teller = sizes.setdefault(axis, (extent, name))
            if is_checked and value != extent:
                raise wrong(name, f"{expected} with {axis} = {value} as in {teller}", f"shape {list(shape)}")
    sizes = _told(sizes)
    sizes.setdefault("NH", sizes.get("NH/group"))
    sizes.setdefault("NH/group", sizes["NH"])
    return sizes


def shape_of(tensor, sizes, layout, packed):
    """The shape of a tensor of a call with these sizes, as it lies in memory."""
    axes = tensor.axes_of_call(packed)
    return tuple(1 if axes[i] == "1" else sizes[axes[i]] for i in tensor.order(layout))


def _check_missing(of, given):
    for tensor in of.inputs:
        if not tensor.optional and tensor.name not in given:
            raise wrong(tensor.name, f"an array {_describe(tensor, 'bhtd', False)}, which {of.name} needs", "none")


def _io_type(of, views):
    """The type that all tensors of the input type have; the others are checked too."""
    io = None
    for name, v in views.items():
        tensor = of.tensor(name)
        if tensor.is_table:
            expected = ("int32", "int64")
        elif tensor.is_io:
            expected = (io[0],) if io else tuple(_IO)
        else:
            expected = ("float32",)
        if v.dtype not in expected:
            like = f" like {io[1]}" if tensor.is_io and io else ""
            raise wrong(f"{name}.dtype", " or ".join(expected) + like, v.dtype)
        if tensor.is_io and not io:
            io = (v.dtype, name)
    return io[0] if io else "float32"


class Results(dict):
    """The outputs of a call by name, also as attributes."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(f"no output {name}: there are {', '.join(self)}")


@dataclass
class _Kind:
    """What is made once for calls of one shape."""

    sizes: dict
    c_sizes: object
    module: object
    program: object
    workspace: int


class Operator:
    """A variant on a device: `Operator("simple-gla")(q=q, k=k, v=v, a=a).h`.

    `device` is the ordinal of a GPU or "emu"; None: that of the arrays, and of arrays on the host GPU 0, or the
    emulator where there is none. Kernels are compiled at the first call of a kind. Use from any thread.
    """

    def __init__(self, variant, device=None):
        self.signature = signature(variant)
        self.device = None if device is None else device_of(device)
        self._kinds = {}

    def __repr__(self):
        return f"tegula.Operator({self.signature.name!r}, device={self.device and self.device.name!r})"

    def __call__(self, *, want=(), chunk=None, layout="bhtd", step=False, stream=None, **given):
        """Calls the operator; returns its outputs by name.

        Arrays and scalars are given by the names of the declaration, outputs too if they shall go into arrays of the
        caller's; None is as left out. Optional outputs that are wanted without an array are named in `want`.
        `cu` [B + 1] makes packed sequences of it, `index` [B] slots of a pool. `step`: a decode step, of at most 8
        tokens. `chunk`: the chunk size, else the schedule's. `stream`: of the GPU; None: the current one of PyTorch
        for its tensors, else the default stream.
        """
        of = self.signature
        given = {name: value for name, value in given.items() if value is not None}
        self.check([*given, *want])
        if layout not in _LAYOUTS:
            raise wrong("layout", '"bhtd" or "bthd"', repr(layout))
        scalars = {name: given.pop(name) for name in of.scalars if name in given}
        _check_missing(of, given)
        return _Call(self, given, scalars, stream).run(want, chunk or 0, layout, step)

    def check(self, names):
        """That the declaration has them."""
        of = self.signature
        for name in names:
            if not of.tensor(name) and name not in of.scalars:
                known = [*of.tensors, *of.scalars, *_TABLES]
                raise wrong(name, f"a tensor or scalar of {of.name}: {', '.join(known)}", f"{name!r}")

    def kind(self, where, sizes, io, packed, pooled, step, chunk):
        """The module for calls of these sizes, made at the first of them."""
        key = (where, tuple(sorted(sizes.items())), io, packed, pooled, step, chunk)
        found = self._kinds.get(key)
        if found:
            where.enter()
            return found
        if sizes["NH"] % max(sizes["NH/group"], 1):
            raise wrong("NH", f"a multiple of the {sizes['NH/group']} heads of queries and keys", str(sizes["NH"]))
        c_sizes = _c.Sizes(sizes["B"], sizes["NH"], sizes["T"], chunk)
        shape = _c.ShapeClass(_IO[io], sizes.get("dqk", _FIXED_WIDTH), sizes["dhv"],
                              sizes["NH"] // max(sizes["NH/group"], 1), sizes["T"] if step else 0, packed, pooled)
        module, program = where.module(self.signature.variant, shape, c_sizes)
        _c.call("tg_sizes_check", program, byref(c_sizes))
        found = _Kind(sizes, c_sizes, module, program, _c.lib.tg_workspace_bytes(program, byref(c_sizes)))
        self._kinds[key] = found
        return found


class _Call:
    """One call: arrays on the host are copied to the device and back."""

    def __init__(self, operator, given, scalars, stream):
        self.operator, self.of, self.given, self.scalars = operator, operator.signature, given, scalars
        name = operator.device.name if operator.device else None
        self.views = {key: view(key, array, name, stream) for key, array in given.items()}
        self.where = operator.device or self._device_of_arrays()
        self.on_host = self._is_on_host()
        self.stream = stream
        self.like = next((a for n, a in given.items() if self.of.tensor(n).is_io), None)

    def _device_of_arrays(self):
        for v in self.views.values():
            if v.device is not None:
                return device_of(v.device)
        if any(is_torch(array) for array in self.given.values()):
            return device_of("emu")
        return default()

    def _is_on_host(self):
        places = {name: v.device for name, v in self.views.items() if not self.of.tensor(name).is_table}
        if all(place is None for place in places.values()):
            return True
        for name, place in places.items():
            if place != self.where.name:
                found = "the host" if place is None else f"device {place}"
                raise wrong(f"{name}.device", f"device {self.where.name}, as other arrays of the call", found)
        return False

    def run(self, want, chunk, layout, step):
        packed, pooled = "cu" in self.given, "index" in self.given
        io = _io_type(self.of, self.views)
        sizes = learn_sizes(self.of, {name: v.shape for name, v in self.views.items()}, layout)
        self._check_tables(sizes)
        kind = self.operator.kind(self.where, sizes, io, packed, pooled, step, chunk)
        results = self._outputs(want, sizes, io, layout, packed, pooled)
        arguments, buffers = self._arguments(kind, layout)
        stream = self._stream()
        workspace = self.where.workspace(kind.workspace, stream) if kind.workspace else 0
        _c.call("tg_launch", kind.module, byref(kind.c_sizes), self._scalar_values(sizes), arguments, len(arguments),
                c_uint64(workspace), c_void_p(stream))
        self._fetch(results, buffers)
        return results

    def _check_tables(self, sizes):
        """What the kernels take on trust, of tables on the host."""
        for name, v in self.views.items():
            if not self.of.tensor(name).is_table or v.device is not None:
                continue
            values = [int(x) for x in self.given[name]]
            if name == "cu" and (values[:1] != [0] or values[-1] != sizes["T"] or values != sorted(values)):
                raise wrong("cu", f"boundaries that begin with 0, do not decrease and end with T = {sizes['T']}",
                            str(values[:8]))
            states = [n for n in self.views if self.of.tensor(n).is_state]
            slots = min((self.views[n].shape[0] for n in states), default=0)
            if name == "index" and not all(0 <= x < slots for x in values):
                raise wrong("index", f"slots below {slots}", str(values[:8]))

    def _outputs(self, want, sizes, io, layout, packed, pooled):
        results = Results()
        for tensor in self.of.outputs:
            name = tensor.name
            if name in self.given:
                results[name] = self.given[name]
            elif not tensor.optional or name in want:
                if pooled and tensor.is_state:
                    raise wrong(name, "an array of slots, which may be that of the initial state", "none")
                results[name] = self._empty(shape_of(tensor, sizes, layout, packed), io if tensor.is_io else "float32")
                self.views[name] = view(name, results[name], self.where.name, self.stream)
        return results

    def _empty(self, shape, dtype):
        made = empty(self.like, shape, dtype) if not hasattr(self.like, "_tegula_view") else None
        if made is None and self.on_host:
            raise wrong("outputs", "arrays of yours for outputs beside arrays of this library",
                        type(self.like).__name__)
        return made if made is not None else DeviceArray(self.where, shape, dtype)

    def _arguments(self, kind, layout):
        """Of all tensors that the program has: an input that a schedule has no use for is none."""
        used = [(n, v) for n, v in self.views.items() if _c.lib.tg_program_tensor(kind.program, n.encode()) >= 0]
        arguments, buffers = (_c.TensorArg * len(used))(), {}
        for argument, (name, v) in zip(arguments, used):
            tensor = self.of.tensor(name)
            argument.name, argument.address = name.encode(), v.address
            strides = v.strides
            if v.device is None:
                argument.address, strides = self._upload(name, v, buffers)
            scale = 2 if v.dtype == "int64" else 1
            for i, stride in zip(tensor.order(layout), strides):
                argument.stride[tensor.places[i]] = stride * scale
        return arguments, buffers

    def _upload(self, name, v, buffers):
        """A copy on the device, which arrays in the same memory share: an initial and a final state."""
        key = v.key()
        if key not in buffers:
            if not v.is_contiguous():
                if not self.of.tensor(name).is_input:
                    raise wrong(f"{name}.strides", "a contiguous array for an output on the host", str(v.strides))
                v = view(name, contiguous(name, self.given[name]), None, None)
            buffers[key] = self.where.allocate(v.bytes)
            if name in self.given:  # slots of a pool that no sequence has stay as they are
                self.where.copy_in(buffers[key], v)
        return buffers[key].address, dense(v.shape)

    def _stream(self):
        if self.stream is not None or self.on_host or not is_torch(self.like):
            return self.stream or 0
        import torch
        return torch.cuda.current_stream(self.like.device).cuda_stream

    def _scalar_values(self, sizes):
        if not self.scalars:
            return None
        values = []
        for name, value in self.of.scalars.items():
            value = self.scalars.get(name, value)
            values.append(sizes["dqk"] ** -0.5 if value is None else float(value))
        return (c_float * len(values))(*values)

    def _fetch(self, results, buffers):
        if not self.on_host:
            return
        self.where.synchronize()
        for name in results:
            v = self.views[name]
            self.where.copy_out(v, buffers[v.key()])
