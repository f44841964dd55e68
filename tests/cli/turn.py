#!/usr/bin/env python3
"""turn.py IN OUT NAME... - a safetensors file with these tensors alone, those of rank 3 and more but for states
with their axes 1 and 2 exchanged: [B, NH, T, d] to [B, T, NH, d], or back."""
import json
import struct
import sys


def turn(shape, data):
    outer, a, b = shape[:3]
    row = len(data) // (outer * a * b)
    rows = [data[i * row : (i + 1) * row] for i in range(outer * a * b)]
    return b"".join(rows[(o * a + i) * b + j] for o in range(outer) for j in range(b) for i in range(a))


with open(sys.argv[1], "rb") as file:
    (size,) = struct.unpack("<Q", file.read(8))
    header, numbers = json.loads(file.read(size)), file.read()
out, body = {"__metadata__": header.get("__metadata__", {})}, b""
for name in sys.argv[3:]:
    tensor = header[name]
    begin, end = tensor["data_offsets"]
    shape, data = tensor["shape"], numbers[begin:end]
    if not name.split(".")[-1].startswith("S"):
        shape, data = [shape[0], shape[2], shape[1], *shape[3:]], turn(shape, data)
    out[name] = {"dtype": tensor["dtype"], "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
    body += data
text = json.dumps(out).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[2], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + body)
