"""Operators: a call of a variant on arrays.

What a call is like (names, shapes and types of its arrays) leads to a kind, made once: sizes, module, workspace. What is
left of later calls are addresses and strides.
"""

import contextlib
import functools
from ctypes import byref, c_char_p, c_float, c_uint64, c_void_p
from dataclasses import dataclass
from typing import NamedTuple

from . import _c
from ._arrays import View, contiguous, dense, empty, is_torch, numbers, view
from ._c import wrong
from ._device import DeviceArray, default, device as device_of
from ._plan import Plan, key as plan_key
from ._signature import LAYOUTS, Form, signature, types
from ._widths import can_fill, filled

_FIXED_WIDTH = 128  # dqk of operators that have none
_MOST_KINDS = 4096


class Results(dict):
    """The outputs of a call by name, also as attributes."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(f"no output {name}: there are {', '.join(self)}")


class How(NamedTuple):
    """What a call is like beside its arrays. `segment`: chunks of a segment, where tensors are kept for a backward."""

    chunk: int = 0
    layout: str = "bhtd"
    v_first: bool = False
    step: bool = False
    segment: int = 0


class Keeping(NamedTuple):
    """What a forward leaves for its backward, and the seconds of both that the cost model expects, so and without."""

    names: tuple
    chunk: int
    segment: int
    seconds: float
    seconds_without: float


@dataclass
class Described:
    """What a call on views comes to: for those who launch it themselves. `outputs` are shapes and types by name of those that
    were not given; `arguments` None: something is on the host, so that each call is made by `run_views`."""

    where: object
    kind: object
    workspace: int
    outputs: dict
    arguments: object
    scalars: object


@dataclass
class _Kind:
    """What is made once for calls that are alike."""

    sizes: dict
    io: str
    state: str
    c_sizes: object
    module: object
    program: object
    workspace: int
    used: frozenset  # the tensors that the program has: an input that a schedule has no use for is none


class Operator:
    """A variant on a device: `Operator("simple-gla")(q=q, k=k, v=v, a=a).h`.

    `device` is the ordinal of a GPU or "emu"; None: that of the arrays, and of arrays on the host GPU 0, or the
    emulator where there is none. Kernels are compiled at the first call of a kind. Use from any thread.
    """

    def __init__(self, variant, device=None):
        self.signature = signature(variant)
        self.device = None if device is None else device_of(device)
        self._kinds, self._plans = {}, {}

    def __repr__(self):
        return f"tegula.Operator({self.signature.name!r}, device={self.device and self.device.name!r})"

    def __call__(self, **call):
        """Calls the operator, as `run` says, on arrays that need no gradient."""
        for name, array in call.items():
            if is_torch(array) and _needs_gradient(array):
                raise wrong(name, "a tensor that needs no gradient", "one with requires_grad",
                            "tegula.torch has the operators with gradients; or call it under torch.no_grad()")
        return self.run(**call)

    def run(self, *, want=(), chunk=None, layout="bhtd", state_v_first=False, step=False, segment=None, stream=None,
            **given):
        """The outputs by name.

        Arrays and scalars are given by the names of the declaration, outputs too if they shall go into arrays of the
        caller's; None is as left out. Optional outputs that are wanted without an array are named in `want`.
        `cu` [B + 1] makes packed sequences of it; `index` [B] says in which slots of a pool the states are, `index_out`
        [B] where they go, if elsewhere. `state_v_first`: states are [B, NH, dhv, dqk]. `step`: a decode step, of at
        most 8 tokens; `index_out` [B, T] has then a slot for the state behind each token, and `count` [B] says how many
        tokens of each sequence there are. `chunk`: the chunk size, else the schedule's. `stream`: of the GPU; None: the
        current one of PyTorch for its tensors, else the default stream.

        A forward leaves tensors for its backward that are named in `want`; the backward is given them. Both are told
        `chunk` and `segment` then, as `keeping` says.
        """
        of = self.signature
        given = {name: value for name, value in given.items() if value is not None}
        if isinstance(want, str):
            raise wrong("want", "names of outputs, in a list", repr(want))
        if layout not in LAYOUTS:
            raise wrong("layout", '"bhtd" or "bthd"', repr(layout))
        how = How(_c.whole("chunk", chunk), layout, bool(state_v_first), bool(step), _c.whole("segment", segment))
        key = None if stream is not None else plan_key(given, of.scalars, *want, how)
        plan = self._plans.get(key)
        if plan is not None:
            return plan.run(given, Results())
        of.check_names((*given, *want))
        wide = filled(of, given, layout, state_v_first) if can_fill(of, given, want) else None
        if wide:
            given, cut = wide
            return Results(cut(self.run(want=want, chunk=chunk, layout=layout, state_v_first=state_v_first, step=step,
                                        segment=segment, stream=stream, **given)))
        scalars = {name: given.pop(name) for name in of.scalars if name in given}
        call = _Call(self, given, scalars, how, want, stream)
        of.check_missing(given, call.form)
        with call.on_stream():
            results, plan = call.run(want)
        if key is not None and call.like is not None:
            if len(self._plans) == _MOST_KINDS:
                self._plans.clear()
            self._plans[key] = plan(results)
        return results

    def keeping(self, where, views, how):
        """What a forward on these, whose backward comes, can leave for that; None: nothing."""
        form = Form(how.layout, how.v_first, "cu" in views)
        _, _, sizes, shape = self._shape(views, form, how)
        found = where.keeping(self.signature.variant, shape, sizes)
        names = tuple(name.decode() for name in found.names[: found.n])
        return Keeping(names, found.chunk, found.segment, found.seconds, found.seconds_without) if names else None

    def describe(self, where, given, scalars, want, how):
        """A call on views, `given` by name, of device `where`."""
        call = _Call(self, given, scalars, how, want, where=where)
        self.signature.check_missing(given, call.form)
        where.enter()
        kind = self.kind(where, call.views, call.form, how)
        call.check_outputs()
        outputs = {t.name: call.output(t, kind) for t in call.missing(want)}
        if call.on_host or any(v.device is None for v in call.views.values()):
            return Described(where, kind, 0 if call.on_host else kind.workspace, outputs, None, None)
        for name, (shape, dtype) in outputs.items():
            call.views[name] = View(0, shape, dense(shape), dtype, where.name, None)
        return Described(where, kind, kind.workspace, outputs, call.arguments(kind)[0], call.scalar_values(kind))

    def workspace_bytes(self, given, how):
        """What such a call takes on the device of its arrays."""
        call = _Call(self, given, {}, how)
        self.signature.check_missing(given, call.form)
        return self.kind(call.where, call.views, call.form, how).workspace

    def run_views(self, where, given, scalars, how, stream, workspace, fresh):
        """A call on views, of which those of outputs named in `fresh` have nothing in them yet."""
        _Call(self, given, scalars, how, (), stream, where, fresh, workspace).run(())

    def kind(self, where, views, form, how):
        key = (where.name, form, how, *((name, v.shape, v.dtype) for name, v in views.items()))
        found = self._kinds.get(key)
        if found is None:
            if len(self._kinds) == _MOST_KINDS:
                self._kinds.clear()
            self._kinds[key] = found = self._make_kind(where, views, form, how)
        return found

    def _shape(self, views, form, how):
        """Types, sizes, and both as C has them."""
        of = self.signature
        io, state = types(of, {name: v.dtype for name, v in views.items()})
        sizes = of.sizes({name: v.shape for name, v in views.items()}, form)
        if sizes["NH"] % max(sizes["NH/group"], 1):
            raise wrong("NH", f"a multiple of the {sizes['NH/group']} heads of queries and keys", str(sizes["NH"]))
        c_sizes = _c.Sizes(sizes["B"], sizes["NH"], sizes["T"], how.chunk)
        shape = _c.ShapeClass(_c.FLOATS[io], sizes.get("dqk", _FIXED_WIDTH), sizes["dhv"],
                              sizes["NH"] // max(sizes["NH/group"], 1), sizes["T"] if how.step else 0, form.packed,
                              form.pooled, 0 if state == "float32" else _c.FLOATS[state], form.v_first,
                              "count" in views)
        return sizes, (io, state), c_sizes, shape

    def _make_kind(self, where, views, form, how):
        of = self.signature
        sizes, (io, state), c_sizes, shape = self._shape(views, form, how)
        module, program = where.module(of.variant, shape, c_sizes, _kept(form))
        _c.call("tg_sizes_check", program, byref(c_sizes))
        self._check_kept(program, c_sizes, sizes, form)
        used = frozenset(n for n in of.known if _c.lib.tg_program_tensor(program, n.encode()) >= 0)
        workspace = _c.lib.tg_workspace_bytes(program, byref(c_sizes))
        return _Kind(sizes, io, state, c_sizes, module, program, workspace, used)

    def _check_kept(self, program, c_sizes, sizes, form):
        """That what is kept is as large as the program has it."""
        for name in form.kept:
            laid, i = self.signature.laid(form)[name], _c.lib.tg_program_tensor(program, name.encode())
            for axis, place in zip(laid.axes, laid.places):
                n = _c.lib.tg_tensor_extent(program, byref(c_sizes), i, place)
                if i < 0 or n > (1 if axis == "1" else sizes[axis]):
                    raise wrong(name, f"{n} {axis}", str(sizes.get(axis, 1)))


def _kept(form):
    """What a program keeps, as C has it; None: nothing."""
    if not form.kept:
        return None
    names = [name.encode() for name in form.kept]
    return _c.Kept(len(names), (c_char_p * 8)(*names), form.chunk, form.segment)


def _needs_gradient(tensor):
    import torch
    return tensor.requires_grad and torch.is_grad_enabled()


class _Call:
    """One call: arrays on the host are copied to the device and back."""

    def __init__(self, operator, given, scalars, how, want=(), stream=None, where=None, fresh=(), workspace=None):
        self.operator, self.of, self.given, self.scalars, self.how = operator, operator.signature, given, scalars, how
        self.stream = None if stream is None else _c.whole("stream", stream)
        name = operator.device.name if operator.device else None
        self.views = {key: view(key, array, name, stream) for key, array in given.items()}
        self.form = self._form(want)
        self.where = where or operator.device or self._device_of_arrays()
        self.fresh, self.workspace = fresh, workspace
        self.on_host = self._is_on_host()
        self.like = next((a for n, a in given.items() if self.of.known[n].is_io), None)

    def _form(self, want):
        kept = tuple(name for name in self.of.kept if name in self.given or name in want)
        cut = (self.how.chunk, self.how.segment) if kept else (0, 0)
        return Form(self.how.layout, self.how.v_first, "cu" in self.given, self._pooling(), kept, *cut)

    def _pooling(self):
        if "index_out" in self.views:
            return _c.POOL_TOKENS if len(self.views["index_out"].shape) == 2 else _c.POOL_MOVES
        return _c.POOL_SLOTS if "index" in self.views else 0

    def _device_of_arrays(self):
        for v in self.views.values():
            if v.device is not None:
                return device_of(v.device)
        if any(is_torch(array) for array in self.given.values()):
            return device_of("emu")
        return default()

    def _is_on_host(self):
        places = {name: v.device for name, v in self.views.items() if not self.of.known[name].is_table}
        if all(place is None for place in places.values()):
            return True
        for name, place in places.items():
            if place != self.where.name:
                found = "the host" if place is None else f"device {place}"
                raise wrong(f"{name}.device", f"device {self.where.name}, as other arrays of the call", found)
        return False

    def on_stream(self):
        """Outputs and workspace of PyTorch belong to the stream that the caller names."""
        if not self.stream or self.on_host or not is_torch(self.like):
            return contextlib.nullcontext()
        import torch
        return torch.cuda.stream(torch.cuda.ExternalStream(self.stream, self.like.device))

    def run(self, want):
        self.where.enter()
        kind = self.operator.kind(self.where, self.views, self.form, self.how)
        self._check_tables(kind)
        results = self._outputs(want, kind)
        arguments, buffers = self.arguments(kind)
        stream = self._stream()
        workspace, _kept = self._workspace(kind.workspace, stream)
        _c.call("tg_launch", kind.module, byref(kind.c_sizes), self.scalar_values(kind), arguments, len(arguments),
                c_uint64(workspace), c_void_p(stream))
        self._fetch(results, buffers)
        return results, functools.partial(Plan, self, kind, arguments)

    def _check_tables(self, kind):
        """What the kernels take on trust, of tables on the host. A negative slot is none."""
        host = {name: numbers(v) for name, v in self.views.items()
                if self.of.known[name].is_table and v.device is None}
        for name, values in host.items():
            if name in ("index", "index_out"):
                self._check_slots(name, values)
            elif name == "count" and not all(0 <= n <= kind.sizes["T"] for n in values):
                raise wrong("count", f"numbers of tokens up to T = {kind.sizes['T']}", str(values[:8]))
            elif name == "cu" and (values[:1] != [0] or values[-1] != kind.sizes["T"] or values != sorted(values)):
                raise wrong("cu", "boundaries that begin with 0, do not decrease and end with T = "
                            f"{kind.sizes['T']}", str(values[:8]))
        if self.form.pooled != _c.POOL_TOKENS:
            for slots in zip(*(host[name] for name in ("index", "index_out") if name in host)):
                if max(slots) < 0:
                    raise wrong("index", "a slot for every sequence, to begin or to end with", "a sequence without one")

    def _check_slots(self, name, values):
        pools = [self.views[t.name] for t in self.of.tensors.values() if t.is_state and t.name in self.views and
                 (self.form.pooled == _c.POOL_SLOTS or t.is_input == (name == "index"))]
        slots = min((pool.shape[0] for pool in pools), default=0)
        if pools and max(values, default=-1) >= slots:
            raise wrong(name, f"slots below {slots}", str(values[:8]))

    def check_outputs(self):
        for t in self.of.results:
            if t.name in self.given and self.views[t.name].is_read_only:
                raise wrong(t.name, "an array that may be written", "one that is read-only")

    def missing(self, want):
        """Outputs that are to be made."""
        return [t for t in self.of.results if t.name not in self.given and (not t.optional or t.name in want)]

    def output(self, t, kind):
        """Its shape and type."""
        if self.form.pooled and t.is_state:
            raise wrong(t.name, "an array of slots, which may be that of the initial state", "none")
        dtype = kind.io if t.is_io else kind.state if t.is_matrix else "float32"
        return self.of.shape(t.name, kind.sizes, self.form), dtype

    def _outputs(self, want, kind):
        self.check_outputs()
        made = {t.name: self._empty(*self.output(t, kind)) for t in self.missing(want)}
        for name, array in made.items():
            self.views[name] = view(name, array, self.where.name, self.stream)
            if self._is_filled(name):
                array[...] = 0
        known = {**self.given, **made}
        return Results({t.name: known[t.name] for t in self.of.results if t.name in known})

    def _is_filled(self, name):
        """What is on the host and may keep, in places, what it was: slots and tokens of no sequence."""
        return self.on_host and ((name in self.given and name not in self.fresh) or "count" in self.given)

    def _empty(self, shape, dtype):
        made = empty(self.like, shape, dtype) if not hasattr(self.like, "_tegula_view") else None
        if made is None and self.on_host:
            raise wrong("outputs", "arrays of yours for outputs beside arrays of this library",
                        type(self.like).__name__)
        return made if made is not None else DeviceArray(self.where, shape, dtype)

    def arguments(self, kind):
        used = [(name, v) for name, v in self.views.items() if name in kind.used]
        arguments, buffers, laid = (_c.TensorArg * len(used))(), {}, self.of.laid(self.form)
        for argument, (name, v) in zip(arguments, used):
            address, strides = (v.address, v.strides) if v.device is not None else self._upload(name, v, buffers)
            argument.name, argument.address = name.encode(), address
            scale = 2 if v.dtype == "int64" else 1
            for place, stride in zip(laid[name].places, strides):
                argument.stride[place] = stride * scale
        return arguments, buffers

    def _upload(self, name, v, buffers):
        """A copy on the device, which arrays in the same memory share: an initial and a final state."""
        key = v.key()
        if key not in buffers:
            if not v.is_contiguous():
                if not self.of.known[name].is_input:
                    raise wrong(f"{name}.strides", "a contiguous array for an output on the host", str(v.strides))
                v = view(name, contiguous(name, self.given[name]), None, None)
            buffers[key] = self.where.allocate(v.bytes)
            if self.of.known[name].is_input or self._is_filled(name):
                self.where.copy_in(buffers[key], v)
        return buffers[key].address, dense(v.shape)

    def _stream(self):
        if self.stream is not None or self.on_host or not is_torch(self.like):
            return self.stream or 0
        import torch
        return torch.cuda.current_stream(self.like.device).cuda_stream

    def _workspace(self, n, stream):
        """Its address, and what keeps it. That of PyTorch is its allocator's, so that a graph can be captured."""
        if not n or (self.workspace and not self.on_host):
            return self.workspace or 0, None
        if self.on_host or not is_torch(self.like):
            return self.where.workspace(n, stream), None
        kept = self.like.new_empty(n, dtype=_uint8())
        return kept.data_ptr(), kept

    def scalar_values(self, kind):
        if not self.scalars:
            return None
        values = []
        for name, value in self.of.scalars.items():
            value = self.scalars.get(name, value)
            values.append(kind.sizes["dqk"] ** -0.5 if value is None else _c.number(name, value))
        return (c_float * len(values))(*values)

    def _fetch(self, results, buffers):
        if not self.on_host:
            return
        self.where.synchronize()
        for name in results:
            v = self.views[name]
            self.where.copy_out(v, buffers[v.key()])


def _uint8():
    import torch
    return torch.uint8
