"""A small language model on bytes, whose layers mix tokens by an operator of the linear-attention family: Tegula's, or its
peer's, or the recurrence in PyTorch, with the same weights, data and order, so that their losses can be laid over each other.

    python3 examples/train/train.py --mixer gated-delta --by tegula --steps 500 --compile
    python3 examples/train/train.py --mixer gated-delta --by peer   --steps 500      (flash-linear-attention, mlstm_kernels)
    python3 examples/train/plot.py runs.json train.svg                               (what several runs have printed)

The text is the reference that comes with Python (pydoc_data), 466 KB. A line of JSON for each report: step, loss in bits a
byte, tokens a second since the last; the last one has the loss of the twentieth of the text that is not trained on.
Normalised linear attention has no peer that can be installed: its product of all positions by all in PyTorch stands for one.
"""

import argparse
import importlib
import json
import math
import time

import torch
from pydoc_data.topics import topics
from torch import nn
from torch.nn.functional import cross_entropy, logsigmoid, normalize, rms_norm, silu, softplus

HELD_OUT = 20  # one of so many


def recurrence(q, k, v, log_decay, beta=None):
    """Token after token: S = D S; S += k (v - S^T k)^T beta, or k v^T; o = S^T q / sqrt(d)."""
    kept = v.dtype
    q, k, v, log_decay = (x.float() for x in (q, k, v, log_decay))
    decay = log_decay.exp() if log_decay.dim() == 4 else log_decay.exp()[..., None]
    S, o = v.new_zeros(v.shape[0], v.shape[2], q.shape[-1], v.shape[-1]), []
    for t in range(v.shape[1]):
        S = decay[:, t, :, :, None] * S
        write = v[:, t] if beta is None else beta[:, t, :, None] * (v[:, t] - (k[:, t, :, None] @ S)[:, :, 0])
        S = S + k[:, t, :, :, None] * write[:, :, None]
        o.append((q[:, t, :, None] @ S)[:, :, 0] * q.shape[-1] ** -0.5)
    return torch.stack(o, 1).to(kept)


def mlstm_recurrence(q, k, v, i, f):
    """Of exponential gates: C = f' C + i' k v^T, n likewise, h = C^T q / max(|n^T q|, e^-m), with a running maximum m."""
    kept, scale = v.dtype, q.shape[-1] ** -0.5
    q, k, v, i, f = (x.float() for x in (q, k, v, i, f))
    C, n = v.new_zeros(*v.shape[::2], q.shape[-1], v.shape[-1]), v.new_zeros(*v.shape[::2], q.shape[-1])
    m, h = i[:, 0] * 0 - 1e30, []
    for t in range(v.shape[1]):
        before = logsigmoid(f[:, t]) + m
        m = torch.maximum(before, i[:, t])
        keep, write = (before - m).exp()[..., None], (i[:, t] - m).exp()[..., None]
        C = keep[..., None] * C + (write * k[:, t])[..., None] * v[:, t, :, None]
        n = keep * n + write * k[:, t]
        below = torch.maximum((n * q[:, t]).sum(-1).abs() * scale, (-m).exp()) + 1e-6
        h.append((q[:, t, :, None] @ C)[:, :, 0] * scale / below[..., None])
    return torch.stack(h, 1).to(kept)


def mlstm_sig_recurrence(q, k, v, i, f):
    """Of sigmoid gates: C = sig(f) C + sig(i) k v^T, n likewise, h = C^T q / max(|n^T q|, 1)."""
    C, n, h = v.new_zeros(*v.shape[::2], q.shape[-1], v.shape[-1]), v.new_zeros(*v.shape[::2], q.shape[-1]), []
    q, k = q * q.shape[-1] ** -0.5, k * i.sigmoid()[..., None]
    for t in range(v.shape[1]):
        keep = f[:, t].sigmoid()[..., None]
        C = keep[..., None] * C + k[:, t, :, :, None] * v[:, t, :, None]
        n = keep * n + k[:, t]
        below = (n * q[:, t]).sum(-1).abs().clamp(min=1) + 1e-6
        h.append((q[:, t, :, None] @ C)[:, :, 0] / below[..., None])
    return torch.stack(h, 1)


def nla_by_positions(q, k, v, a, b):
    """Row i: the mean of v up to i, weighted by a + b q_i.k_j, with q and k of length 1."""
    q, k = (normalize(x, dim=-1).transpose(1, 2) for x in (q, k))
    weights = (a[:, None, None] + b[:, None, None] * (q @ k.transpose(2, 3))).tril()
    return (weights.to(v.dtype) @ v.transpose(1, 2) / weights.sum(-1, keepdim=True)).transpose(1, 2)


class ByTorch:
    def __init__(self):
        self.mlstm, self.mlstm_sig, self.nla = mlstm_recurrence, mlstm_sig_recurrence, nla_by_positions

    def retention(self, q, k, v):
        heads = torch.arange(v.shape[2], device=v.device)
        return recurrence(q, k, v, torch.log1p(-(2.0 ** (-5.0 - heads))).expand(v.shape[:3]))

    def gla(self, q, k, v, g):
        return recurrence(q, k, v, g)

    def gated_delta(self, q, k, v, g, beta):
        return recurrence(normalize(q.float(), dim=-1), normalize(k.float(), dim=-1), v, g, beta)

    kda = gated_delta


class ByFunctions:
    """Those of flash-linear-attention and mlstm_kernels, or Tegula's with their names."""

    def __init__(self, fla, mlstm, nla):
        self.fla, self.chunkwise, self.nla = fla, mlstm, nla

    def retention(self, q, k, v):
        return self.fla("retention")(q, k, v)[0]

    def gla(self, q, k, v, g):
        return self.fla("gla")(q, k, v, g)[0]

    def gated_delta(self, q, k, v, g, beta):
        return self.fla("gated_delta_rule")(q, k, v, g, beta, use_qk_l2norm_in_kernel=True)[0]

    def kda(self, q, k, v, g, beta):
        return self.fla("kda")(q, k, v, g, beta, use_qk_l2norm_in_kernel=True)[0]

    def mlstm(self, *x, name="mlstm_chunkwise__xl_chunk"):
        return self.chunkwise(name)(*(t.transpose(1, 2) for t in x)).transpose(1, 2)

    def mlstm_sig(self, *x):
        return self.mlstm(*x, name="mlstm_siging_chunkwise__xl_chunk")


def by_tegula():
    import tegula.torch
    from tegula import fla, mlstm

    def nla(q, k, v, a, b):
        return tegula.torch.nla(q=q, k=k, v=v, a=a, b=b, layout="bthd").h

    return ByFunctions(lambda name: getattr(fla, f"chunk_{name}"), lambda name: getattr(mlstm, name), nla)


def by_peer():
    def chunk(name):
        return getattr(importlib.import_module(f"fla.ops.{name}"), f"chunk_{name}")

    def mlstm(name):
        return getattr(importlib.import_module("mlstm_kernels.torch.chunkwise"), name)

    return ByFunctions(chunk, mlstm, nla_by_positions)


BY = {"tegula": by_tegula, "peer": by_peer, "torch": ByTorch}
GATES = {"retention": 0, "gla": "channels", "gated-delta": 2, "kda": "channels and heads", "mlstm-exp": 2, "mlstm-sig": 2,
         "nla": 0}


class Mixer(nn.Module):
    def __init__(self, options, by):
        super().__init__()
        self.name, self.by, self.heads, self.d = options.mixer, by, options.heads, options.width // options.heads
        wanted = GATES[options.mixer]
        self.n_gates = wanted * self.heads if isinstance(wanted, int) else options.width + ("heads" in wanted) * self.heads
        self.into = nn.Linear(options.width, 4 * options.width + self.n_gates, bias=False)
        self.out = nn.Linear(options.width, options.width, bias=False)
        if self.name == "nla":
            self.weights = nn.ParameterList(torch.ones(self.heads) for _ in "ab")

    def forward(self, x):
        *qkvz, gates = self.into(x).split([x.shape[-1]] * 4 + [self.n_gates], -1)
        q, k, v, z = (t.unflatten(-1, (self.heads, self.d)) for t in qkvz)
        o = self.mix(q, k, v, gates.float())
        return self.out((rms_norm(o, o.shape[-1:]) * silu(z)).flatten(-2))

    def mix(self, q, k, v, gates):
        if self.name == "retention":
            return self.by.retention(q, k, v)
        first, rest = gates[..., : self.heads], gates[..., self.heads :]
        if self.name == "nla":
            return self.by.nla(q, k, v, *self.weights)
        if self.name.startswith("mlstm"):
            return (self.by.mlstm if self.name == "mlstm-exp" else self.by.mlstm_sig)(q, k, v, first, rest + 3)
        if self.name == "gla":
            return self.by.gla(q, k, v, logsigmoid(gates + 3).unflatten(-1, (self.heads, self.d)))
        if self.name == "kda":
            return self.by.kda(q, k, v, -softplus(rest - 3).unflatten(-1, (self.heads, self.d)), first.sigmoid())
        return self.by.gated_delta(q, k, v, -softplus(rest - 3), first.sigmoid())


class Model(nn.Module):
    def __init__(self, options, by):
        super().__init__()
        width = options.width
        self.embed = nn.Embedding(256, width)
        self.mixers = nn.ModuleList(Mixer(options, by) for _ in range(options.layers))
        self.up = nn.ModuleList(nn.Linear(width, 4 * width, bias=False) for _ in range(options.layers))
        self.down = nn.ModuleList(nn.Linear(4 * width, width, bias=False) for _ in range(options.layers))
        for parameter in (p for p in self.parameters() if p.dim() > 1):
            nn.init.normal_(parameter, std=0.02 if parameter.shape[0] == 256 else parameter.shape[-1] ** -0.5)

    def forward(self, tokens):
        x = self.embed(tokens)
        for mixer, up, down in zip(self.mixers, self.up, self.down):
            x = x + mixer(rms_norm(x, x.shape[-1:]))
            x = x + down(silu(up(rms_norm(x, x.shape[-1:]))))
        return rms_norm(x, x.shape[-1:]) @ self.embed.weight.T


def load(device):
    """Bytes to train on, and those that are held out."""
    text = "\n".join(f"{name}\n{text}" for name, text in sorted(topics.items())).encode()
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long().to(device)
    return data.tensor_split([len(data) - len(data) // HELD_OUT])


def loss_of(model, data, starts, options):
    """Bits a byte of the pieces that begin at `starts`."""
    pieces = data[starts[:, None] + torch.arange(options.tokens + 1, device=data.device)]
    with torch.autocast(data.device.type, torch.bfloat16, enabled=data.is_cuda and not options.float32):
        logits = model(pieces[:, :-1])
    return cross_entropy(logits.float().flatten(0, 1), pieces[:, 1:].flatten()) / math.log(2)


def train(options):
    """Yields a dictionary for each report."""
    torch.manual_seed(options.seed)
    model = Model(options, BY[options.by]()).to(options.device)
    run = torch.compile(model) if options.compile else model
    learn, held_out = load(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), options.rate, betas=(0.9, 0.95), weight_decay=0.1)
    order = torch.Generator("cpu").manual_seed(options.seed)
    begin, at = time.monotonic(), 0
    for step in range(1, options.steps + 1):
        starts = torch.randint(len(learn) - options.tokens - 1, (options.batch,), generator=order, device="cpu")
        starts = starts.to(options.device)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1, step / 20) * (0.55 + 0.45 * math.cos(math.pi * step / options.steps))
        loss = loss_of(run, learn, starts, options)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % options.report == 0 or step == options.steps:
            value, now = loss.item(), time.monotonic()  # the first waits for the GPU
            yield {"step": step, "loss": value, "tokens_s": (step - at) * options.batch * options.tokens / (now - begin)}
            begin, at = now, step
    with torch.no_grad():
        starts = torch.arange(0, len(held_out) - options.tokens - 1, options.tokens, device=options.device)
        losses = [loss_of(run, held_out, part, options) * len(part) for part in starts.split(options.batch)]
        yield {"held_out": (sum(losses) / len(starts)).item()}


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mixer", choices=list(GATES), default="gated-delta")
    parser.add_argument("--by", choices=list(BY), default="tegula")
    for name, value in (("steps", 500), ("batch", 16), ("tokens", 1024), ("width", 512), ("heads", 4), ("layers", 6),
                        ("report", 20), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--float32", action="store_true", help="on a GPU: not in bfloat16")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = parse()
    for row in train(options):
        print(json.dumps({"mixer": options.mixer, "by": options.by, **row}), flush=True)
