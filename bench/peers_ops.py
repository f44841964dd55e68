"""The peers of bench/peers.py: how each is loaded, fed and called, and what is right in fp64.

A peer takes a dictionary of inputs, named as in our variants (Mamba: x, B, C, dt as in its own interface)
and in its own layout. Initial states may be among them: S0, or C0, n0, m0."""
import functools
import importlib
import importlib.util
import re
import sys
import types

import torch
from torch.nn.functional import logsigmoid, normalize, softplus


def shape(B, NH, T, dqk, dhv, **more):
    return {"B": B, "NH": NH, "T": T, "dqk": dqk, "dhv": dhv, **more}


def lift_fla_refusal():
    """On Hopper with Triton 3.4 to 3.7.0 flash-linear-attention refuses gradients with a gate, because what Triton makes
    of them can be wrong. Their time is of interest all the same. Was there a refusal?"""
    module = importlib.import_module("fla.ops.common.chunk_o")
    refuses = module.IS_NVIDIA_HOPPER and module.TRITON_ABOVE_3_4_0 and not module.TRITON_ABOVE_3_7_1
    if refuses:
        module.IS_NVIDIA_HOPPER = False
    return refuses


@functools.cache
def find_package(name, bare=()):
    """Where the package lies, its version and its commit where a file COMMIT in it tells. It and its
    subpackages named in bare become importable without their __init__, which import what is not needed."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"no package {name}")
    folder = spec.submodule_search_locations[0]

    def text(file):
        try:
            with open(f"{folder}/{file}") as lines:
                return lines.read()
        except FileNotFoundError:
            return ""

    version = re.search(r'^__version__ = "(.+)"', text("__init__.py"), re.M)
    found = {"version": version[1] if version else "unknown", "commit": text("COMMIT").strip() or "unknown"}
    for package in bare:
        module = types.ModuleType(package)
        module.__path__ = [folder + package.removeprefix(name).replace(".", "/")]
        module.__version__ = found["version"]
        sys.modules.setdefault(package, module)
    return found


def attention(q, k, v, log_decay, log_gate=None, scale=1.0, normalize=False):
    """The whole of it, heads before tokens: h_i = scale sum_{j<=i} exp(b_i - b_j + log_gate_j) (q_i k_j) v_j
    with b the running sum of log_decay; normalize: divided by max(|sum of the weights|, 1), which counts as
    a constant in gradients, as in the TFLA paper."""
    b = log_decay.cumsum(-1)
    weights = b[..., :, None] - b[..., None, :]
    if log_gate is not None:
        weights = weights + log_gate[..., None, :]
    later = torch.ones_like(weights, dtype=torch.bool).triu(1)
    weights = scale * (q @ k.mT) * weights.masked_fill(later, -torch.inf).exp()
    h = weights @ v
    if normalize:
        h = h / weights.sum(-1, keepdim=True).abs().clamp(min=1.0).detach()
    return h


def recurrence(q, k, v, log_decay, beta=None, scale=1.0):
    """Token after token, heads before tokens: S = diag(exp(log_decay)) S, then S += k (v - S^T k)^T beta or, without
    beta, S += k v^T; h = scale S^T q. log_decay has a number a token, or one a key dimension. Heads of v share those
    of q and k in groups."""
    q, k = (x.repeat_interleave(v.shape[1] // x.shape[1], 1) for x in (q, k))
    decay = (log_decay if log_decay.dim() == 4 else log_decay[..., None]).exp()
    state = v.new_zeros(*v.shape[:2], q.shape[-1], v.shape[-1])
    rows = []
    for t in range(v.shape[2]):
        state = decay[:, :, t, :, None] * state
        written = v[:, :, t]
        if beta is not None:
            written = beta[:, :, t, None] * (written - (k[:, :, t, None] @ state)[:, :, 0])
        state = state + k[:, :, t, :, None] * written[:, :, None]
        rows.append(scale * (q[:, :, t, None] @ state)[:, :, 0])
    return torch.stack(rows, 2)


def normal(*sizes, dtype=torch.bfloat16, mean=0.0):
    values = torch.randn(sizes, device="cuda", dtype=dtype)
    return values + mean if mean else values


class Peer:
    tokens = 1  # the axis
    autotuned = True
    padding = None  # what fills up the last chunk; None: takes any length
    lifted = None  # what is wrong with its gradients

    def lift_refusal(self):
        """Makes the backward run where the peer refuses to."""

    def chunks(self, shape):
        return (self.default_chunk,)


class Mlstm(Peer):
    package = "mlstm_kernels"
    tokens = 2
    autotuned = False
    # What, at tokens after the last, leaves the state as it is.
    padding = {"q": 0.0, "k": 0.0, "v": 0.0, "i": -100.0, "f": 100.0}
    default_chunk = 128
    shapes = (shape(8, 16, 8192, 128, 256), shape(1, 16, 65536, 128, 256), shape(32, 16, 2048, 128, 256),
              shape(128, 16, 512, 128, 256), shape(8, 8, 8192, 256, 512))

    def __init__(self, gate):
        self.gate = gate
        self.name = f"mlstm-{gate}"
        self.entry = "mlstm_siging_chunkwise__xl_chunk" if gate == "sig" else "mlstm_chunkwise__xl_chunk"
        self.kernel = f"mlstm_kernels {self.entry}"

    def chunks(self, shape):
        return (128, 256) if self.gate == "sig" and shape == self.shapes[0] else (128,)

    def load(self):
        self.found = find_package(self.package)
        module = "triton_xl_chunk_siging" if self.gate == "sig" else "triton_xl_chunk"
        module = importlib.import_module(f"mlstm_kernels.torch.chunkwise.{module}")
        self.function = getattr(module, self.entry)

    def inputs(self, s):
        rows = s["B"], s["NH"], s["T"]
        return {"q": normal(*rows, s["dqk"]), "k": normal(*rows, s["dqk"]), "v": normal(*rows, s["dhv"]),
                # fp32 as our kernels take them
                "i": normal(*rows, dtype=torch.float32, mean=-4.0),
                "f": normal(*rows, dtype=torch.float32, mean=4.0)}

    def call(self, x, chunk, states=False):
        """The peer's scale is fixed; eps is 0 as in the paper; inputs keep their types: the kernel dtype acts
        under autocast only, and none is on here. Without normalize the normaliser state is not used."""
        options = {"chunk_size": chunk, "eps": 0.0, "autocast_kernel_dtype": torch.bfloat16,
                   "return_last_states": states}
        if self.gate == "sig":
            options["normalize"] = False
            if "S0" in x:
                options |= {"c_initial": x["S0"], "n_initial": torch.zeros_like(x["S0"][..., 0])}
        elif "C0" in x:
            options |= {"c_initial": x["C0"], "n_initial": x["n0"], "m_initial": x["m0"][..., None]}
        result = self.function(x["q"], x["k"], x["v"], x["i"], x["f"], **options)
        if not states:
            return result
        h, last = result
        return {"h": h, **dict(zip(("S",) if self.gate == "sig" else ("C", "n", "m"), last))}

    def exact(self, x):
        log_gate = logsigmoid(x["i"]) if self.gate == "sig" else x["i"]
        return attention(x["q"], x["k"], x["v"], logsigmoid(x["f"]), log_gate, x["q"].shape[-1] ** -0.5,
                         self.gate == "exp")


class Fla(Peer):
    """simple_gla, lightning_attn, retention (heads with a decay of their own) or linear_attn of
    flash-linear-attention; the output of linear_attn is not normalized."""
    package = "fla"
    default_chunk = 64

    def __init__(self, op, *shapes):
        self.op = op
        self.name = "fla-" + op.replace("_", "-")
        self.kernel = f"flash-linear-attention chunk_{op}"
        self.shapes = shapes or (shape(8, 32, 8192, 128, 128),)

    def load(self):
        self.found = find_package(self.package, ("fla", "fla.ops"))
        module = importlib.import_module(f"fla.ops.{self.op}.chunk")
        self.function = getattr(module, f"chunk_{self.op}")

    def lift_refusal(self):
        if self.op in ("simple_gla", "gated_delta_rule") and lift_fla_refusal():
            self.lifted = "FLA refuses this backward here: wrong gradients (its issue 640); check lifted"

    def inputs(self, s):
        rows = s["B"], s["T"], s["NH"]
        x = {"q": normal(*rows, s["dqk"]), "k": normal(*rows, s["dqk"]), "v": normal(*rows, s["dhv"])}
        if self.op == "simple_gla":
            x["a"] = logsigmoid(normal(*rows, dtype=torch.float32, mean=4.0))
        return x

    def call(self, x, chunk, states=False):
        options = {"simple_gla": {"g": x.get("a")}, "lightning_attn": {"layer_idx": 12, "num_layers": 24},
                   "linear_attn": {"normalize": False}, "retention": {}}[self.op]
        h, last = self.function(x["q"], x["k"], x["v"], initial_state=x.get("S0"), output_final_state=states,
                                **options)
        return {"h": h, "S": last} if states else h

    def exact(self, x):
        q, k, v = (x[name].transpose(1, 2) for name in "qkv")
        heads = torch.arange(q.shape[1], device=q.device, dtype=q.dtype)
        if self.op == "simple_gla":
            log_decay = x["a"].transpose(1, 2)
        else:
            log_decay = {"lightning_attn": -8.0 / len(heads) * (1 - 12 / 24) * heads,
                         "retention": torch.log(1 - 2.0 ** (-5 - heads)),
                         "linear_attn": 0.0 * heads}[self.op][:, None].expand(q.shape[:-1])
        return attention(q, k, v, log_decay, scale=q.shape[-1] ** -0.5).transpose(1, 2)


class FlaDelta(Fla):
    """gated_delta_rule, delta_rule, kda or gla of flash-linear-attention: the delta rule, and decays of a key dimension.
    q and k have length 1; groups: the heads of q and k."""

    def inputs(self, s):
        rows, keys = (s["B"], s["T"]), s.get("groups", s["NH"])
        x = {name: normalize(normal(*rows, keys, s["dqk"], dtype=torch.float32), dim=-1).bfloat16() for name in "qk"}
        x["v"] = normal(*rows, s["NH"], s["dhv"])
        if self.op != "delta_rule":
            channels = (s["dqk"],) if self.op in ("kda", "gla") else ()
            x["a"] = logsigmoid(normal(*rows, s["NH"], *channels, dtype=torch.float32, mean=4.0))
        if self.op != "gla":
            x["beta"] = normal(*rows, s["NH"]).sigmoid()
        return x

    def call(self, x, chunk):
        more = {name: x[ours] for name, ours in (("g", "a"), ("beta", "beta")) if ours in x}
        return self.function(x["q"], x["k"], x["v"], scale=x["q"].shape[-1] ** -0.5, **more)[0]

    def exact(self, x):
        y = {name: tensor.transpose(1, 2) for name, tensor in x.items()}
        log_decay = y["a"] if "a" in y else torch.zeros_like(y["beta"])
        return recurrence(y["q"], y["k"], y["v"], log_decay, y.get("beta"), x["q"].shape[-1] ** -0.5).transpose(1, 2)


class Mamba(Peer):
    """Mamba-2's SSD: dqk is the size of its state, dhv that of its head; dt a pre-activation, as in its layer."""
    package = "mamba_ssm"
    default_chunk = 256
    name = "mamba-ssd"
    kernel = "mamba_ssm mamba_chunk_scan_combined"
    shapes = (shape(8, 64, 8192, 128, 64, groups=1), shape(8, 16, 8192, 128, 256, groups=16))

    def load(self):
        self.found = find_package(self.package, ("mamba_ssm",))
        module = importlib.import_module("mamba_ssm.ops.triton.ssd_combined")
        self.function = module.mamba_chunk_scan_combined

    def inputs(self, s):
        rows, heads = (s["B"], s["T"]), s["NH"]
        per_head = {"device": "cuda", "dtype": torch.float32}
        return {"x": normal(*rows, heads, s["dhv"]), "B": normal(*rows, s["groups"], s["dqk"]),
                "C": normal(*rows, s["groups"], s["dqk"]), "dt": normal(*rows, heads),
                "A": -torch.linspace(1.0, 16.0, heads, **per_head), "D": torch.ones(heads, **per_head),
                "dt_bias": torch.full((heads,), -4.6, **per_head)}

    def call(self, x, chunk):
        return self.function(x["x"], x["dt"], x["A"], x["B"], x["C"], chunk, D=x["D"],
                             dt_bias=x["dt_bias"], dt_softplus=True)

    def exact(self, x):
        value, dt = x["x"].transpose(1, 2), softplus(x["dt"] + x["dt_bias"]).transpose(1, 2)
        q, k = (x[name].transpose(1, 2).repeat_interleave(value.shape[1] // x[name].shape[2], 1) for name in "CB")
        h = attention(q, k, value, dt * x["A"][:, None], dt.log()) + x["D"][:, None, None] * value
        return h.transpose(1, 2)


PEERS = {peer.name: peer for peer in (
    Mlstm("sig"), Mlstm("exp"), Fla("simple_gla", shape(8, 16, 8192, 128, 256)), Fla("lightning_attn"), Fla("linear_attn"),
    Fla("retention"), Mamba(),
    FlaDelta("gated_delta_rule", shape(8, 32, 8192, 128, 128),
             *(shape(B, 32, T, 128, 128, groups=16) for B, T in ((1, 8192), (1, 32768), (8, 4096)))),
    FlaDelta("delta_rule"), FlaDelta("kda"),
    FlaDelta("gla", shape(8, 16, 8192, 128, 256)))}
