"""Context parallelism: the tokens of a sequence lie on the ranks of a process group of torch.distributed.

    context = tegula.context_parallel.Context(group)
    h = context.call("gated-delta", q=q, k=k, v=v, a=a, beta=beta).h

Each rank passes its own tokens and gets their outputs, as one process would compute them on all. Three steps make a
forward: a summary, which is the state behind the rank's tokens from a zero state and, where tokens come in and go on,
what they make of a state (a decay, or the matrix of the delta rule); one all-gather of the summaries, which every rank
puts together in the same order, in float64; and the forward from the state that comes out. The backward is the same
from the other end, with gradients of states. Where a sequence begins or ends on a rank, nothing of it is sent further.

What crosses ranks does not depend on the number of tokens: of a rank the states of one sequence (contiguous, packed), of
two (zigzag), or of B (a batch), and as much again as the transition has. Memory is that of a call on the rank's tokens
beside the summaries of all ranks. All ranks of the group must make the same calls in the same order, and go back through
them: a loss that uses an output on one rank must use it, by a weight of 0 if need be, on all.
"""

import torch
import torch.distributed as dist

from . import _fragments
from ._c import wrong
from ._across import Job, run
from ._carry import rule
from ._operator import Results
from ._signature import Form
from .torch import autocast, programs

__all__ = ["Context"]

_REFUSED = {"cu": "the boundaries are the context's: Context(group, cu_seqlens=...)",
            "index": "states in slots of a pool are for decoding, which one rank does", "index_out": "as index",
            "count": "as index", "step": "a decode step has few tokens: one rank does it"}
_OF_FLA = {"group", "cu_seqlens", "cu_seqlens_cpu", "is_last_rank", "pre_num_ranks", "is_first_rank", "post_num_ranks",
           "conv1d_kernel_size", "pre_num_conv_tokens"}


class Context:
    """How sequences lie on the ranks of a group. It holds no tensor of a call, and may be kept for as long as the
    boundaries stay the same.

    group: a ProcessGroup of torch.distributed whose ranks are in the order of the tokens; None: all processes. NCCL for
        tensors on GPUs; of gloo, tensors on a GPU go through the host.
    cu_seqlens: boundaries [N + 1] of sequences packed one behind the other, over the tokens of all ranks (any integers,
        the same on all ranks; a tensor on a GPU is waited for, once, here). The number of all tokens is a multiple of
        the number of ranks, or of twice that (zigzag). Borders may lie anywhere; a rank may have no token of a sequence,
        and a sequence no token at all. None: tensors have B sequences, each cut into as many parts as there are ranks,
        which may differ in length.
    layout: "contiguous": rank r has the r-th part of the tokens. "zigzag": of twice as many parts the r-th and the r-th
        from the end, one behind the other, as attention with a causal mask has them; each half of what a rank has.

    Raises tegula.Error where one of these is not so, or torch.distributed is not initialised.
    """

    def __init__(self, group=None, cu_seqlens=None, layout="contiguous"):
        if layout not in _fragments.LAYOUTS:
            raise wrong("layout", " or ".join(map(repr, _fragments.LAYOUTS)), repr(layout))
        if not dist.is_available() or not dist.is_initialized():
            raise wrong("group", "a process group", "torch.distributed not initialised",
                        "call torch.distributed.init_process_group")
        self.group, self.layout = group, layout
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise wrong("group", "one that this process belongs to", "another")
        self.pieces = None if cu_seqlens is None else self._packed(cu_seqlens)

    def __repr__(self):
        return f"tegula.context_parallel.Context(rank {self.rank} of {self.size}, layout={self.layout!r})"

    def _packed(self, cu_seqlens):
        cu = cu_seqlens.tolist() if hasattr(cu_seqlens, "tolist") else list(cu_seqlens)
        if not all(isinstance(n, int) for n in cu):
            raise wrong("cu_seqlens", "integers [N + 1]", str(cu[:8]))
        _fragments.check_cu(cu, self.layout, self.size)
        return _fragments.packed(cu, self.layout, self.size, self.rank)

    @classmethod
    def of(cls, context, field="cp_context"):
        """A context as it is, or made of one of flash-linear-attention (fla.ops.cp.FLACPContext), which knows the boundaries
        of this rank alone: with it there are no initial and no final states. Another raises tegula.Error on `field`."""
        if isinstance(context, cls):
            return context
        if {*getattr(context, "__dataclass_fields__", ())} != _OF_FLA or context.cu_seqlens is None:
            raise wrong(field, "a tegula.context_parallel.Context, or a FLACPContext of fla 0.6 with cu_seqlens",
                        type(context).__name__, "make a Context of the process group and the boundaries of all tokens")
        cu = context.cu_seqlens if context.cu_seqlens_cpu is None else context.cu_seqlens_cpu
        made = cls(context.group)
        made.pieces = _fragments.of_fla(cu.tolist(), made.rank, context.pre_num_ranks, context.post_num_ranks)
        return made

    def split(self, x, axis):
        """What this rank has of a tensor of all tokens: a view (contiguous) or a copy (zigzag). Nothing is sent. axis: that
        of the tokens, a multiple of the number of parts long."""
        n = self.size * len(_fragments.indices(self.layout, self.size, self.rank))
        if x.shape[axis] % n:
            raise wrong("split: tokens", f"a multiple of {n}", str(x.shape[axis]),
                        "fill up with tokens that are thrown away")
        per = x.shape[axis] // n
        parts = [x.narrow(axis, f * per, per) for f in _fragments.indices(self.layout, self.size, self.rank)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, axis)

    def join(self, x, axis):
        """A tensor of all tokens, on every rank, from what each has, of the same shape: the inverse of `split`. Without a
        gradient. All ranks call it."""
        n = len(_fragments.indices(self.layout, self.size, self.rank))
        if x.shape[axis] % n:
            raise wrong("join: tokens", f"a multiple of {n}", str(x.shape[axis]))
        parts = self._gather(x.detach().movedim(axis, 0).contiguous()[None]).unflatten(1, (n, -1))
        in_order = [parts[rank, i] for rank, i in _fragments.order(self.layout, self.size)]
        return torch.cat(in_order).movedim(0, axis)

    def call(self, variant, *, final_state=False, layout="bhtd", state_v_first=False, **given):
        """A variant on the tokens of all ranks: its output h for this rank's, and with final_state its states, by name.

        Tensors and scalars go by the names of the declaration, as in tegula.torch; those with tokens have this rank's, T
        of them (with cu_seqlens B = 1), parameters are the same on all ranks. On the CPU the emulator runs it.
        layout, state_v_first: as in tegula.torch.

        Initial states, [N, NH, ...] (of a batch N = B), are passed on all ranks or, where a rank has no first token of a
        sequence, left out: a rank reads the rows of sequences whose first token it has. A final state is float32 [N, NH,
        ...] (in the type of the initial one, if that is given): a rank has the rows of the sequences whose last token it
        has, the others are 0, so the sum over the group is the whole. A gradient that arrives at a row is taken where the
        row is.

        Gradients are those of the sum of the losses of all ranks. Those of tensors with tokens are whole; of parameters,
        and of initial states, a rank gets its share: the sum over the group is the gradient, as of any parameter that
        all ranks have.

        Returns tegula.Results. Raises tegula.Error where a variant carries nothing from token to token, or an argument
        has no meaning over ranks; the message says what to do instead. A graph of torch.compile is broken here.
        """
        return _call(self, variant, final_state, layout, state_v_first, given)

    def _gather(self, x):
        """[1, ...] of each rank -> [size, ...], in the order of ranks."""
        staged = x.is_cuda and dist.get_backend(self.group) == "gloo"
        sent = x.cpu() if staged else x
        found = sent.new_empty((self.size, *x.shape[1:]))
        dist.all_gather_into_tensor(found, sent, group=self.group)
        return found.to(x.device) if staged else found


@torch.compiler.disable
def _call(context, variant, final_state, layout, state_v_first, given):
    how = rule(variant)
    pair = programs[variant]
    forward = pair.forward
    given = {name: x for name, x in given.items() if x is not None}
    for name, hint in _REFUSED.items():
        if name in given:
            raise wrong(name, "none under context parallelism", type(given[name]).__name__, hint)
    forward.of.check_names(given)
    forward.of.check_missing(given, Form(layout))
    tensors = dict(zip(forward.names, autocast(forward, [given.get(name) for name in forward.names])))
    tensors = {name: x for name, x in tensors.items() if x is not None}
    scalars = {name: given[name] for name in forward.scalars if name in given}
    if scalars.get("count0"):
        raise wrong("count0", "0 under context parallelism", str(scalars["count0"]), "add it to the initial state c0")
    states = [t.name for t in forward.of.outputs if t.is_state]
    initial = {name: tensors.pop(f"{name}0") for name in states if f"{name}0" in tensors}
    pieces = _pieces(context, forward.of, tensors, layout)
    if context.pieces is not None and pieces.sequences is None and (initial or final_state):
        raise wrong("cp_context", "one of Tegula, for initial and final states",
                    "one of flash-linear-attention, which does not say which sequence is which",
                    "tegula.context_parallel.Context(group, cu_seqlens=...)")
    folded = 2 if context.pieces is None and context.layout == "zigzag" else 1
    axes = {name: t.axes for name, t in forward.of.laid(Form(layout)).items()}
    tensors = {name: _folded(x, axes[name], folded) for name, x in tensors.items()}
    matrices = {t.name for t in forward.of.outputs if t.is_matrix}
    turned = matrices if state_v_first else ()
    rows = {f"{name}0": _rows(f"{name}0", _turned(x, name in turned).float() if name in matrices else x, pieces)
            for name, x in initial.items()}
    job = Job(context, how, pair, layout, scalars, pieces, states if final_state else [], {**tensors, **rows})
    h, *found = run(job, [*tensors.values(), *rows.values()])
    results = Results(h=_unfolded(h, axes["h"], folded))
    for name, x in zip(job.returned, found):
        x = _turned(_final(x, pieces), name in turned)
        results[name] = x.to(initial[name].dtype) if name in initial else x
    return results


def _turned(x, is_turned):
    return x.mT.contiguous() if is_turned else x


def _pieces(context, of, tensors, layout):
    """Those of this call, whose tensors must have as many tokens."""
    like = next(t for t in of.inputs if "T" in t.axes)
    x, laid = tensors[like.name], like.laid(Form(layout)).axes
    if x.dim() != len(laid):
        raise wrong(like.name, f"{len(laid)} axes [{', '.join(laid)}]", f"shape {list(x.shape)}")
    B, T = x.shape[0], x.shape[laid.index("T")]
    if context.pieces is None:
        n = len(_fragments.indices(context.layout, context.size, context.rank))
        if T == 0 or T % n:
            raise wrong(f"{like.name}: T", f"a positive multiple of {n}, this rank's parts", str(T))
        return _fragments.batch(B, context.layout, context.size, context.rank)
    if (B, T) != (1, context.pieces.cu[-1]):
        raise wrong(like.name, f"B = 1 and T = {context.pieces.cu[-1]}, this rank's part of what cu_seqlens says",
                    f"B = {B}, T = {T}")
    return context.pieces


def _folded(x, axes, n):
    """[B, T] -> [B n, T / n]: the parts of a sequence become rows of the batch."""
    if n == 1 or "T" not in axes or "B" not in axes:
        return x
    at = axes.index("T")
    return x.unflatten(at, (n, -1)).movedim(at, 1).flatten(0, 1)


def _unfolded(x, axes, n):
    if n == 1:
        return x
    at = axes.index("T")
    return x.unflatten(0, (-1, n)).movedim(1, at).flatten(at, at + 1)


def _rows(name, initial, pieces):
    """Initial states [N, ...] of sequences -> those of the rows of the local call, 0 where others come before them."""
    if initial.shape[0] != pieces.n:
        raise wrong(name, f"a state of each of the {pieces.n} sequences", f"shape {list(initial.shape)}")
    sequences = torch.tensor(pieces.sequences, device=initial.device)
    begins = torch.tensor(pieces.begins, device=initial.device)
    rows = initial.index_select(0, sequences)
    return torch.where(begins.reshape(-1, *(1,) * (rows.dim() - 1)), rows, torch.zeros_like(rows))


def _final(rows, pieces):
    """States of rows -> [N, ...] of sequences, 0 where the end is elsewhere."""
    mine = [i for i, ends in enumerate(pieces.ends) if ends]
    at = torch.tensor([pieces.sequences[i] for i in mine], dtype=torch.long, device=rows.device)
    mine = torch.tensor(mine, dtype=torch.long, device=rows.device)
    return rows.new_zeros(pieces.n, *rows.shape[1:]).index_copy(0, at, rows.index_select(0, mine))
