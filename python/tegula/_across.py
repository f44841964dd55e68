"""One call over ranks: what each fragment sends, what a rank makes of it, forward and backward."""

import functools

import torch

from . import _fragments
from ._carry import compose
from ._signature import LAYOUTS, Form, signature
from ._torch_ops import Op, Options


@functools.cache
def _states_of(op):
    """The program that makes final states, or gradients of initial ones, and nothing else."""
    name = f"{op.of.name}-state"
    return Op(signature(name), name.replace("-", "_"))


def run(job, tensors):
    """h and the states that the job returns, with gradients."""
    return _Run.apply(job, *tensors)


class Job:
    """What the forward and the backward of a call have in common. `tensors`: those of this rank by name, initial states
    of the rows among them; `returned`: the states that are asked for."""

    def __init__(self, context, how, programs, layout, scalars, pieces, returned, tensors):
        self.context, self.how, self.layout, self.scalars, self.pieces = context, how, layout, scalars, pieces
        self.forward, self.backward = programs.forward, programs.backward
        self.ends = _states_of(programs.forward)
        self.back_ends = _states_of(programs.backward) if how.has_back_states else programs.backward
        self.returned, self.names = returned, list(tensors)
        of, back = self.forward.of, self.backward.of
        self.axes = {t.name: t.axes for t in of.outputs}
        self.states = [t.name for t in of.outputs if t.is_state]
        self.back_states = [name for name in self.states if f"d{name}0" in back.tensors]
        self.wanted = [name for name in self.states if name in returned or name in how.needs]
        self.kept = [t.name for t in back.inputs if t.name in self.axes]
        like = next(t.name for t in of.inputs if t.is_io)
        self.dtypes = {t.name: tensors[like].dtype if t.is_io else torch.float32 for t in of.outputs}
        self.device, self.cu = tensors[like].device, None
        if pieces.cu is not None:
            self.cu = torch.tensor(pieces.cu, device=self.device)
        self.form = Form(layout, False, self.cu is not None)
        shapes = {name: x.shape for name, x in tensors.items()}
        self.sizes = of.sizes(shapes if self.cu is None else {**shapes, "cu": self.cu.shape}, self.form)

    # ---- programs ----

    def run(self, op, tensors, want, cu=None):
        """A program's outputs by name, of those that are optional the wanted ones."""
        given = {**tensors, "cu": cu}
        return op([given.get(name) for name in op.names], [self.scalars.get(name) for name in op.scalars],
                  Options(LAYOUTS.index(self.layout), 0, 0, 0, 0, op.least | op.bits(want)))

    def cut(self, tensors, rows, tokens):
        """What one piece has of tensors of the local call: some rows of a batch, or some tokens."""
        found, laid = {}, {**self.forward.of.laid(self.form), **self.backward.of.laid(self.form)}
        for name, x in tensors.items():
            axes = laid[name].axes
            if "T" in axes and tokens is not None:
                found[name] = x.narrow(axes.index("T"), tokens[0], tokens[1] - tokens[0])
            else:
                found[name] = x[rows] if axes[0] == "B" else x
        return found

    # ---- forward ----

    def transition(self, fragment, inputs):
        """What a piece whose sequence comes in and goes on makes of a state; of others nobody asks."""
        if not fragment.is_through:
            return {}
        piece = self.cut(inputs, fragment.first, fragment.first_tokens)
        gates = {name: x.transpose(1, 2) if "T" in self.forward.of.known[name].axes and self.layout == "bhtd" else x
                 for name, x in piece.items()}
        value = next(x for name, x in gates.items() if self.forward.of.known[name].axes[-1:] == ("dhv",))
        return self.how.transition(gates, {**self.forward.of.scalars, **self.scalars}, value.shape[:3],
                                   lambda: self.probed(piece))

    def probed(self, piece):
        """The state behind a piece without values, from the identity."""
        n, v = self.sizes["dqk"], piece["v"]
        start = torch.eye(n, device=v.device).expand(v.shape[0], self.sizes["NH"], n, n).contiguous()
        return self.run(self.ends, {**piece, "v": v.new_zeros(*v.shape[:-1], n), "S0": start}, ["S"])["S"]

    def summary(self, fragment, inputs, before, transition):
        """The record of the last piece, if its sequence goes on: the state behind it, from the initial one where the
        sequence begins with it, else from zero."""
        if not fragment.after:
            return None
        piece = self.cut(inputs, fragment.last, fragment.last_tokens)
        if fragment.is_through:
            start = {f"{name}0": self.full(name, self.rows_of(fragment), x) for name, x in self.how.zero.items()}
        else:
            start = {name: x[fragment.last] for name, x in before.items()}
        found = self.run(self.ends, {**piece, **start}, self.states)
        return {name: found[name] for name in self.states}, transition

    def incoming(self, before, records):
        """Initial states of the rows, with those of first pieces whose sequence began elsewhere."""
        return self.filled({name: before.get(f"{name}0") for name in self.states}, "{}0", [
            (f.first, records[f.index - f.before : f.index]) for f in self.pieces.fragments if f.before], False)

    # ---- backward ----

    def back_summary(self, fragment, tensors, behind, transition):
        """The record of the first piece, if its sequence began before: the gradient of the state that it came in with, of
        the piece's outputs, and of the final state where the sequence ends with it."""
        if not fragment.before:
            return None
        given = self.cut(tensors, fragment.first, fragment.first_tokens)
        if not fragment.is_through:
            given.update((f"d{name}", x[fragment.first]) for name, x in behind.items() if x is not None)
        found = self.run(self.back_ends, given, [f"d{name}0" for name in self.back_states])
        return {name: found[f"d{name}0"] for name in self.back_states}, transition

    def arriving(self, behind, records):
        """Gradients of the states behind the rows, with those of last pieces whose sequence goes on elsewhere."""
        return self.filled(behind, "d{}", [
            (f.last, records[f.index + 1 : f.index + 1 + f.after][::-1]) for f in self.pieces.fragments if f.after], True)

    # ---- what is sent ----

    def rows_of(self, fragment):
        return len(range(*fragment.first.indices(self.sizes["B"])))

    def full(self, name, rows, value):
        shape = (rows, *(self.sizes[axis] for axis in self.axes[name][1:]))
        return torch.full(shape, value, dtype=self.dtypes[name], device=self.device)

    def filled(self, given, called, chains, is_back):
        """States of rows by the names of arguments: as given, else 0; some rows what chains of records make."""
        names = self.back_states if is_back else self.states
        if not chains:
            return {called.format(name): given[name] for name in names if given.get(name) is not None}
        found = {name: self.full(name, self.sizes["B"], 0) if given.get(name) is None else given[name].clone()
                 for name in names}
        for rows, chain in chains:
            for name, x in compose(self.how, chain, self.axes, is_back).items():
                found[name][rows] = x.to(found[name].dtype)
        return {called.format(name): x for name, x in found.items()}

    def exchange(self, records, states):
        """Records of this rank's fragments, None where there is nothing to send -> those of all fragments, in order."""
        rows = self.rows_of(self.pieces.fragments[0])
        shapes = ({name: (rows, *(self.sizes[axis] for axis in self.axes[name][1:])) for name in states},
                  {name: (rows, *shape) for name, shape in self.how.parts(self.sizes).items()})
        sent = torch.stack([_packed(record or ({}, {}), shapes, self.device) for record in records])
        found = self.context._gather(sent[None])
        return [_unpacked(found[rank, i], shapes) for rank, i in
                _fragments.order(self.context.layout, self.context.size)]


def _packed(record, shapes, device):
    parts = [record[i][name].to(device, torch.float32) if name in record[i] else torch.zeros(shape, device=device)
             for i, of in enumerate(shapes) for name, shape in of.items()]
    return torch.cat([part.flatten(1) for part in parts], 1)


def _unpacked(x, shapes):
    made, at = ({}, {}), 0
    for record, of in zip(made, shapes):
        for name, shape in of.items():
            n = torch.Size(shape[1:]).numel()
            record[name] = x[:, at : at + n].reshape(shape)
            at += n
    return made


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, job, *tensors):
        given = dict(zip(job.names, tensors))
        before = {f"{name}0": given[f"{name}0"] for name in job.states if f"{name}0" in given}
        inputs = {name: x for name, x in given.items() if name not in before}
        fragments, transitions = job.pieces.fragments, [job.transition(f, inputs) for f in job.pieces.fragments]
        if job.pieces.exchanges:
            records = [job.summary(f, inputs, before, t) for f, t in zip(fragments, transitions)]
            before = job.incoming(before, job.exchange(records, job.states))
        found = job.run(job.forward, {**inputs, **before}, [*job.wanted, *(n for n in job.kept if n != "h")], job.cu)
        transitions = [job.how.back(t, f, before, found) if f.is_through else t for f, t in zip(fragments, transitions)]
        kept = {**inputs, **before, **{name: found[name] for name in job.kept}}
        ctx.job, ctx.kept, ctx.parts = job, list(kept), [list(t) for t in transitions]
        ctx.save_for_backward(*kept.values(), *(x for t in transitions for x in t.values()))
        ctx.set_materialize_grads(False)
        ctx.shape = found["h"].shape
        return (found["h"], *(found[name] for name in job.returned))

    @staticmethod
    def backward(ctx, dh, *dstates):
        job, saved = ctx.job, iter(ctx.saved_tensors)
        kept = {name: next(saved) for name in ctx.kept}
        transitions = [{name: next(saved) for name in names} for names in ctx.parts]
        kept["dh"] = torch.zeros(ctx.shape, dtype=job.dtypes["h"], device=job.device) if dh is None else dh
        kept = {name: x for name, x in kept.items() if name in job.backward.names}
        behind = {name: x if x is None else x.float() for name, x in zip(job.returned, dstates) if name in job.back_states}
        if job.pieces.exchanges:
            records = [job.back_summary(f, kept, behind, t) for f, t in zip(job.pieces.fragments, transitions)]
            behind = job.arriving(behind, job.exchange(records, job.back_states))
        else:
            behind = {f"d{name}": x for name, x in behind.items() if x is not None}
        found = job.run(job.backward, {**kept, **behind}, [f"d{name}" for name in job.names if name[:-1] in job.back_states],
                        job.cu)
        return (None, *(found.get(f"d{name}") if is_needed else None
                        for name, is_needed in zip(job.names, ctx.needs_input_grad[1:])))
