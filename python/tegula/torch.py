"""Every variant as an operator of PyTorch: `tegula.torch.simple_gla(q=q, k=k, v=v, a=a)`, with gradients.

Each is torch.ops.tegula.NAME, and NAME_backward what autograd calls; both are opaque to torch.compile, which learns the
shapes of their outputs from the declaration. Tensors on a GPU run on its current stream, those on the CPU on the
emulator. An operator has all outputs of its variant: those that nobody wants are empty. NAME_pooled is the forward on
slots of pools, which it changes in place.
"""

import contextlib

import torch

from ._c import all_variants, number, wrong
from ._operator import Operator, Results
from ._signature import Form, signature

try:  # not public: without them every call goes through the dispatcher
    from torch._C import _len_torch_dispatch_stack as _modes
    from torch._C._functorch import peek_interpreter_stack as _transforms
except ImportError:
    _modes = _transforms = None

_library = torch.library.Library("tegula", "FRAGMENT")
_EXTENTS = {torch.bfloat16: 8, torch.float16: 8, torch.float32: 4}  # elements in 16 bytes


class _Op:
    """One program of a variant, forward or backward, as an operator. `pools`: states that it changes in place, each of
    them initial and final state in one."""

    def __init__(self, of, pools=()):
        self.of, self.pools = of, pools
        self.name = of.name.replace("-", "_") + ("_pooled" if pools else "")
        self.operator = Operator(of.name)
        self.outputs = [t for t in of.outputs if t.name not in pools]
        self.inputs = [t for t in of.inputs if t.name not in map(_initial, pools)]
        self.scalars = list(of.scalars)
        self.has_products = {"dqk", "dhv"} <= {t.axes[-1] for t in of.inputs if t.is_io}
        tensors = [(t.name, "Tensor?" if t.optional else "Tensor") for t in self.inputs] + [("cu", "Tensor?")]
        if pools:
            tensors += [(name, f"Tensor(a{i}!)") for i, name in enumerate(pools)]
            tensors += [("index", "Tensor"), ("index_out", "Tensor?")]
        self.names = [name for name, _ in tensors]
        arguments = [*(f"{kind} {name}" for name, kind in tensors), *(f"float? {name}" for name in self.scalars),
                     "str layout", "bool v_first", "int chunk", "bool step", "str[] want"]
        results = ", ".join("Tensor" for _ in self.outputs)
        results = results if len(self.outputs) == 1 else f"({results})"
        _library.define(f"{self.name}({', '.join(arguments)}) -> {results}")
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
        tensors = {name: t if name in self.pools or not self.of.known[name].has_rows else _ready(t)
                   for name, t in tensors.items() if t is not None}
        tensors.update((_initial(name), tensors[name]) for name in self.pools)
        with _on(tensors):
            found = self.operator.run(want=want, layout=layout, state_v_first=v_first, chunk=chunk, step=step,
                                      **tensors, **scalars)
            return self.results([found.get(t.name) for t in self.outputs], next(iter(tensors.values())))

    def fake(self, *arguments):
        tensors, _, layout, v_first, _, _, want = self.read(arguments)
        tensors = {name: t for name, t in tensors.items() if t is not None}
        like = next(tensors[t.name] for t in self.inputs if t.is_io)
        state = next((tensors[t.name].dtype for t in self.inputs if t.is_matrix and t.name in tensors), torch.float32)
        form = Form(layout, v_first, "cu" in tensors, bool(self.pools))
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


def _initial(state):
    return f"{state}0"


def _ready(t):
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


def autocast(op, arguments):
    """In a region of torch.autocast queries, keys and values take its type, as those of PyTorch's attention do."""
    device = next((t.device.type for t in arguments if isinstance(t, torch.Tensor)), None)
    if not op.has_products or device is None or not torch.is_autocast_enabled(device):
        return arguments
    dtype = torch.get_autocast_dtype(device)
    return [t.to(dtype) if isinstance(t, torch.Tensor) and op.of.known[name].is_io else t
            for name, t in zip(op.names + op.scalars, arguments)]


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


def _is_plain(arguments):
    """Nothing but the kernels is asked for: no gradient, no graph, no mode or transform of PyTorch's. Then its dispatcher,
    which takes longer than the rest of a call, is left out."""
    if torch.compiler.is_compiling() or _modes is None or _modes() or _transforms() is not None:
        return False
    tensors = [t for t in arguments if isinstance(t, torch.Tensor)]
    needs_gradient = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    return not needs_gradient and all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors)


def _check(op, arguments):
    """That the dispatcher of PyTorch takes them, whose errors are its own."""
    for name, value in zip(op.names + op.scalars, arguments):
        if name in op.scalars:
            if value is not None:
                number(name, value)
        elif value is not None and not isinstance(value, torch.Tensor):
            raise wrong(name, "a tensor of PyTorch", type(value).__name__)
        elif value is not None and value.layout != torch.strided:
            raise wrong(f"{name}.layout", "torch.strided", str(value.layout))


def _function(op, pooled):
    """The operator with arguments by name; with `index` the one whose states are slots of pools."""

    def function(*, final_state=False, layout="bhtd", state_v_first=False, chunk=0, step=False, **given):
        of = pooled if "index" in given else op
        if of is None or (of is pooled and torch.is_grad_enabled() and
                          any(t.requires_grad for t in given.values() if isinstance(t, torch.Tensor))):
            raise wrong("index", "no tensor that needs a gradient beside it, and a variant with states",
                        op.name, "call it under torch.no_grad(); backward programs take pools by tegula.backward")
        arguments = [given.pop(name, None) for name in of.names] + [given.pop(name, None) for name in of.scalars]
        for name in given:
            raise wrong(name, f"a tensor or scalar of {of.name}: {', '.join(of.names + of.scalars)}", repr(name))
        _check(of, arguments)
        arguments = autocast(of, arguments)
        want = [t.name for t in of.outputs if t.optional and (final_state or not t.is_state)]
        run = of.run if _is_plain(arguments) else of.call
        found = run(*arguments, layout, state_v_first, chunk, step, want)
        found = (found,) if len(of.outputs) == 1 else found
        return Results({t.name: x for t, x in zip(of.outputs, found) if not t.optional or t.name in want})

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = (f"{op.of.name}: tensors {', '.join(op.names)}; scalars {', '.join(op.scalars)}. Yields "
                        f"{', '.join(t.name for t in op.outputs)}.")
    return function


programs = {}  # forward and backward of each variant


def _register():
    for name in all_variants():
        of = signature(name)
        forward, pools = _Op(of), [t.name for t in of.outputs if t.is_state]
        programs[name] = forward, _Op(signature(f"{name}-backward")) if of.has_backward else None
        if of.has_backward:
            _register_gradients(*programs[name])
        globals()[forward.name] = _function(forward, _Op(of, pools) if pools else None)
        yield forward.name


__all__ = list(_register())
