"""Cuts the first TOKENS tokens of an activation file for the tests: make_real_cut.py INPUT OUTPUT

The forward output of a prefix is exactly the prefix of the output. Gradients are left out: a
token's gradient depends on the tokens after it."""
import json
import struct
import sys

TOKENS = 300
KEPT = ("in.q", "in.k", "in.v", "in.i", "in.f", "out.h")
ELEMENT_BYTES = {"BF16": 2, "F32": 4}


def cut(tensor, data):
    """[B, NH, T, ...] -> [B, NH, TOKENS, ...]: the leading part of each head."""
    batch, heads, tokens, *inner = tensor["shape"]
    begin, end = tensor["data_offsets"]
    head_bytes = (end - begin) // (batch * heads)
    kept_bytes = head_bytes // tokens * TOKENS
    starts = range(begin, end, head_bytes)
    return [batch, heads, TOKENS, *inner], b"".join(data[s : s + kept_bytes] for s in starts)


def main(source_path, cut_path):
    with open(source_path, "rb") as source:
        header = json.loads(source.read(struct.unpack("<Q", source.read(8))[0]))
        data = source.read()
    batch, heads, _, dqk = header["in.q"]["shape"]
    meta = {"variant": "mlstmsig", "B": batch, "NH": heads, "T": TOKENS, "dqk": dqk}
    meta |= {"dhv": header["in.v"]["shape"][3], "regime": "real"}
    meta["scalars"] = header["__metadata__"]["scalars"]
    meta["source"] = (f"first {TOKENS} tokens of what layer 0 of a trained byte-level mLSTM language "
                      "model feeds its cell for one held-out text; out.h in fp64 from these inputs")
    made, payload = {"__metadata__": {key: str(value) for key, value in meta.items()}}, b""
    for name in KEPT:
        shape, part = cut(header[name], data)
        assert len(part) % (4 * ELEMENT_BYTES[header[name]["dtype"]]) == 0  # keeps what follows aligned
        offsets = [len(payload), len(payload) + len(part)]
        made[name] = {"dtype": header[name]["dtype"], "shape": shape, "data_offsets": offsets}
        payload += part
    text = json.dumps(made, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(cut_path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + payload)


main(*sys.argv[1:])
