"""A variant's programs as operators of PyTorch: their declarations, their outputs' shapes for torch.compile, and who
computes them. That is libtegula-torch where PyTorch has the interface that it needs, else the same call by ctypes.

What they take are tensors, scalars, and options as numbers, for strings do not cross libtorch's interface before PyTorch
2.10. They have no gradients; tegula.torch calls them.
"""

import contextlib
from typing import NamedTuple

import torch

from . import _stable
from ._operator import How, Operator
from ._signature import LAYOUTS, Form
from ._widths import is_odd

library = torch.library.Library("tegula", "FRAGMENT")
_EXTENTS = {torch.bfloat16: 8, torch.float16: 8, torch.float32: 4}  # elements in 16 bytes


class Options(NamedTuple):
    """What an operator takes behind its scalars: whole numbers. `layout` is the place among LAYOUTS, `want` has a bit for
    each output that is made."""

    layout: int
    v_first: int
    chunk: int
    step: int
    segment: int
    want: int

    @property
    def how(self):
        return How(self.chunk, LAYOUTS[self.layout], bool(self.v_first), bool(self.step), self.segment)


def initial(state):
    """The name of the other end of a state."""
    return f"{state}0"


class Op:
    """torch.ops.tegula.NAME: a program with outputs of PyTorch's making, all that it has; those that are not wanted are
    empty. `pools`: states that it changes in place, each of them initial and final state in one. NAME.out has outputs and
    workspace of the caller's, and makes none. `keeps`: a forward has outputs more, which it leaves for its backward; a
    backward takes what its forward may leave."""

    options = Options

    def __init__(self, of, name, pools=(), takes_outputs=False, keeps=False):
        self.of, self.pools, self.takes_outputs = of, pools, takes_outputs
        self.full_name = f"{name}.out" if takes_outputs else name
        self.operator = Operator(of.name)
        self.outputs = [t for t in (of.results if keeps else of.outputs) if t.name not in pools]
        self.made = [t.name for t in self.outputs]
        self.gradients = [(1 << i, name[1:]) for i, name in enumerate(self.made)]  # of a backward: of which input
        self.least = self.bits(t.name for t in self.outputs if not t.optional)
        self.usual = self.bits(t.name for t in self.outputs if not t.optional or not (t.is_state or t.is_kept))
        self.everything = self.bits(self.made)
        self.scalars = list(of.scalars)
        tensors = [(t.name, t.optional) for t in of.inputs if t.name not in map(initial, pools)] + [("cu", True)]
        tensors += [(t.name, True) for t in of.kept.values() if t.is_input]
        tensors += [(pool, False) for pool in pools] + ([("index", False), ("index_out", True)] if pools else [])
        self.names = [name for name, _ in tensors]
        self.optional = [is_optional for _, is_optional in tensors]
        self.written = [name in pools for name in self.names]
        self.rows = [of.known[name].has_rows for name in self.names]
        # What tells a call's sizes and types: rows of both widths, states, boundaries; and what was decided by them.
        self.telling = [i for i, t in enumerate(of.known[name] for name in self.names)
                        if (t.is_input and t.is_io and t.has_rows) or t.is_matrix or t.name == "cu"]
        self.choices = {}
        self.rows_that_tell = [self.names.index(next(name for name, of_row in of.rows if of_row == axis))
                               for axis in ("dqk", "dhv")] if of.has_products else []
        self._register(name)

    def bits(self, names):
        """Outputs as bits."""
        return sum(1 << self.made.index(name) for name in names)

    def is_odd(self, tensors):
        """Rows of a width that no kernel has, and that can be filled up."""
        return any(is_odd(tensors[i].shape[-1]) for i in self.rows_that_tell if tensors[i] is not None)

    def by_bits(self, want):
        return [name for i, name in enumerate(self.made) if want >> i & 1]

    def __call__(self, tensors, scalars, options, **outputs):
        """The outputs by name that are made with these options, of tensors and scalars in their order."""
        try:
            found = self.call(*tensors, *scalars, *options, **outputs)
        except RuntimeError as error:
            found = _stable.reason(error)
            if found is error:
                raise
            raise found from None
        return outputs if self.takes_outputs else self.by_name(found, options.want)

    def by_name(self, found, want):
        """Outputs as the operator returns them."""
        found = (found,) if len(self.made) == 1 else found
        return {name: x for i, (name, x) in enumerate(zip(self.made, found)) if want >> i & 1}

    def in_order(self, made, like):
        """Outputs by name, as the operator returns them."""
        made = [made[name] if name in made else like.new_empty(0, dtype=torch.float32) for name in self.made]
        return made[0] if len(made) == 1 else tuple(made)

    # ---- what PyTorch hears of it ----

    def _register(self, name):
        library.define(self._schema())
        if not _stable.implement(self):
            for key in ("CPU", "CUDA"):
                library.impl(self.full_name, self._run, key)
        library.impl(self.full_name, torch.library.fallthrough_kernel, "Autograd")
        torch.library.register_fake(f"tegula::{self.full_name}", self._fake, lib=library)
        self.call = getattr(getattr(torch.ops.tegula, name), "out" if self.takes_outputs else "default")

    def _schema(self):
        aliases = iter("abcdefghijklmnopqrstuvwxyz")
        of_inputs = [f"Tensor({next(aliases)}!)" if is_written else "Tensor?" if is_optional else "Tensor"
                     for is_written, is_optional in zip(self.written, self.optional)]
        arguments = [f"{kind} {name}" for kind, name in zip(of_inputs, self.names)]
        arguments += [f"float? {name}" for name in self.scalars] + [f"int {name}" for name in Options._fields]
        results = ", ".join("Tensor" for _ in self.made)
        results = results if len(self.made) == 1 else f"({results})"
        if self.takes_outputs:
            arguments += ["*", *(f"Tensor({next(aliases)}!)? {name}=None" for name in (*self.made, "workspace"))]
            results = "()"
        return f"{self.full_name}({', '.join(arguments)}) -> {results}"

    def _read(self, arguments):
        """Positional arguments of the operator: tensors by name, scalars by name, options."""
        n, s = len(self.names), len(self.scalars)
        tensors = {name: t for name, t in zip(self.names, arguments) if t is not None}
        scalars = {name: x for name, x in zip(self.scalars, arguments[n : n + s]) if x is not None}
        return tensors, scalars, Options(*arguments[n + s :])

    def with_initial(self, tensors):
        """Pools are both ends of a state."""
        return {**tensors, **{initial(name): tensors[name] for name in self.pools}}

    def _run(self, *arguments, **outputs):
        """The call by ctypes."""
        tensors, scalars, options = self._read(arguments)
        tensors = {name: t if name in self.pools or not self.of.known[name].has_rows else ready(t)
                   for name, t in tensors.items()}
        outputs.pop("workspace", None)  # this way has its own
        want, how = self.by_bits(options.want), options.how
        with _on(tensors):
            found = self.operator.run(want=want, chunk=how.chunk, layout=how.layout, state_v_first=how.v_first,
                                      step=how.step, segment=how.segment, **self.with_initial(tensors), **scalars,
                                      **outputs)
        return None if self.takes_outputs else self.in_order(found, next(iter(tensors.values())))

    def _fake(self, *arguments, **_outputs):
        """What torch.compile knows."""
        if self.takes_outputs:
            return None
        made = self.empty(arguments, Options(*arguments[-len(Options._fields) :]))
        return self.in_order(made, next(t for t in arguments if t is not None))

    def empty(self, tensors, options, given=()):
        """Outputs that are made with these options, but for those that are given."""
        tensors = {name: t for name, t in zip(self.names, tensors) if t is not None}
        like = next(tensors[t.name] for t in self.of.inputs if t.is_io)
        state = next((tensors[t.name].dtype for t in self.of.inputs if t.is_matrix and t.name in tensors), torch.float32)
        kept = tuple(name for name in self.by_bits(options.want) if name in self.of.kept)
        form = Form(LAYOUTS[options.layout], bool(options.v_first), "cu" in tensors, bool(self.pools), kept,
                    *((options.chunk, options.segment) if kept else ()))
        sizes = self.of.sizes({name: t.shape for name, t in tensors.items()}, form, is_checked=False)
        made = {}
        for i, t in enumerate(self.outputs):
            if t.name not in given and (options.want | self.least) >> i & 1:
                dtype = like.dtype if t.is_io else state if t.is_matrix else torch.float32
                made[t.name] = like.new_empty(self.of.shape(t.name, sizes, form), dtype=dtype)
        return made


def ready(t):
    """Rows as kernels want them: dense, the rest and the address in steps of 16 bytes."""
    n = _EXTENTS.get(t.dtype)
    if n is None or t.numel() == 0:
        return t
    good = t.stride(-1) == 1 and all(s % n == 0 for s in t.stride()[:-1]) and t.data_ptr() % 16 == 0
    return t if good else t.clone(memory_format=torch.contiguous_format)


def _on(tensors):
    """The device of the tensors becomes the current one."""
    on_gpu = next((t.device for t in tensors.values() if t.is_cuda), None)
    return torch.cuda.device(on_gpu) if on_gpu else contextlib.nullcontext()
