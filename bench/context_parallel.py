"""Context parallelism beside one GPU, and beside flash-linear-attention's where the package fla is there.

    torchrun --nproc-per-node 8 bench/context_parallel.py                    a GPU each, by NCCL
    python3 bench/context_parallel.py --pretend 8                            one GPU: what a rank in the middle computes
    torchrun --nproc-per-node 2 bench/context_parallel.py --device cpu --tokens 64 --width 16 --heads 2 --runs 1

One line of JSON for each variant and number of tokens of one sequence: milliseconds of the forward and of both directions,
the median of the slowest rank, and of one GPU with all tokens. With --pretend nothing is sent: the all-gather is left out
of the time, and what comes in is what the rank itself has. On the CPU the emulator runs it: that is for trying the program.
"""

import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist

from peers_ops import lift_fla_refusal

import tegula.torch as operators
from tegula.context_parallel import Context


class Pretended(Context):
    """Rank size / 2 of so many, on its own."""

    def __init__(self, size):
        self.group, self.layout, self.rank, self.size, self.pieces = None, "contiguous", size // 2, size, None

    def _gather(self, x):
        return x.expand(self.size, *x.shape[1:]).contiguous()


def inputs(variant, T, options):
    """Of a rank with T tokens, [B, NH, T, ...]."""
    made, device = {}, options.device
    sizes = {"B": 1, "NH": options.heads, "NH/group": options.heads, "T": T, "dqk": options.width, "dhv": options.width}
    for t in operators.programs[variant][0].of.inputs:
        if t.is_state:
            continue
        x = torch.randn([sizes[axis] for axis in t.axes], device=device)
        if t.name in ("a", "g"):
            x = -x.abs() / 20
        x = x.sigmoid() if t.name == "beta" else torch.nn.functional.normalize(x, dim=-1) if t.name == "k" else x
        made[t.name] = (x.bfloat16() if t.is_io else x).requires_grad_()
    return made


def both(call, x):
    """The forward alone, and with the backward."""
    def forward():
        with torch.no_grad():
            call(x)

    def train():
        h = call(x)
        torch.autograd.grad(h, list(x.values()), torch.ones_like(h))

    return forward, train


def milliseconds(function, options):
    """The median; of all ranks the slowest."""
    times = []
    for run in range(options.runs + 2):
        if dist.is_initialized():
            dist.barrier()
        _wait(options)
        begin = time.perf_counter()
        function()
        _wait(options)
        if run >= 2 or options.runs < 2:
            times.append(1e3 * (time.perf_counter() - begin))
    found = torch.tensor([statistics.median(times)], device=options.device)
    if dist.is_initialized():
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return round(found.item(), 3)


def _wait(options):
    if options.device != "cpu":
        torch.cuda.synchronize()


def theirs(variant, context, T, options):
    """A call of flash-linear-attention's, on [B, T, NH, d]; None where it has none."""
    name = {"gated-delta": "gated_delta_rule", "kda": "kda"}.get(variant)
    try:
        from fla import ops
        from fla.ops.cp import build_cp_context
    except ImportError:
        return None
    if name is None or options.device == "cpu" or not dist.is_initialized():
        return None
    lift_fla_refusal()
    function, gate = getattr(ops, f"chunk_{name}"), "g" if variant == "kda" else "a"
    made = build_cp_context(torch.tensor([0, T], device=options.device), group=dist.group.WORLD)

    def call(x):
        turned = (x[n].transpose(1, 2) for n in ("q", "k", "v", gate, "beta"))
        return function(*turned, cp_context=made, cu_seqlens=made.cu_seqlens)[0]

    return call


def measure(variant, T, context, options):
    n = context.size
    rest = {"variant": variant, "tokens": T, "ranks": n, "heads": options.heads, "width": options.width}
    x = inputs(variant, T // n, options)
    forward, train = both(lambda x: context.call(variant, **x).h, x)
    rest.update(ms=milliseconds(forward, options), ms_both=milliseconds(train, options))
    call = theirs(variant, context, T, options)
    if call:
        forward, train = both(call, x)
        rest.update(fla_ms=milliseconds(forward, options), fla_ms_both=milliseconds(train, options))
    del x
    if T <= options.most:
        forward, train = both(lambda x: getattr(operators, variant.replace("-", "_"))(**x).h, inputs(variant, T, options))
        rest.update(one_ms=milliseconds(forward, options), one_ms_both=milliseconds(train, options))
        rest.update(speedup=round(rest["one_ms"] / rest["ms"], 2), speedup_both=round(rest["one_ms_both"] / rest["ms_both"], 2))
    if context.rank == 0 or isinstance(context, Pretended):
        print(json.dumps({**rest, "pretended": isinstance(context, Pretended)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", default="simple-gla,mlstm-exp,gla,gated-delta,kda")
    parser.add_argument("--tokens", default="65536,262144,1048576")
    parser.add_argument("--most", type=int, default=1 << 20, help="tokens that one GPU takes too")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--pretend", type=int)
    options = parser.parse_args()
    if options.pretend:
        context = Pretended(options.pretend)
    else:
        dist.init_process_group("gloo" if options.device == "cpu" else "nccl")
        if options.device != "cpu":
            torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
        context = Context()
    for variant in options.variants.split(","):
        for T in map(int, options.tokens.split(",")):
            measure(variant, T, context, options)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
