"""ranks.py SIZE FOLDER [--on emu|shared|nccl] [--word WORD]: the cases of context parallelism on SIZE processes.

On the emulator, by gloo; all on GPU 0, by gloo, through the host; or on a GPU each, by NCCL. Each process runs every case of
its number of ranks that has WORD in its name, in order. Rank 0 compares what all have with one process that has all
tokens. FOLDER gets a file of each rank: a line "ok CASE", or what was wrong. test_context_parallel.py reads them.
"""

import argparse
import ctypes
import dataclasses
import datetime
import functools
import os
import signal
import sys
import traceback
import types

import torch
import torch.distributed as dist

import tegula
import tegula.torch as operators
from tegula import fla
from tegula.context_parallel import Context

# float32: the same sums in another order, some ten times its 6e-8. bfloat16: a state that differs in its last bits turns
# roundings of operands, which then differ by 2^-8; the levels of CONTRIBUTING.md.
FP32, BF16 = 3e-6, 4e-3
_PR_SET_PDEATHSIG = 1
ACROSS, ON = [0, 5, 5, 41, 48], [0, 2, 12, 24, 24, 36, 48]  # borders inside ranks, and on them too; empty sequences


def inputs(variant, B=2, T=48, H=2, groups=1, K=16, V=24, N=None, dtype=torch.float32):
    """Of all ranks; N sequences if packed."""
    torch.manual_seed(0)
    sizes, made = {"NH": H, "NH/group": H // groups, "T": T, "dqk": K, "dhv": V}, {}
    for t in tegula.signature(variant).inputs:
        sizes["B"] = N if N and t.is_state else B
        x = torch.randn([sizes[axis] for axis in t.axes]) / 2
        made[t.name] = _values(t.name, x).to(dtype if t.is_io else torch.float32)
    if variant == "nla":
        made.update(a=torch.full((H,), 2.0), b=torch.rand(H), n0=made["n0"] / 10, c0=made["c0"].abs() + 5)
    return made


_OPEN = {"f": 3, "i": -3, "m0": -2, "gx": 3, "w": -3, "dt_raw": -2, "g_raw": -4, "a_raw": -3}


def _values(name, x):
    """Gates that let much through, so that a rank's states are felt some ranks away."""
    x = x + _OPEN.get(name, 0)
    if name in ("a", "g", "gl", "gr", "log_lambda"):
        return -x.abs() / 3
    if name == "k":
        return torch.nn.functional.normalize(x, dim=-1)
    return x.sigmoid() if name == "beta" else x


def error(found, expected):
    found, expected = found.detach().double(), expected.detach().double()
    return ((found - expected).pow(2).mean() / expected.pow(2).mean().clamp(min=1e-60)).sqrt().item()


class Case:
    """One call by one process and by all, their outputs and gradients."""

    def __init__(self, variant, layout="contiguous", cu=None, **sizes):
        self.variant, self.of, self.cu = variant, tegula.signature(variant), cu
        self.x = inputs(variant, N=len(cu) - 1, B=1, **sizes) if cu else inputs(variant, **sizes)
        self.context = Context(cu_seqlens=cu, layout=layout)
        self.states = [t.name for t in self.of.outputs if t.is_state]
        self.weights = {}
        torch.manual_seed(1)
        for t in self.of.outputs:
            if t.name == "h" or (t.is_state and f"d{t.name}0" in operators.programs[variant][1].of.tensors):
                shape = self.x[next(i.name for i in self.of.inputs if i.is_io and i.axes[-1:] == ("dhv",))].shape
                self.weights[t.name] = torch.randn(shape if t.name == "h" else self.x[f"{t.name}0"].shape)

    def axis(self, name):
        return self.of.tensors[name].axes.index("T") if "T" in self.of.tensors[name].axes else None

    def factor(self, name):
        """Of gradients twice the level; of parameters eight times that, sums over all tokens which nearly cancel (mamba2's
        dA_log by one process is 1.4e-5 off)."""
        if name in self.weights or name in self.states:
            return 1
        return 16 if self.axis(name[1:]) is None and name[1:-1] not in self.states else 2

    def mine(self):
        """This rank's, to be differentiated."""
        return {name: (x if self.axis(name) is None else self.context.split(x, self.axis(name))).clone().requires_grad_()
                for name, x in self.x.items()}

    def gradients(self, found, x, weights):
        loss = sum((found[name] * weight).sum() for name, weight in weights.items())
        return dict(zip(x, torch.autograd.grad(loss, list(x.values()), allow_unused=True)))

    def found(self):
        """Outputs and gradients, put together from all ranks."""
        x = self.mine()
        out = self.context.call(self.variant, final_state=True, **x)
        weights = {**self.weights, "h": self.context.split(self.weights["h"], 2)}
        by = self.gradients(out, x, weights)
        made = {name: self.context.join(t, 2) if name == "h" else summed(t) for name, t in out.items()}
        for name, gradient in by.items():
            gradient = torch.zeros_like(x[name]) if gradient is None else gradient
            axis = self.axis(name)
            made[f"d{name}"] = summed(gradient) if axis is None else self.context.join(gradient, axis)
        return made

    def expected(self):
        x = {name: t.clone().requires_grad_() for name, t in self.x.items()}
        given = x if self.cu is None else {**x, "cu": torch.tensor(self.cu)}
        out = getattr(operators, self.variant.replace("-", "_"))(**given, final_state=True)
        by = self.gradients(out, x, self.weights)
        return {**{name: out[name] for name in ("h", *self.states)}, **{f"d{n}": g for n, g in by.items() if g is not None}}


def summed(x):
    by_host = x.is_cuda and dist.get_backend() == "gloo"
    total = (x.detach().cpu() if by_host else x.detach()).clone(memory_format=torch.contiguous_format)  # NCCL adds no views
    dist.all_reduce(total)
    return total.to(x.device)


def agrees(*case, level=FP32, **options):
    case = Case(*case, **options)
    found = case.found()
    if dist.get_rank() == 0:
        for name, expected in case.expected().items():
            limit = level * case.factor(name)
            assert error(found[name], expected) < limit, f"{name}: {error(found[name], expected):.1e}"


# ---- one process, two processes ----


def same_bits_alone():
    """One rank makes the call that a program without ranks makes."""
    case = Case("simple-gla")
    found = case.found()
    for name, expected in case.expected().items():
        assert torch.equal(found[name], expected), name


def same_bits_as_two_calls(variant):
    """With two ranks nothing is put together: a state comes out of one call and goes into another, forth and back."""
    case = Case(variant)
    found, x = case.found(), {name: t.clone().requires_grad_() for name, t in case.x.items()}
    call = functools.partial(getattr(operators, variant.replace("-", "_")), final_state=True)
    halves = [{n: t if case.axis(n) is None else t.narrow(case.axis(n), i * 24, 24) for n, t in x.items()} for i in (0, 1)]
    for name in case.states:
        halves[1].pop(f"{name}0")
    first = call(**halves[0])
    second = call(**halves[1], **{f"{name}0": first[name] for name in case.states})
    out = {**second, "h": torch.cat((first.h, second.h), 2)}
    by = case.gradients(out, x, case.weights)
    for name, expected in (*out.items(), *((f"d{n}", g) for n, g in by.items() if g is not None)):
        if name in found:
            assert torch.equal(found[name], expected), name


def without_states(variant):
    """No initial state, no final state; two calls give the same bits."""
    case = Case(variant, "zigzag")
    x = {n: t for n, t in case.mine().items() if n[:-1] not in case.states}
    once, again = (case.context.call(variant, **x) for _ in range(2))
    assert list(once) == ["h"] and torch.equal(once.h, again.h)
    by, others = (torch.autograd.grad(out.h.sum(), list(x.values())) for out in (once, again))
    assert all(torch.equal(one, other) for one, other in zip(by, others))
    whole = {n: t for n, t in case.x.items() if n in x}
    expected = getattr(operators, variant.replace("-", "_"))(**whole).h
    assert error(case.context.join(once.h, 2), expected) < FP32


def parts_of_different_length():
    """Of a batch each rank may have as many tokens as it likes."""
    case, cut = Case("gated-delta"), 7
    rank = dist.get_rank()
    part = slice(cut) if rank == 0 else slice(cut, None)
    x = {n: t if case.axis(n) is None else t[:, :, part] for n, t in case.x.items()}
    found = case.context.call("gated-delta", **x).h
    assert error(found, case.expected()["h"][:, :, part]) < FP32


def other_orders():
    """[B, T, NH, d], states [B, NH, dhv, dqk] and in 16 bits, heads that share queries and keys."""
    case = Case("kda", "zigzag", groups=2)
    x = {n: t if case.axis(n) is None else t.transpose(1, 2) for n, t in case.mine().items()}
    S0 = case.x["S0"].bfloat16().mT.contiguous().requires_grad_()
    out = case.context.call("kda", final_state=True, layout="bthd", state_v_first=True, **{**x, "S0": S0})
    case.x["S0"] = case.x["S0"].bfloat16().float()
    expected = case.expected()
    assert out.S.dtype == torch.bfloat16
    assert error(case.context.join(out.h, 1), expected["h"].transpose(1, 2)) < FP32
    weights = case.context.split(case.weights["h"].transpose(1, 2), 1)
    loss = (out.h * weights).sum() + (out.S.float() * case.weights["S"].mT).sum()
    found = torch.autograd.grad(loss, [x["q"], S0])
    assert error(case.context.join(found[0], 1), expected["dq"].transpose(1, 2)) < FP32
    assert error(summed(found[1].float()), expected["dS0"].mT) < BF16
    assert error(summed(out.S.float()), expected["S"].mT) < BF16


def by_the_peers_names():
    """cp_context, with widths that are filled up, gates and norms in the kernel and around it."""
    torch.manual_seed(2)
    T, H, K, V = 48, 2, 20, 12
    q, k, beta = torch.randn(1, T, H, K), torch.randn(1, T, H, K), torch.randn(1, T, H)
    v, g, gates = torch.randn(1, T, H, V), torch.randn(1, T, H, K), torch.randn(1, T, H)
    context, cu = Context(cu_seqlens=ACROSS), torch.tensor(ACROSS)
    S0 = torch.randn(len(ACROSS) - 1, H, V, K)
    options = {"use_qk_l2norm_in_kernel": True, "use_gate_in_kernel": True, "A_log": torch.zeros(H),
               "use_beta_sigmoid_in_kernel": True, "initial_state": S0, "output_final_state": True, "state_v_first": True}
    for function, gate in ((fla.chunk_kda, g), (fla.chunk_gated_delta_rule, gates)):
        for changes in ({}, {"use_gate_in_kernel": False}):
            gate = gate if changes == {} else -gate.abs()
            mine = [context.split(x, 1) for x in (q, k, v, gate, beta)]
            o, S = function(*mine, **{**options, **changes}, cp_context=context)
            expected, final = function(q, k, v, gate, beta, **{**options, **changes}, cu_seqlens=cu)
            assert error(context.join(o, 1), expected) < FP32 and error(summed(S), final) < FP32


@dataclasses.dataclass
class Theirs:
    """The fields of fla.ops.cp.FLACPContext."""

    group: object = None
    cu_seqlens: object = None
    cu_seqlens_cpu: object = None
    is_last_rank: object = None
    pre_num_ranks: object = None
    is_first_rank: object = None
    post_num_ranks: object = None
    conv1d_kernel_size: object = None
    pre_num_conv_tokens: object = None


def by_the_peers_context():
    """Which knows this rank's boundaries, and how many ranks come before and after."""
    cu, rank = [0, 3, 41, 48], dist.get_rank()
    local = [[0, 3, 12], [0, 12], [0, 12], [0, 5, 12]][rank]
    theirs = Theirs(cu_seqlens=torch.tensor(local), pre_num_ranks=rank, post_num_ranks=[3, 2, 1, 0][rank])
    context = Context(cu_seqlens=cu)
    x = {n: t.transpose(1, 2) for n, t in inputs("kda", B=1).items() if n != "S0"}
    names = ("q", "k", "v", "g", "beta")
    mine = [context.split(x[n], 1).clone().requires_grad_() for n in names]
    whole = [x[n].clone().requires_grad_() for n in names]
    o, _ = fla.chunk_kda(*mine, cp_context=theirs, cu_seqlens=theirs.cu_seqlens)
    expected, _ = fla.chunk_kda(*whole, cu_seqlens=torch.tensor(cu))
    weight = torch.randn_like(expected)
    found = torch.autograd.grad((o * context.split(weight, 1)).sum(), mine)
    wanted = torch.autograd.grad((expected * weight).sum(), whole)
    assert error(context.join(o, 1), expected) < FP32
    for name, one, other in zip(names, found, wanted):
        assert error(context.join(one, 1), other) < 2 * FP32, name
    refused("cp_context", lambda: fla.chunk_kda(*mine, cp_context=theirs, output_final_state=True))


def refused(field, call):
    try:
        call()
    except tegula.Error as caught:
        assert (caught.field or "").split(": ")[-1] == field, caught
        return
    raise AssertionError(f"{field}: nothing was refused")


def what_is_refused():
    """By every rank before anything is sent."""
    x = inputs("simple-gla")
    call = Context().call
    for field, function in (
        ("layout", lambda: Context(layout="ring")),
        ("cu_seqlens", lambda: Context(cu_seqlens=[0, 5, 4])),
        ("cu_seqlens", lambda: Context(cu_seqlens=[1, 4])),
        ("cu_seqlens", lambda: Context(cu_seqlens=[0, 5])),
        ("cu_seqlens", lambda: Context(cu_seqlens=[0, 6], layout="zigzag")),
        ("cu_seqlens", lambda: Context(cu_seqlens=[0.0, 4.0])),
        ("group", lambda: Context(group=dist.GroupMember.NON_GROUP_MEMBER)),
        ("variant", lambda: call("srms-norm", x=x["v"])),
        ("variant", lambda: call("nla-full", **inputs("nla-full"))),
        ("variant", lambda: call("no-such", **x)),
        ("count0", lambda: call("nla", **inputs("nla"), count0=1.0)),
        ("step", lambda: call("simple-gla", **x, step=True)),
        ("index", lambda: call("simple-gla", **x, index=torch.zeros(2, dtype=torch.int32))),
        ("cu", lambda: call("simple-gla", **x, cu=torch.tensor([0, 48]))),
        ("a", lambda: call("simple-gla", **{**x, "a": None})),
        ("colour", lambda: call("simple-gla", **x, colour=1)),
        ("q", lambda: Context(cu_seqlens=[0, 48]).call("simple-gla", **x)),
        ("S0", lambda: call("simple-gla", **{**x, "S0": x["S0"][:1]})),
        ("k", lambda: call("simple-gla", **{**x, "k": x["k"][:, :, :5]})),
        ("T", lambda: Context(layout="zigzag").call("simple-gla", **{n: t[:, :, :7] for n, t in x.items() if n != "S0"})),
        ("tokens", lambda: Context().split(x["q"][:, :, :7], 2)),
        ("cp_context", lambda: fla.chunk_kda(*[x["q"]] * 4, x["a"], cp_context=types.SimpleNamespace())),
        ("cu_seqlens", lambda: fla.chunk_kda(*[x["q"]] * 4, x["a"], cp_context=Context(), cu_seqlens=torch.tensor([0, 1]))),
    ):
        refused(field, function)


def nothing_is_sent():
    """Where no sequence goes on elsewhere."""
    case = Case("delta-net", cu=[0, 12, 20, 24, 36, 48])
    case.context._gather = None
    x = case.mine()
    out = case.context.call("delta-net", final_state=True, **x)
    torch.autograd.grad(out.h.sum(), list(x.values()))


FAMILY = ("mlstm-sig", "mlstm-exp", "retention", "simple-gla", "mamba2", "gla", "delta-net", "gated-delta", "kda")
OTHERS = ("conv4", "dfw", "nla", "mlstm-sig-norm", "rwkv6", "hgrn2", "kda-safe")


def _cases(size, on="emu"):
    if size == 1:
        yield "same bits", same_bits_alone
        yield "two parts of one rank", lambda: agrees("kda", "zigzag")
        yield "two parts of one rank, packed", lambda: agrees("mlstm-exp", "zigzag", [0, 3, 40, 48])
    if size == 2:
        for variant in ("mlstm-exp", "gla", "kda", "conv4"):
            yield f"same bits as two calls: {variant}", functools.partial(same_bits_as_two_calls, variant)
        for variant in ("retention", "mamba2", "delta-net"):
            yield f"zigzag batch: {variant}", functools.partial(agrees, variant, "zigzag")
        yield "no states", lambda: without_states("gated-delta")
        yield "different lengths", parts_of_different_length
        yield "other orders", other_orders
        yield "by the peer's names", by_the_peers_names
        yield "what is refused", what_is_refused
    if size == 4:
        for i, variant in enumerate(FAMILY):
            yield f"packed across: {variant}", functools.partial(agrees, variant, "contiguous", ACROSS)
            layout, cu = (("zigzag", ON), ("contiguous", None), ("zigzag", None), ("zigzag", ACROSS))[i % 4]
            yield f"{layout} {cu or 'batch'}: {variant}", functools.partial(agrees, variant, layout, cu)
        for variant in OTHERS:
            yield f"zigzag across: {variant}", functools.partial(agrees, variant, "zigzag", ACROSS)
        yield "ranks of two tokens: conv4", lambda: agrees("conv4", T=8)
        yield "ranks of two tokens: mlstm-exp", lambda: agrees("mlstm-exp", "zigzag", T=8)
        for variant in ("simple-gla", "gated-delta"):
            yield f"bfloat16: {variant}", functools.partial(agrees, variant, dtype=torch.bfloat16, level=BF16)
        yield "nothing is sent", nothing_is_sent
        yield "by the peer's context", by_the_peers_context
    if size == 8:
        for variant in ("simple-gla", "mlstm-exp", "gated-delta", "kda"):
            yield f"batch: {variant}", functools.partial(agrees, variant)
            yield f"zigzag across: {variant}", functools.partial(agrees, variant, "zigzag", ACROSS)
    if on != "emu" and size > 1:  # sizes that warpgroups are for
        for variant in ("simple-gla", "mlstm-exp", "gla", "gated-delta", "kda"):
            yield f"bfloat16, 128 / 128: {variant}", functools.partial(agrees, variant, B=1, T=4096, H=4, K=128, V=128,
                                                                       dtype=torch.bfloat16, level=BF16)


def names(size, on="emu"):
    return [name for name, _ in _cases(size, on)]


def _join(rank, size, folder, on):
    torch.set_num_threads(1)
    if on != "emu":
        device = rank if on == "nccl" else 0
        torch.cuda.set_device(device)
        torch.set_default_device(f"cuda:{device}")
    dist.init_process_group("nccl" if on == "nccl" else "gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=size, timeout=datetime.timedelta(seconds=300))


def _rank(rank, size, folder, on, word):
    _join(rank, size, folder, on)
    with open(f"{folder}/{rank}", "w", buffering=1) as out:
        for name, case in _cases(size, on):
            if word not in name:
                continue
            try:
                case()
                out.write(f"ok {name}\n")
            except AssertionError as wrong:
                out.write(f"not ok {name}: {wrong}\n")
            except Exception:  # the others may wait for what this rank did not do
                out.write(f"not ok {name}: {traceback.format_exc()}")
                os._exit(1)
            dist.barrier()
    dist.destroy_process_group()


def _child(rank, options):
    status = 1
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # not left behind by a parent that ran out of time
    try:
        _rank(rank, options.size, options.folder, options.on, options.word)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("size", type=int)
    parser.add_argument("folder")
    parser.add_argument("--on", choices=("emu", "shared", "nccl"), default="emu")
    parser.add_argument("--word", default="")
    options, children = parser.parse_args(), []
    for rank in range(options.size):
        children.append(os.fork())
        if children[-1] == 0:
            _child(rank, options)
    failed = False
    while children:
        child, status = os.wait()
        children.remove(child)
        if status and not failed:
            failed = True
            for other in children:
                os.kill(other, signal.SIGTERM)
    return failed


if __name__ == "__main__":
    sys.exit(main())
