"""Gradients of operators: what a forward leaves for its backward, and what of that goes back."""

from typing import NamedTuple

import torch

from . import _torch_keep
from ._torch_ops import Op, Options


class Pair(NamedTuple):
    """The operators of a variant. `keep`: the forward that leaves more for the backward; None: there is none."""

    forward: Op
    backward: object  # Op or None
    keep: object


class Arguments(NamedTuple):
    """Of a call, beside its tensors."""

    pair: Pair
    scalars: list
    options: Options
    keeping: object  # as _torch_keep.choose says


def run(pair, tensors, scalars, options, keep_states):
    """The outputs by name, with gradients where a tensor needs them."""
    if pair.backward and torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
        keeping = _torch_keep.choose(pair.keep, tensors, options, keep_states)
        found = _Run.apply(Arguments(pair, scalars, options, keeping), *tensors)
        return dict(zip(pair.forward.by_bits(options.want), found))
    return pair.forward(tensors, scalars, options)


class _Run(torch.autograd.Function):
    """The backward takes inputs and outputs of the forward by name, dX for what arrives at output X."""

    @staticmethod
    def forward(ctx, call, *tensors):
        pair, made = call.pair, call.options.want
        if call.keeping:
            chunk, segment, kept = call.keeping
            found = pair.keep(tensors, call.scalars, call.options._replace(chunk=chunk, segment=segment, want=made | kept))
        else:
            found = pair.forward(tensors, call.scalars, call.options)
        known = {**found, **dict(zip(pair.forward.names, tensors))}
        ctx.call = call
        ctx.kept = [name for name in pair.backward.names if known.get(name) is not None]
        ctx.save_for_backward(*(known[name] for name in ctx.kept))
        found = {name: found[name] for name in pair.forward.by_bits(made)}
        ctx.like = {name: (x.shape, x.dtype, x.device) for name, x in found.items()}
        ctx.set_materialize_grads(False)
        return tuple(found.values())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *arriving):
        call, (forward, backward, _) = ctx.call, ctx.call.pair
        known = dict(zip(ctx.kept, ctx.saved_tensors))
        known.update((f"d{name}", gradient) for name, gradient in zip(ctx.like, arriving))
        for t in backward.of.inputs:
            if not t.optional and known.get(t.name) is None:  # of an output that nobody used
                shape, dtype, device = ctx.like[t.name[1:]]
                known[t.name] = torch.zeros(shape, dtype=dtype, device=device)
        scalars = dict(zip(forward.scalars, call.scalars))
        want = backward.least | sum(bit for bit, name in backward.gradients if known.get(name) is not None)
        chunk, segment, _ = call.keeping or (0, 0, 0)
        options = Options(call.options.layout, call.options.v_first, chunk, 0, segment, want)
        found = backward([known.get(name) for name in backward.names], [scalars[name] for name in backward.scalars],
                         options)
        return (None, *(found.get(f"d{name}") if is_needed else None
                        for name, is_needed in zip(forward.names, ctx.needs_input_grad[1:])))
