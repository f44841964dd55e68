"""Errors of bench/peers.py's peers on files with fp64 results, as those in tests/data."""
import json
import math
import pathlib
import struct
import sys

import torch

PEER_OF_VARIANT = {"mlstmsig": "mlstm-sig", "mlstmexp": "mlstm-exp", "sgla": "fla-simple-gla"}
TYPES = {"BF16": torch.bfloat16, "F32": torch.float32}
STATES = ("S0", "C0", "n0", "m0")


def read_header(path):
    with open(path, "rb") as file:
        return json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))


def read_tensors(path):
    """A safetensors file, on the GPU."""
    header = read_header(path)
    data = bytearray(pathlib.Path(path).read_bytes())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            values = torch.frombuffer(data, dtype=TYPES[tensor["dtype"]], offset=start + begin,
                                      count=math.prod(tensor["shape"]))
            tensors[name] = values.reshape(tensor["shape"]).cuda()
    return tensors


def find_files(paths):
    """Those that one of the peers can do; a file that is named must be one of them."""
    for path in map(pathlib.Path, paths):
        files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
        for file in files:
            variant = read_header(file).get("__metadata__", {}).get("variant")
            if variant in PEER_OF_VARIANT:
                yield file, PEER_OF_VARIANT[variant]
            elif not path.is_dir():
                sys.exit(f"{file}: variant: expected one of {', '.join(PEER_OF_VARIANT)}, found {variant}")


def error_of(x, ref):
    """RMS(x - ref) / RMS(ref) and max |x - ref| / max |ref|, in fp64."""
    x, ref = x.double(), ref.double()
    off = x - ref
    return {"rms": (off.norm() / ref.norm()).item(),
            "max": (off.abs().max() / ref.abs().max()).item()}


def pad(peer, name, tensor, tokens):
    """Tokens after the last which change nothing, for a peer that takes whole chunks only."""
    extra = tokens - tensor.shape[2]
    if not extra:
        return tensor
    filler = tensor.new_full((*tensor.shape[:2], extra, *tensor.shape[3:]), peer.padding.get(name, 0.0))
    return torch.cat((tensor, filler), dim=2)


def compare(peer, path, chunk, backward):
    """One row a tensor. Gradients are those of <h, dout.h> + <S, dout.S>; of the normalized mLSTM the file's
    grad_paper, where it has any: the normaliser is a constant to the peer too."""
    header, tensors = read_header(path), read_tensors(path)
    tokens, dqk = tensors["in.q"].shape[2:]
    scale = json.loads(header["__metadata__"].get("scalars", "{}")).get("scale", dqk**-0.5)
    if not math.isclose(scale, dqk**-0.5, rel_tol=1e-6):
        sys.exit(f"{path}: scale: expected the peer's own, {dqk**-0.5}, found {scale}")
    whole = -(-tokens // chunk) * chunk if peer.padding else tokens

    def to_peer(name, tensor):
        tensor = pad(peer, name, tensor, whole)
        return tensor.transpose(1, 2).contiguous() if peer.tokens == 1 else tensor

    def from_peer(name, tensor, like):
        if name in STATES or name in "SCnm":
            return tensor.reshape(like.shape)
        return (tensor.transpose(1, 2) if peer.tokens == 1 else tensor)[:, :, :tokens]

    x = {}
    for name in (full.removeprefix("in.") for full in tensors if full.startswith("in.")):
        tensor = tensors["in." + name]
        x[name] = (tensor.clone() if name in STATES else to_peer(name, tensor)).requires_grad_(backward)
    if backward:
        peer.lift_refusal()
    outputs = peer.call(x, chunk, states=True)
    for name, output in outputs.items():
        if "out." + name in tensors:
            ref = tensors["out." + name]
            yield {"tensor": "out." + name, **error_of(from_peer(name, output, ref), ref)}
    if not backward or "dout.h" not in tensors:
        return
    sent = {name: to_peer(name, tensors["dout." + name]) if name == "h" else tensors["dout." + name]
            for name in outputs if "dout." + name in tensors and name in "hSC"}
    grads = torch.autograd.grad([outputs[name] for name in sent], list(x.values()),
                                [grad.to(outputs[name].dtype) for name, grad in sent.items()],
                                allow_unused=True)
    kind = "grad_paper." if any(name.startswith("grad_paper.") for name in tensors) else "grad."
    for name, grad in zip(x, grads):
        if kind + name in tensors and grad is not None:
            ref = tensors[kind + name]
            row = {"tensor": kind + name, **error_of(from_peer(name, grad, ref), ref)}
            if peer.lifted:
                row["known_wrong"] = peer.lifted
            elif name == "f" and len(sent) > 1:
                row["known_wrong"] = "mlstm_kernels leaves out what comes through the final state, <dC, C>"
            yield row
