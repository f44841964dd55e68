"""Times the forward pass of a peer: mLSTM with sigmoid input gate, xl_chunk, from mlstm_kernels.

    python3 bench/peers.py                              all shapes and chunk sizes, one JSON line each
    python3 bench/peers.py --shape 8 8192 --chunk 128   one of them
    python3 bench/peers.py --backward                   forward and backward together
    python3 bench/peers.py --compare FILE.safetensors   its error against out.h of such a file, with
                                                        --backward also that of its gradients

Needs an NVIDIA GPU and torch, triton, einops and numpy, and safetensors for --compare; written for
Python 3.12, torch 2.11 and Triton 3.6, without network. mlstm_kernels is not part of this repository
and its licence (NXAI Community License) is not ours: put its Python package at peers/mlstm_kernels in
the root of the repository (git ignores peers/), or name the folder that holds it with --peers.

How a time is taken: CUDA events around one call, a 256 MB buffer written before each so that the L2
cache holds nothing of the inputs, and the GPU kept busy until the call has been submitted, so that
the peer is charged for its kernels and not for Python. Median of 30 after 10 to warm up."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

import torch
import torch._dynamo
import triton

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADS, DQK, DHV = 16, 128, 256
SHAPES = ((8, 8192), (1, 65536), (32, 2048), (128, 512))  # B, T: 65,536 tokens each
CHUNKS = (128, 256)
WARM_UPS, CALLS = 10, 30
FLUSH_BYTES = 256 * 2**20
SUBMIT_CYCLES = 4_000_000  # about 2 ms, more than a submission takes
NAME = "mlstm_kernels mlstm_siging_chunkwise__xl_chunk"


def load_peer(folder):
    """The one subpackage: it and its parents import torch, triton, einops and numpy, no more."""
    sys.path.insert(0, str(folder))
    try:
        from mlstm_kernels.torch.chunkwise.triton_xl_chunk_siging import (
            mlstm_siging_chunkwise__xl_chunk as peer,
        )
    except ModuleNotFoundError as error:
        sys.exit(f"{error}: expected {folder}/mlstm_kernels (see the top of this file)")
    return peer


def forward(peer, q, k, v, i, f, chunk, state=None):
    """state [B, NH, dqk, dhv] is what the sequence starts from; the peer wants a normaliser with it,
    which without normalize it does not use."""
    start = {}
    if state is not None:
        start = {"c_initial": state, "n_initial": torch.zeros_like(state[..., 0])}
    # Inputs keep their types: the kernel dtype acts under autocast only, and none is on here.
    return peer(q, k, v, i, f, normalize=False, chunk_size=chunk,
                autocast_kernel_dtype=torch.bfloat16, **start)


def make_inputs(batch, tokens):
    torch.manual_seed(0)

    def normal(*inner, dtype=torch.bfloat16, mean=0.0):
        values = torch.randn(batch, HEADS, tokens, *inner, device="cuda", dtype=dtype)
        return values + mean if mean else values

    gates = dict(dtype=torch.float32)  # the type our kernels take them in
    return (normal(DQK), normal(DQK), normal(DHV), normal(mean=-4.0, **gates),
            normal(mean=4.0, **gates))


def time_calls(call):
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    times = []
    for n in range(WARM_UPS + CALLS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        torch.cuda._sleep(SUBMIT_CYCLES)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if n >= WARM_UPS:
            times.append(begin.elapsed_time(end))
    return times


def driver_version():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def describe_machine():
    return {"gpu": torch.cuda.get_device_name(), "driver": driver_version(),
            "torch": torch.__version__, "triton": triton.__version__}


def report(**fields):
    print(json.dumps(fields), flush=True)


def forward_backward(peer, inputs, chunk, dh):
    """Gradients of <h, dh> with respect to the inputs."""
    return torch.autograd.grad(forward(peer, *inputs, chunk), inputs, dh)


def bench(peer, shapes, chunks, backward):
    machine = describe_machine()
    for batch, tokens in shapes:
        inputs = make_inputs(batch, tokens)
        dh = torch.randn_like(inputs[2])
        for x in inputs:
            x.requires_grad_(backward)
        for chunk in chunks:
            torch._dynamo.reset()  # its gate kernels are compiled for this shape, not for any
            shape = {"kernel": NAME, "direction": "forward+backward" if backward else "forward",
                     "dtype": "bf16", "chunk": chunk, "B": batch, "NH": HEADS, "T": tokens, "dqk": DQK, "dhv": DHV}
            try:
                if backward:
                    times = time_calls(lambda: forward_backward(peer, inputs, chunk, dh))
                else:
                    times = time_calls(lambda: forward(peer, *inputs, chunk))
            except Exception as error:  # a shape it cannot do is a result too
                report(**shape, error=f"{type(error).__name__}: {error}"[:300], **machine)
                continue
            report(**shape, ms=round(statistics.median(times), 4), min=round(min(times), 4),
                   max=round(max(times), 4), calls=CALLS, **machine)
        del inputs
        torch.cuda.empty_cache()


def padded(tensor, tokens):
    """Zeros after the last token, which no earlier output sees: the peer takes whole chunks only."""
    extra = tensor.new_zeros(*tensor.shape[:2], tokens - tensor.shape[2], *tensor.shape[3:])
    return torch.cat((tensor, extra), dim=2)


def error_of(x, ref):
    """RMS(x - ref) / RMS(ref) and max |x - ref| / max |ref|, in fp64."""
    x, ref = x.double(), ref.double()
    off = x - ref
    return {"rms": (off.norm() / ref.norm()).item(),
            "max": (off.abs().max() / ref.abs().max()).item()}


def compare_gradients(peer, path, file, inputs, chunks):
    tokens = inputs[0].shape[2]
    for chunk in chunks:
        torch._dynamo.reset()
        whole = -(-tokens // chunk) * chunk
        padded_inputs = [padded(x, whole).requires_grad_() for x in inputs]
        dh = padded(file.get_tensor("dout.h"), whole).to(inputs[2].dtype)
        grads = forward_backward(peer, padded_inputs, chunk, dh)
        for name, grad in zip("qkvif", grads):
            report(kernel=NAME, file=pathlib.Path(path).name, chunk=chunk, tensor="grad." + name,
                   **error_of(grad[:, :, :tokens], file.get_tensor("grad." + name)))


def compare(peer, path, chunks, backward):
    from safetensors import safe_open

    with safe_open(path, framework="pt", device="cuda:0") as file:
        names = set(file.keys())
        meta = file.metadata() or {}
        inputs = [file.get_tensor("in." + name) for name in "qkvif"]
        state = file.get_tensor("in.S0") if "in.S0" in names else None
        ref = file.get_tensor("out.h")
        if backward and "dout.h" in names:
            compare_gradients(peer, path, file, inputs, chunks)
    batch, heads, tokens, dqk = inputs[0].shape
    scale = json.loads(meta.get("scalars", "{}")).get("scale", dqk**-0.5)
    if not math.isclose(scale, dqk**-0.5, rel_tol=1e-6):
        sys.exit(f"{path}: scale: expected the peer's own, {dqk**-0.5}, found {scale}")
    for chunk in chunks:
        torch._dynamo.reset()
        whole = -(-tokens // chunk) * chunk
        h = forward(peer, *(padded(x, whole) for x in inputs), chunk, state)[:, :, :tokens]
        report(kernel=NAME, direction="forward", file=pathlib.Path(path).name, chunk=chunk, B=batch,
               NH=heads, T=tokens, dqk=dqk, dhv=ref.shape[-1], **error_of(h, ref),
               **describe_machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", type=pathlib.Path, default=ROOT / "peers",
                        help="the folder that holds mlstm_kernels (default: peers/ of the repository)")
    parser.add_argument("--shape", type=int, nargs=2, metavar=("B", "T"), action="append")
    parser.add_argument("--chunk", type=int, action="append")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--compare", metavar="FILE", action="append",
                        help="print the error against out.h of a file instead of times")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("expected an NVIDIA GPU, found none")
    peer = load_peer(options.peers)
    chunks = options.chunk or CHUNKS
    with torch.set_grad_enabled(options.backward):
        for path in options.compare or ():
            compare(peer, path, chunks, options.backward)
        if not options.compare:
            bench(peer, options.shape or SHAPES, chunks, options.backward)


if __name__ == "__main__":
    main()
