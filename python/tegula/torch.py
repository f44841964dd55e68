"""Every variant as an operator of PyTorch: `tegula.torch.simple_gla(q=q, k=k, v=v, a=a)`, with gradients.

Each is torch.ops.tegula.NAME, and NAME_backward what autograd calls; both are opaque to torch.compile, which learns the
shapes of their outputs from the declaration. Tensors on a GPU run on its current stream, those on the CPU on the
emulator. An operator has all outputs of its variant: those that nobody wants are empty.
"""

import contextlib

import torch

from ._c import all_variants, wrong
from ._operator import Operator, Results
from ._signature import Form, signature

_library = torch.library.Library("tegula", "FRAGMENT")
_EXTENTS = {torch.bfloat16: 8, torch.float16: 8, torch.float32: 4}  # elements in 16 bytes


class _Op:
    """One program of a variant, forward or backward, as an operator."""

    def __init__(self, of):
        self.of, self.name = of, of.name.replace("-", "_")
        self.operator = Operator(of.name)
        self.inputs, self.outputs = of.inputs, of.outputs
        self.names = [t.name for t in self.inputs] + ["cu"]
        self.scalars = list(of.scalars)
        tensors = [f"Tensor{'?' if t.optional else ''} {t.name}" for t in self.inputs] + ["Tensor? cu"]
        scalars = [f"float? {name}" for name in self.scalars]
        _library.define(f"{self.name}({', '.join(tensors + scalars)}, str layout, bool v_first, int chunk, bool step, str[] want) -> "
                        f"({', '.join('Tensor' for _ in self.outputs)})".replace("(Tensor)", "Tensor"))
        for key in ("CPU", "CUDA"):
            _library.impl(self.name, self.run, key)
        torch.library.register_fake(f"tegula::{self.name}", self.fake, lib=_library)
        self.call = getattr(torch.ops.tegula, self.name).default

    def read(self, arguments):
        """Positional arguments of the operator: tensors by name, scalars by name, the other five."""
        n, s = len(self.names), len(self.scalars)
        return (dict(zip(self.names, arguments[:n])), dict(zip(self.scalars, arguments[n : n + s])),
                *arguments[n + s :])

    def run(self, *arguments):
        tensors, scalars, layout, v_first, chunk, step, want = self.read(arguments)
        tensors = {name: _ready(t) for name, t in tensors.items() if t is not None}
        with _on(tensors):
            found = self.operator.run(want=want, layout=layout, state_v_first=v_first, chunk=chunk, step=step,
                                      **tensors, **scalars)
            return self.results([found.get(t.name) for t in self.outputs], next(iter(tensors.values())))

    def fake(self, *arguments):
        tensors, _, layout, v_first, _, _, want = self.read(arguments)
        tensors = {name: t for name, t in tensors.items() if t is not None}
        like = next(tensors[t.name] for t in self.inputs if t.is_io)
        state = next((tensors[t.name].dtype for t in self.inputs if t.is_matrix and t.name in tensors), torch.float32)
        form = Form(layout, v_first, "cu" in tensors)
        sizes = self.of.sizes({name: t.shape for name, t in tensors.items()}, form, is_checked=False)
        made = []
        for t in self.outputs:
            dtype = like.dtype if t.is_io else state if t.is_matrix else torch.float32
            is_made = not t.optional or t.name in want
            made.append(like.new_empty(self.of.shape(t.name, sizes, form), dtype=dtype) if is_made else None)
        return self.results(made, like)

    def results(self, made, like):
        made = tuple(like.new_empty(0, dtype=torch.float32) if t is None else t for t in made)
        return made[0] if len(made) == 1 else made


def _ready(t):
    """As kernels want it: the last axis dense, the rest and the address in steps of 16 bytes."""
    n = _EXTENTS.get(t.dtype)
    if n is None or t.dim() < 2 or t.is_contiguous():
        return t
    good = t.stride(-1) == 1 and all(s % n == 0 for s in t.stride()[:-1]) and t.data_ptr() % 16 == 0
    return t if good or t.shape[-1] == 1 else t.contiguous()


def _on(tensors):
    """The device of the tensors becomes the current one."""
    on_gpu = next((t.device for t in tensors.values() if t.is_cuda), None)
    return torch.cuda.device(on_gpu) if on_gpu else contextlib.nullcontext()


def _register_gradients(forward, backward):
    """The backward takes inputs and outputs of the forward by name, dX for what arrives at output X."""
    outputs = [t.name for t in forward.outputs]
    gradients = [t.name for t in backward.outputs]

    def keep(ctx, inputs, output):
        output = (output,) if len(outputs) == 1 else output
        tensors, ctx.scalars, ctx.layout, ctx.v_first, _, _, want = forward.read(inputs)
        known = {**dict(zip(outputs, output)), **tensors}
        ctx.kept = [name for name in backward.names if known.get(name) is not None]
        ctx.save_for_backward(*(known[name] for name in ctx.kept))
        ctx.want = [name for name in gradients
                    if backward.of.tensors[name].optional and tensors.get(name[1:]) is not None]
        ctx.made = [not t.optional or t.name in want for t in forward.outputs]
        ctx.shape, ctx.like = output[0].shape, output[0].new_empty(0)
        ctx.set_materialize_grads(False)

    def go_back(ctx, *arriving):
        known = dict(zip(ctx.kept, ctx.saved_tensors))
        known.update((f"d{name}", gradient) for name, gradient, is_made in zip(outputs, arriving, ctx.made) if is_made)
        for t in backward.inputs:
            if not t.optional and known.get(t.name) is None:  # an output that nobody used
                known[t.name] = torch.zeros_like(known[t.name[1:]]) if t.name[1:] in known else ctx.like.new_zeros(
                    ctx.shape)
        found = backward.call(*(known.get(name) for name in backward.names),
                              *(ctx.scalars[name] for name in backward.scalars), ctx.layout, ctx.v_first, 0, False,
                              ctx.want)
        found = dict(zip(gradients, (found,) if len(gradients) == 1 else found))
        n_rest = len(forward.scalars) + 5
        return (*(found.get(f"d{name}") if ctx.needs_input_grad[i] else None
                  for i, name in enumerate(forward.names)), *(None,) * n_rest)

    torch.library.register_autograd(f"tegula::{forward.name}", go_back, setup_context=keep, lib=_library)


def _function(op):
    """The operator with arguments by name."""
    names, scalars, outputs = op.names, op.scalars, op.outputs
    states = [t.name for t in outputs if t.optional and t.is_state]
    always = [t.name for t in outputs if t.optional and not t.is_state]

    def function(*, final_state=False, layout="bhtd", state_v_first=False, chunk=0, step=False, **given):
        arguments = [given.pop(name, None) for name in names] + [given.pop(name, None) for name in scalars]
        for name in given:
            raise wrong(name, f"a tensor or scalar of {op.of.name}: {', '.join(names + scalars)}", repr(name))
        want = always + states if final_state else always
        found = op.call(*arguments, layout, state_v_first, chunk, step, want)
        found = (found,) if len(outputs) == 1 else found
        return Results({t.name: x for t, x in zip(outputs, found) if not t.optional or t.name in want})

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = (f"{op.of.name}: tensors {', '.join(t.name for t in op.inputs)}, cu; scalars "
                        f"{', '.join(scalars)}. Yields {', '.join(t.name for t in outputs)}.")
    return function


def _register():
    for name in all_variants():
        forward = _Op(signature(name))
        if forward.of.has_backward:
            _register_gradients(forward, _Op(signature(f"{name}-backward")))
        globals()[forward.name] = _function(forward)
        yield forward.name


__all__ = list(_register())
