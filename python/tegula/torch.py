"""Every variant as an operator of PyTorch: `tegula.torch.simple_gla(q=q, k=k, v=v, a=a)`, with gradients.

Each is torch.ops.tegula.NAME, which calls NAME_forward and NAME_backward; these are opaque to torch.compile, which learns
the shapes of their outputs from the declaration. Tensors on a GPU run on its current stream, those on the CPU on the
emulator. An operator has all outputs of its variant: those that nobody wants are empty. NAME_pooled is the forward on
slots of pools, which it changes in place.
"""

from typing import NamedTuple

import torch

from . import _torch_grad
from ._c import all_variants, number, wrong
from ._operator import How, Results
from ._signature import LAYOUTS, signature
from ._torch_grad import Pair
from ._torch_ops import Op, Options, library
from ._widths import filled


# Whether forwards leave states for their backwards, unless a call says so itself: where the cost model thinks that faster
# (None), wherever it can be (True), or never (False), which takes the least memory.
keep_states_by_default = None


def autocast(op, tensors):
    """In a region of torch.autocast queries, keys and values take its type, as those of PyTorch's attention do."""
    device = next((t.device.type for t in tensors if t is not None), None)
    if not op.of.has_products or device is None or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return [t.to(dtype) if t is not None and op.of.known[name].is_io else t for name, t in zip(op.names, tensors)]


class _Public:
    """torch.ops.tegula.NAME: the forward with gradients. PyTorch traces through it, to what it calls."""

    def __init__(self, pair):
        self.pair, op = pair, pair.forward
        self.name = op.of.name.replace("-", "_")
        arguments = [f"Tensor{'?' * is_optional} {name}" for name, is_optional in zip(op.names, op.optional)]
        arguments += [f"float? {name}" for name in op.scalars]
        arguments += ["str layout", "bool v_first", "int chunk", "bool step", "str[] want", "bool? keep_states=None"]
        results = ", ".join("Tensor" for _ in op.made)
        results = results if len(op.made) == 1 else f"({results})"
        library.define(f"{self.name}({', '.join(arguments)}) -> {results}")
        library.impl(self.name, self._run, "CompositeImplicitAutograd")
        self.call = getattr(torch.ops.tegula, self.name).default

    def __call__(self, tensors, scalars, options, keep_states):
        """As the forward's, for a graph of torch.compile."""
        op = self.pair.forward
        found = self.call(*tensors, *scalars, LAYOUTS[options.layout], bool(options.v_first), options.chunk,
                          bool(options.step), op.by_bits(options.want), keep_states)
        return op.by_name(found, options.want)

    def _run(self, *arguments):
        op = self.pair.forward
        n, s = len(op.names), len(op.scalars)
        layout, v_first, chunk, step, want, *keep = arguments[n + s :]
        options = Options(_layout(layout), int(v_first), chunk, int(step), 0, op.least | op.bits(want))
        found = _torch_grad.run(self.pair, arguments[:n], arguments[n : n + s], options, *(keep or (None,)))
        return op.in_order(found, next(t for t in arguments[:n] if t is not None))


def _layout(name):
    if name not in LAYOUTS:
        raise wrong("layout", '"bhtd" or "bthd"', repr(name))
    return LAYOUTS.index(name)


def _check(op, tensors, scalars):
    """That the dispatcher of PyTorch takes them, whose errors are its own."""
    for name, value in zip(op.scalars, scalars):
        if value is not None:
            number(name, value)
    for name, value in zip(op.names, tensors):
        if value is None:
            continue
        if not isinstance(value, torch.Tensor):
            raise wrong(name, "a tensor of PyTorch", type(value).__name__)
        if value.layout != torch.strided:
            raise wrong(f"{name}.layout", "torch.strided", str(value.layout))


def _needs_gradient(given):
    return torch.is_grad_enabled() and any(t.requires_grad for t in given.values() if isinstance(t, torch.Tensor))


def _refuse_gradient(name, tensors, outputs):
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (*tensors, *outputs.values())):
        raise wrong(next(iter(outputs), "workspace"), "no tensor that needs a gradient beside it", name,
                    "call it under torch.no_grad(), or without outputs of yours")


class _Forms(NamedTuple):
    """The forward as an operator: with outputs of its own, and of the caller's."""

    op: Op
    out: Op

    @staticmethod
    def of(op):
        return _Forms(op, Op(op.of, op.full_name, op.pools, takes_outputs=True))


def _into(forms, tensors, scalars, options, outputs, workspace):
    """A call with outputs of the caller's; those that are wanted beside them are made here."""
    outputs = {**forms.op.empty(tensors, options, outputs), **outputs}
    forms.out(tensors, scalars, options, **outputs, workspace=workspace)
    return {name: outputs[name] for name in forms.op.made if name in outputs}


def _read(op, name, given):
    """Tensors and scalars in their order, and outputs by name, of arguments by name."""
    tensors = [given.pop(name, None) for name in op.names]
    scalars = [given.pop(name, None) for name in op.scalars]
    outputs = {name: given.pop(name) for name in op.made if name in given} if given else given
    for unknown in given:
        raise wrong(unknown, f"a tensor or scalar of {name}: {', '.join(op.names + op.scalars)}", repr(unknown))
    _check(op, tensors, scalars)
    return autocast(op, tensors), scalars, outputs


def _function(public, forward, pooled):
    """The operator with arguments by name; with `index` the one whose states are slots of pools."""

    def function(*, final_state=False, layout="bhtd", state_v_first=False, chunk=0, step=False, workspace=None,
                 keep_states=None, **given):
        is_pooled = "index" in given
        forms = pooled if is_pooled else forward
        if forms is None or (is_pooled and _needs_gradient(given)):
            raise wrong("index", "no tensor that needs a gradient beside it, and a variant with states",
                        public.name, "call it under torch.no_grad(); backward programs take pools by tegula.backward")
        op = forms.op
        tensors, scalars, outputs = _read(op, public.name, given)
        if op.is_odd(tensors) and not (is_pooled or outputs):
            given = {**dict(zip(op.names, tensors)), **dict(zip(op.scalars, scalars))}
            given, cut = filled(op.of, given, layout, state_v_first)
            return Results(cut(function(final_state=final_state, layout=layout, state_v_first=state_v_first, chunk=chunk,
                                        step=step, workspace=workspace, keep_states=keep_states, **given)))
        want = op.everything if final_state else op.usual
        options = Options(_layout(layout), int(state_v_first), chunk, int(step), 0, want)
        if outputs or workspace is not None:
            outputs = {name: t for name, t in outputs.items() if t is not None}
            _refuse_gradient(public.name, tensors, outputs)
            options = options._replace(want=want | op.bits(outputs))
            return Results(_into(forms, tensors, scalars, options, outputs, workspace))
        if is_pooled:
            return Results(op(tensors, scalars, options))
        keep = keep_states_by_default if keep_states is None else keep_states
        if torch.compiler.is_compiling():
            return Results(public(tensors, scalars, options, keep))
        return Results(_torch_grad.run(public.pair, tensors, scalars, options, keep))

    def workspace_bytes(*, layout="bhtd", state_v_first=False, chunk=0, step=False, **given):
        op = (pooled if "index" in given else forward).op
        tensors, _, _ = _read(op, public.name, given)
        given = op.with_initial({name: t for name, t in zip(op.names, tensors) if t is not None})
        return op.operator.workspace_bytes(given, How(chunk, layout, bool(state_v_first), bool(step)))

    op = forward.op
    function.__name__ = function.__qualname__ = public.name
    function.__doc__ = (f"{op.of.name}: tensors {', '.join(op.names)}; scalars {', '.join(op.scalars)}. Yields "
                        f"{', '.join(op.made)}. Outputs and a workspace of the caller's, by name, are filled.")
    workspace_bytes.__doc__ = "The workspace that such a call takes: a tensor of so many uint8, at a multiple of 256."
    function.workspace_bytes = workspace_bytes
    return function


programs = {}  # the operators of each variant: Pair


def _register():
    for name in all_variants():
        of, short = signature(name), name.replace("-", "_")
        forward = _Forms.of(Op(of, f"{short}_forward"))
        back = Op(signature(f"{name}-backward"), f"{short}_backward") if of.has_backward else None
        keep = Op(of, f"{short}_keep", keeps=True) if back and of.kept else None
        programs[name] = pair = Pair(forward.op, back, keep)
        pools = [t.name for t in of.outputs if t.is_state]
        pooled = _Forms.of(Op(of, f"{short}_pooled", pools)) if pools else None
        globals()[short] = _function(_Public(pair), forward, pooled)
        yield short


__all__ = list(_register())
