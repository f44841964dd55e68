"""What a call costs beside its kernels: calls of no sequences, which launch nothing, on arrays in the emulator's memory.

    PYTHONPATH=python TEGULA_LIBRARY=build/lib python3 bench/python_call.py
"""

import time

import numpy as np
import tegula


def microseconds(function, n=2000, runs=7):
    """The best mean of a few runs."""
    best = float("inf")
    for _ in range(runs):
        begin = time.perf_counter()
        for _ in range(n):
            function()
        best = min(best, (time.perf_counter() - begin) / n)
    return 1e6 * best


def main():
    shapes = {"q": (0, 4, 64, 64), "k": (0, 4, 64, 64), "v": (0, 4, 64, 64), "a": (0, 4, 64), "h": (0, 4, 64, 64)}
    arrays = {name: tegula.to_device(np.empty(shape, np.float32), "emu") for name, shape in shapes.items()}
    operator = tegula.Operator("simple-gla", device="emu")
    print(f"tegula.Operator, 5 device arrays      {microseconds(lambda: operator(**arrays)):6.1f} us")
    try:
        import torch
    except ModuleNotFoundError:
        print("torch.ops.tegula: this Python has no torch")
        return
    from tegula import torch as operators
    x = {name: torch.empty(shape) for name, shape in shapes.items() if name != "h"}
    print(f"tegula.torch.simple_gla, CPU tensors  {microseconds(lambda: operators.simple_gla(**x)):6.1f} us")


main()
