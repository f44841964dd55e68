"""What a call costs beside its kernels: calls of no sequences, which launch nothing, on arrays in the emulator's memory,
and on tensors of PyTorch that pass for such; and on a GPU small calls of PyTorch, eager, compiled and in a graph.

    PYTHONPATH=python TEGULA_LIBRARY=build/lib python3 bench/python_call.py

On the GPU a call is submitted and not waited for, which is what it costs the program; a graph's replay is. One line of JSON each.
"""

import json
import time

import numpy as np
import tegula

try:
    import torch
except ModuleNotFoundError:
    torch = None


def microseconds(function, n=2000, runs=7, wait=lambda: None):
    """The best mean of a few runs."""
    best = float("inf")
    for _ in range(runs):
        wait()
        begin = time.perf_counter()
        for _ in range(n):
            function()
        best = min(best, (time.perf_counter() - begin) / n)
    return 1e6 * best


def say(what, us, **more):
    print(json.dumps({"call": what, "us": round(us, 1), **more}), flush=True)


SHAPES = {"q": (0, 4, 64, 64), "k": (0, 4, 64, 64), "v": (0, 4, 64, 64), "a": (0, 4, 64)}


def of_no_sequences():
    shapes = {**SHAPES, "h": SHAPES["v"]}
    arrays = {name: tegula.to_device(np.empty(shape, np.float32), "emu") for name, shape in shapes.items()}
    operator = tegula.Operator("simple-gla", device="emu")
    say("tegula.Operator, 5 arrays of no sequences", microseconds(lambda: operator(**arrays)))


def of_tensors():
    """The whole way of a call on a GPU, but for its launch."""
    from tegula import _stable, torch as operators
    if _stable.library is None:
        return
    _stable.library.tg_torch_place_cpu(1)
    x = {name: torch.empty(shape) for name, shape in SHAPES.items()}
    y = {name: t.clone().requires_grad_() for name, t in x.items()}
    dh, op = torch.empty(SHAPES["v"]), operators.programs["simple-gla"].forward
    order = [x.get(name) for name in op.names]

    def forward(x):
        return operators.simple_gla(**x).h

    def training(function):
        return lambda: torch.autograd.grad(function(y), list(y.values()), dh)

    class Empty(torch.autograd.Function):
        """What PyTorch itself takes for gradients."""

        @staticmethod
        def forward(ctx, *x):
            ctx.save_for_backward(*x)
            return x[2].new_empty(SHAPES["v"])

        @staticmethod
        def backward(ctx, dh):
            return dh, dh, dh, ctx.saved_tensors[3]

    compiled = torch.compile(forward, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        say("torch.ops.tegula.simple_gla_forward", microseconds(lambda: op.call(*order, None, 0, 0, 0, 0, 0, 1)))
        for how, function in (("eager", forward), ("compiled", compiled)):
            say("tegula.torch.simple_gla", microseconds(lambda: function(x)), how=how)
    for how, function in (("eager", forward), ("compiled", compiled)):
        say("tegula.torch.simple_gla, then backward", microseconds(training(function)), how=how)
    say("an empty torch.autograd.Function, then backward", microseconds(training(lambda y: Empty.apply(*y.values()))))
    _stable.library.tg_torch_place_cpu(0)


def inputs(T):
    x = {n: torch.randn(1, T, 4, 64, device="cuda", dtype=torch.bfloat16) for n in "qkv"}
    gates = {"g": -torch.rand(1, T, 4, device="cuda"), "beta": torch.rand(1, T, 4, device="cuda")}
    return [t.requires_grad_() for t in (*x.values(), *gates.values())]


def captured(function):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def on_gpu():
    from tegula import fla, torch as operators
    x, one = inputs(256), [t.detach() for t in inputs(1)]
    pool, index = torch.zeros(8, 4, 64, 64, device="cuda"), torch.tensor([3], device="cuda")
    weight = torch.randn(1, 256, 4, 64, device="cuda", dtype=torch.bfloat16)

    def step(q, k, v, g, beta):
        return operators.gated_delta(q=q, k=k, v=v, a=g, beta=beta, S=pool, index=index, step=True, layout="bthd").h

    def forward(*x):
        return fla.chunk_gated_delta_rule(*x)[0]

    def training(*x):
        return torch.autograd.grad(forward(*x), x, weight)

    for what, function, given, has_gradient in (("decode step in a pool", step, one, False),
                                                ("forward, 256 tokens", forward, x, False),
                                                ("forward and backward, 256 tokens", training, x, True)):
        compiled = torch.compile(forward if has_gradient else function, fullgraph=True)
        with torch.set_grad_enabled(has_gradient):
            for how, call in (("eager", function), ("compiled", compiled)):
                if has_gradient and how == "compiled":
                    def call(*x):
                        return torch.autograd.grad(compiled(*x), x, weight)
                for _ in range(3):
                    call(*given)
                say(what, microseconds(lambda: call(*given), 100, wait=torch.cuda.synchronize), how=how)
            graph = captured(lambda: function(*given))

            def replay():
                graph.replay()
                torch.cuda.synchronize()

            say(what, microseconds(replay, 100), how="a graph's replay, waited for")
            say(what, microseconds(graph.replay, 100, wait=torch.cuda.synchronize), how="a graph's replay, submitted")


of_no_sequences()
if torch is not None:
    of_tensors()
if torch is not None and torch.cuda.is_available():
    on_gpu()
