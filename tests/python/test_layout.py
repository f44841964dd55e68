"""The structs that ctypes mirrors have the layout that the headers give them."""

import ctypes
import os
import subprocess
import tempfile
import unittest

from tegula import _c, _stable

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
STRUCTS = {"tg_diag": _c.Diag, "tg_sink": _c.Sink, "tg_device": _c.Device, "tg_tensor": _c.Tensor,
           "tg_scalar": _c.Scalar, "tg_algorithm": _c.Algorithm, "tg_variant": _c.Variant,
           "tg_shape_class": _c.ShapeClass, "tg_sizes": _c.Sizes, "tg_tensor_arg": _c.TensorArg,
           "tg_jit_options": _c.JitOptions, "tg_jit_kept": _c.Kept, "tg_torch_operator": _stable.Declared, "tg_torch_tensor": _stable.Tensor,
           "tg_torch_call": _stable.Call, "tg_torch_output": _stable.Output, "tg_torch_plan": _stable.Plan,
           "tg_torch_host": _stable.Host}
CONSTANTS = {"TG_BF16": _c.FLOATS["bfloat16"], "TG_F16": _c.FLOATS["float16"],
             "TG_F32": _c.FLOATS["float32"], "TG_IN": _c.IN, "TG_OUT": _c.OUT,
             "TG_OPTIONAL": _c.OPTIONAL, "TG_NO_BATCH": _c.NO_BATCH, "TG_SHARED": _c.SHARED,
             "TG_NO_HEADS": _c.NO_HEADS, "TG_MAX_AXES": _c.MAX_AXES, "TG_DSL_VERSION": _c.DSL_VERSION, "TG_IO": 1,
             "TG_T": 1, "TG_DQK": 3, "TG_DHV": 4, "TG_CHUNK": _c.CHUNK, "TG_LKV": _c.POSITION, "TG_JIT_KEPT": 8, "TG_WARNING": 1, "TG_POOL_SLOTS": _c.POOL_SLOTS,
             "TG_POOL_MOVES": _c.POOL_MOVES, "TG_POOL_TOKENS": _c.POOL_TOKENS, "TG_ERROR": 2,
             "TG_TORCH_TENSORS": _stable.TENSORS, "TG_TORCH_I64": _stable.I64, "TG_TORCH_HOST": _stable.HOST,
             "TG_TORCH_EMULATOR": _stable.EMULATOR, "TG_I32": 6}


def program():
    lines = []
    for name, mirror in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in mirror._fields_:
            at, size = f"offsetof({name}, {field})", f"sizeof((({name} *)0)->{field})"
            lines.append(f'printf("{name}.{field} %zu %zu\\n", {at}, {size});')
    lines += [f'printf("{name} %d\\n", (int){name});' for name in CONSTANTS]
    includes = "#include <stdio.h>\n#include <stddef.h>\n#include \"jit/jit.h\"\n#include \"torch/torch.h\"\n"
    return includes + "int main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"


def mirrored():
    lines = []
    for name, mirror in STRUCTS.items():
        lines.append(f"{name} {ctypes.sizeof(mirror)}")
        for field, *_ in mirror._fields_:
            at = getattr(mirror, field)
            lines.append(f"{name}.{field} {at.offset} {at.size}")
    return lines + [f"{name} {value}" for name, value in CONSTANTS.items()]


class Layout(unittest.TestCase):
    def test_structs_are_those_of_the_headers(self):
        with tempfile.TemporaryDirectory() as folder:
            binary = os.path.join(folder, "layout")
            subprocess.run([os.environ.get("CC", "cc"), "-std=c11", f"-I{ROOT}", "-xc", "-", "-o", binary],
                           input=program(), text=True, check=True)
            found = subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(found, mirrored())
