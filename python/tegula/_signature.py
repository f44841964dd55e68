"""What a variant declares: tensors with their axes, scalars; and sizes from the shapes of arrays.

A tensor is [B, NH, T, width] as it is declared, less the axes that it lacks. With layout "bthd" tensors with tokens are
[B, T, NH, width]; with v_first states are [B, NH, dhv, dqk]. Sizes follow from the arrays, and every array must agree
with the first that told a size.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

from . import _c
from ._c import wrong

LAYOUTS = ("bhtd", "bthd")
ANY = "slots"  # an axis that tells no size


class Form(NamedTuple):
    """How the tensors of a call lie in memory."""

    layout: str = "bhtd"
    v_first: bool = False
    packed: bool = False
    pooled: int = 0  # tg_pooling
    kept: tuple = ()  # tensors that a forward leaves for its backward, by name
    chunk: int = 0  # how sequences are cut, where tensors are kept
    segment: int = 0


class Laid(NamedTuple):
    """A tensor in memory: its axes by the names of sizes, and which of C's [B, NH, axes...] each is."""

    axes: tuple
    places: tuple

    def __str__(self):
        return "[" + ", ".join(self.axes) + "]"


@dataclass(frozen=True)
class Tensor:
    """One of a declaration. `axes` are names of sizes: B, NH or NH/group, T, dqk, dhv."""

    name: str
    is_input: bool
    optional: bool
    is_io: bool  # of the input type; else float32, tables int32 or int64
    axes: tuple
    places: tuple
    is_table: bool = False
    is_kept: bool = False

    @property
    def is_state(self):
        return "T" not in self.axes and "B" in self.axes and not self.is_table and not self.is_kept

    @property
    def has_rows(self):
        """A kernel reads its last axis in pieces of 16 bytes."""
        return self.axes[-1:] in (("dqk",), ("dhv",), ("positions",))

    @property
    def is_matrix(self):
        """A state that may have a type and an order of its own."""
        return self.is_state and self.axes[-2:] == ("dqk", "dhv")

    def laid(self, form):
        axes, places = list(self.axes), list(self.places)
        if form.layout == "bthd" and "T" in axes and not self.is_kept:
            at, to = axes.index("T"), 1 if "B" in axes else 0
            axes.insert(to, axes.pop(at))
            places.insert(to, places.pop(at))
        if form.v_first and self.is_matrix:
            axes[-2:] = "dhv", "dqk"
        if "B" in axes and form.packed and ("T" in axes or "chunks" in axes or ("segments" in axes and not form.segment)):
            axes[axes.index("B")] = "1"
        if form.pooled and self.is_state:
            axes[axes.index("B")] = ANY
        if form.pooled == _c.POOL_TOKENS and self.name == "index_out":
            axes, places = ["B", ANY if form.packed else "T"], [0, 2]
        return Laid(tuple(axes), tuple(places))


def _tensor(found, is_kept=False, is_input=None):
    """`is_kept`: as a program has it that keeps it, an input or an output."""
    flags, axes, places = found.flags, [], []
    for name, absent, place in (("B", _c.NO_BATCH, 0), ("NH", _c.NO_HEADS, 1)):
        if not flags & absent:
            axes.append("NH/group" if place and flags & _c.SHARED else name)
            places.append(place)
    for i, axis in enumerate(found.axes):
        if axis:
            # Beside a state for every segment a vector is kept for every chunk of it.
            is_by_segment = i == 0 and axis == _c.CHUNK and found.axes[2]
            axes.append("segments" if is_by_segment else _c.AXES[axis])
            places.append(2 + i)
    return Tensor(found.name.decode(), bool(flags & _c.IN) if is_input is None else is_input,
                  bool(flags & _c.OPTIONAL) or is_kept, found.dtype == 1, tuple(axes), tuple(places), is_kept=is_kept)


def _cut(sizes, form):
    """Entries of tensors that have one a chunk, or a segment of them; of packed sequences each may end in a chunk of its
    own."""
    chunks = -(-sizes["T"] // form.chunk) + (sizes["B"] if form.packed else 0)
    return {"positions": form.chunk, "chunks": chunks, "segments": -(-chunks // max(form.segment, 1))}


TABLES = {"cu": Tensor("cu", True, True, False, ("B+1",), (2,), True),
          "index": Tensor("index", True, True, False, ("B",), (0,), True),
          "index_out": Tensor("index_out", True, True, False, ("B",), (0,), True),
          "count": Tensor("count", True, True, False, ("B",), (0,), True)}


class Signature:
    """A variant's tensors in their order, and scalars with their values (None: 1/sqrt(dqk))."""

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
        self.kept = {} if name.endswith("-state") else {t.name: t for t in self._kept(name.endswith("-backward"))}
        self.known = {**self.tensors, **TABLES, **self.kept}
        self.scalars = {"scale": None}
        for i in range(algorithm.n_scalars if algorithm.scalars else 0):
            scalar = algorithm.scalars[i]
            self.scalars[scalar.name.decode()] = scalar.value if i or scalar.value else None
        self.has_backward = bool(found[0].backward)
        self.backward = found[0].backward
        self.inputs = [t for t in self.tensors.values() if t.is_input]
        self.outputs = [t for t in self.tensors.values() if not t.is_input]
        self.results = [*self.outputs, *(t for t in self.kept.values() if not t.is_input)]
        self.has_products = {"dqk", "dhv"} <= {t.axes[-1] for t in self.inputs if t.is_io}
        self.rows = [(t.name, t.axes[-1]) for t in self.inputs if t.is_io and t.has_rows]
        self._forms = {}

    def _kept(self, is_backward):
        """Tensors that some schedule of a forward leaves for a backward, which takes them."""
        i = 0
        while _c.lib.tg_jit_kept_tensor(self.variant, i):
            yield _tensor(_c.lib.tg_jit_kept_tensor(self.variant, i)[0], True, is_backward)
            i += 1

    def laid(self, form):
        """All tensors in memory, by name."""
        if form not in self._forms:
            self._forms[form] = {name: t.laid(form) for name, t in self.known.items()}
        return self._forms[form]

    def check_names(self, names):
        for name in names:
            if name not in self.known and name not in self.scalars:
                known = [*self.tensors, *self.scalars, *TABLES]
                raise wrong(name, f"a tensor or scalar of {self.name}: {', '.join(known)}", f"{name!r}")

    def check_missing(self, given, form):
        for t in self.inputs:
            if not t.optional and t.name not in given:
                raise wrong(t.name, f"an array {self.laid(form)[t.name]}, which {self.name} needs", "none")

    def sizes(self, shapes, form, is_checked=True):
        """Sizes by name, from the shapes of the tensors given: {"B": 2, "NH": 4, ...}. Unchecked, only rank matters."""
        laid, sizes = self.laid(form), {}
        if form.packed:
            sizes["1"] = (1, "packed sequences")
            sizes["B"] = (shapes["cu"][0] - 1 if shapes["cu"] else 0, "cu")
        for name, shape in shapes.items():
            axes = laid[name].axes
            if len(shape) != len(axes):
                raise wrong(name, f"{len(axes)} axes {laid[name]}", f"shape {list(shape)}")
            for axis, extent in zip(axes, shape):
                if axis in ("B+1", ANY):
                    continue
                value, teller = sizes.setdefault(axis, (extent, name))
                if is_checked and value != extent:
                    raise wrong(name, f"{laid[name]} with {axis} = {value} as in {teller}", f"shape {list(shape)}")
        told = {name: value for name, (value, _) in sizes.items()}
        told.setdefault("NH", told.get("NH/group"))
        told.setdefault("NH/group", told["NH"])
        if form.kept:
            cut = _cut(told, form)
            for axis, value in cut.items():
                if is_checked and axis in told and told[axis] != value:
                    raise wrong(", ".join(form.kept), f"{value} {axis}, with chunks of {form.chunk} and segments of "
                                f"{form.segment}", str(told[axis]))
            told.update(cut)
        return told

    def shape(self, name, sizes, form):
        """The shape of a tensor of a call with these sizes."""
        return tuple(1 if axis == "1" else sizes[axis] for axis in self.laid(form)[name].axes)


def signature(name):
    """A variant's, by its name."""
    if not isinstance(name, str):
        raise wrong("variant", "a name that `tegula variants` lists", repr(name))
    return _signature(name)


_signature = functools.cache(Signature)


def types(of, dtypes):
    """The type that all tensors of the input type have, and that of states; the others are checked too."""
    found = {}
    for name, dtype in dtypes.items():
        t = of.known[name]
        kind = "table" if t.is_table else "io" if t.is_io else "state" if t.is_matrix else "other"
        expected = {"table": ("int32", "int64"), "other": ("float32",)}.get(kind, tuple(_c.FLOATS))
        if kind in found:
            expected = found[kind][0],
        if dtype not in expected:
            like = f" like {found[kind][1]}" if kind in found else ""
            raise wrong(f"{name}.dtype", " or ".join(expected) + like, dtype)
        if kind in ("io", "state"):
            found.setdefault(kind, (dtype, name))
    return tuple(found.get(kind, ("float32",))[0] for kind in ("io", "state"))
