"""Runs the own tests of flash-linear-attention, mlstm_kernels and mamba_ssm with Tegula's functions in their place.

    python3 bench/peers_suite.py --out suite.json peers/tests/ops/test_gla.py ... [PYTEST_OPTIONS]

The peers that are in peers/ (see bench/peers.py) are replaced, their tests lie beside them or elsewhere, with their conftest.py; none is
part of this repository.
Needs pytest and einops; with pytest-xdist `-n 8` runs them in processes. A line of JSON for each test goes to --out, and at
the end it is counted how many passed, failed, or were refused by a tegula.Error, with each reason once. Without a GPU the
tests run on the emulator, those alone that need nothing of Triton's.

This file is the plugin of pytest too.
"""
import argparse
import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


PACKAGES = {"fla": "fla.ops", "mlstm_kernels": "mlstm_kernels.torch.chunkwise",
            "mamba_ssm": "mamba_ssm.ops.triton.selective_state_update"}  # and what tests of it import before ours is installed


def pytest_load_initial_conftests():
    """Before a conftest.py looks for a GPU, and test modules import what they test."""
    import torch
    if not torch.cuda.is_available():
        run_on_cpu(torch)
    for package, module in PACKAGES.items():
        if importlib.util.find_spec(package) is not None:
            install(package, module)


def install(package, module):
    if package == "mamba_ssm":
        import peers_ops
        peers_ops.find_package(package, (package,))  # without what its __init__ imports, which is built for a GPU
        importlib.import_module("mamba_ssm.ops.triton.ssd_combined")
    importlib.import_module(module)
    ours = {"fla": "fla", "mlstm_kernels": "mlstm", "mamba_ssm": "mamba"}[package]
    importlib.import_module(f"tegula.{ours}").install(strict=True)


def run_on_cpu(torch):
    """Tests that ask for a GPU get the emulator: what names the device "cuda" means the CPU."""
    from torch.overrides import TorchFunctionMode

    def is_cuda(x):
        return x == "cuda" or isinstance(x, torch.device) and x.type == "cuda"

    class Cpu(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            args = tuple("cpu" if isinstance(x, (str, torch.device)) and is_cuda(x) else x for x in args)
            kwargs = {name: "cpu" if name == "device" and is_cuda(x) else x for name, x in (kwargs or {}).items()}
            return function(*args, **kwargs)

    Cpu().__enter__()  # for good
    if importlib.util.find_spec("fla") is not None:
        import fla.utils
        for module in (fla.utils, fla.utils._device):
            module.device, module.device_torch_lib = "cpu", torch.cpu
    torch.cuda.is_available = lambda: True  # by which they skip themselves


def pytest_runtest_makereport(item, call):
    import pytest
    import tegula
    ended = call.when == "call" or call.excinfo is not None
    if not ended or call.when == "teardown" or "PEERS_SUITE_OUT" not in os.environ:
        return
    row = {"test": item.nodeid, "outcome": "passed", "s": round(call.duration, 2)}
    if call.excinfo is not None:
        error = call.excinfo.value
        is_expected = item.get_closest_marker("xfail") is not None
        skipped, refused = is_expected or isinstance(error, pytest.skip.Exception), isinstance(error, tegula.Error)
        row["outcome"] = "skipped" if skipped else "refused" if refused else "failed"
        row["why"] = f"{type(error).__name__}: {error}"[:300]
    with open(os.environ["PEERS_SUITE_OUT"], "a") as out:
        print(json.dumps(row), file=out)


def report(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    counted = collections.Counter(row["outcome"] for row in rows)
    print(", ".join(f"{counted[outcome]} {outcome}" for outcome in ("passed", "failed", "refused", "skipped")))
    for (outcome, why), n in collections.Counter((row["outcome"], row["why"]) for row in rows if "why" in row).most_common():
        print(f"{n:4} {outcome}: {why}")
    return counted["failed"] > 0 or not rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", type=pathlib.Path, default=ROOT / "peers", help="the folder that holds their packages")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a line of JSON for each test; written anew")
    options, rest = parser.parse_known_args()
    options.out.unlink(missing_ok=True)
    paths = [str(ROOT / "bench"), str(options.peers.resolve()), os.environ.get("PYTHONPATH", "")]
    subprocess.run([sys.executable, "-m", "pytest", "-p", "peers_suite", "-q", *rest],
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PEERS_SUITE_OUT": str(options.out.resolve())})
    sys.exit(report(options.out))


if __name__ == "__main__":
    main()
