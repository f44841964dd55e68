"""Times what others have for the same operations, and checks it against fp64.

    python3 bench/peers.py                      all peers, forward and forward with backward
    python3 bench/peers.py --peer mlstm-sig --direction forward --shape B=8,NH=16,T=8192,dqk=128,dhv=256
    python3 bench/peers.py --compare PATH       errors on a file with fp64 results, or a folder of such files;
                                                with --backward also those of the gradients
    python3 bench/peers.py --list               the peers

One JSON line a result, to stdout and with --out FILE to a file too. ms is the median of CALLS calls, min and max
the extremes; memory_bytes the peak beyond inputs (and dh); error the RMS error in relation to fp64 of the output
and, with the backward, of each gradient, over the first 512 tokens of one sequence.

Needs an NVIDIA GPU and torch, triton, einops and numpy; written for Python 3.12, torch 2.11 and Triton 3.6,
without network. The peers are not part of this repository (mlstm_kernels' licence, the NXAI Community License,
does not allow it): put their Python packages into peers/ in the root of the repository (git ignores it), or
name the folder that holds them with --peers, or install them. Those that are absent are left out.

    peers/mlstm_kernels    github.com/NX-AI/mlstm_kernels            xl_chunk, sigmoid and exponential gate
    peers/fla              github.com/fla-org/flash-linear-attention simple_gla, lightning, linear, retention,
                                                                     gated_delta_rule, delta_rule, kda, gla
    peers/mamba_ssm        github.com/state-spaces/mamba             Mamba-2's SSD in Triton

A file COMMIT in such a folder tells its commit. FLA and Mamba tune themselves at their first call: every
configuration that they list is timed, for --tune-ms; --jobs processes compile the kernels into Triton's cache
before anything is measured. With --compare only 4 configurations are tried.

How a time is taken: CUDA events around one call, a 256 MB buffer written before each so that the L2
cache holds nothing of the inputs, and the GPU kept busy until the call has been submitted, so that
the peer is charged for its kernels and not for Python. Median of 30 after 10 to warm up."""
import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torch._dynamo
import triton

import peers_compare
import peers_ops

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARM_UPS, CALLS = 10, 30
FLUSH_BYTES = 256 * 2**20
SUBMIT_CYCLES = 20_000_000  # about 10 ms, more than a submission takes
CHECKED_TOKENS = 512
TRITONS_TUNE_MS = 100
CONFIGS_TO_COMPARE = 4
DIRECTIONS = ("forward", "forward+backward")


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


def peak_memory(call):
    """Bytes beyond what is allocated already: outputs, gradients, what lies between."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def driver_version():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def check_gpu():
    if not torch.cuda.is_available():
        sys.exit("expected an NVIDIA GPU, found none")


def describe_machine():
    return {"gpu": torch.cuda.get_device_name(), "driver": driver_version(),
            "torch": torch.__version__, "triton": triton.__version__}


def forward_backward(peer, x, chunk, dh):
    """Gradients of <h, dh> with respect to the inputs."""
    return torch.autograd.grad(peer.call(x, chunk), list(x.values()), dh)


def check(peer, x, chunk, dh, backward):
    """Errors over the first tokens of the first sequence. Nothing flows back from the others: their dh is zero."""
    def first(tensor):
        return tensor[:1].narrow(peer.tokens, 0, min(CHECKED_TOKENS, tensor.shape[peer.tokens]))

    def part(tensor):
        return first(tensor) if tensor.dim() > 2 else tensor

    exact_x = {name: part(t).detach().double().requires_grad_(backward) for name, t in x.items()}
    with torch.set_grad_enabled(backward):
        h, exact_h = peer.call(x, chunk), peer.exact(exact_x)
    errors = {"h": peers_compare.error_of(part(h), exact_h)["rms"]}
    if backward:
        sent = torch.zeros_like(dh)
        first(sent).copy_(first(dh))
        grads = torch.autograd.grad(h, list(x.values()), sent)
        exact_grads = torch.autograd.grad(exact_h, list(exact_x.values()), first(dh).double())
        errors |= {name: peers_compare.error_of(part(grad), exact)["rms"]
                   for name, grad, exact in zip(x, grads, exact_grads)}
    return {name: float(f"{error:.3g}") for name, error in errors.items()}


def measure(peer, x, chunk, dh, backward):
    def call():
        return forward_backward(peer, x, chunk, dh) if backward else peer.call(x, chunk)

    if backward:
        peer.lift_refusal()
    begin = time.monotonic()
    with torch.set_grad_enabled(backward):
        call()
        torch.cuda.synchronize()
        first_call = time.monotonic() - begin
        times = time_calls(call)
        memory = peak_memory(call)
    row = {"ms": round(statistics.median(times), 4), "min": round(min(times), 4),
           "max": round(max(times), 4), "calls": CALLS, "memory_bytes": memory,
           "first_call_s": round(first_call, 2)}
    row["error"] = check(peer, x, chunk, dh, backward)
    if backward and peer.lifted:
        row["known_wrong"] = peer.lifted
    return row


def chunks_of(peer, shape, options):
    return options.chunk if options.chunk and not peer.autotuned else peer.chunks(shape)


def bench(peer, options):
    for shape in options.shape or peer.shapes:
        torch.manual_seed(0)
        x = peer.inputs(shape)
        dh = torch.randn_like(x["x" if "x" in x else "v"])
        for chunk in chunks_of(peer, shape, options):
            torch._dynamo.reset()  # mlstm_kernels' gate kernels are compiled for this shape, not for any
            for direction in options.direction:
                for tensor in x.values():
                    tensor.requires_grad_(direction != "forward")
                row = {"direction": direction, "dtype": "bf16", "chunk": chunk, **shape}
                if peer.autotuned:
                    most = most_configs(options, peer.name)
                    row["tuning"] = (f"{f'{most} configurations, at even distances,' if most else 'all configurations'} "
                                     f"of each kernel, {options.tune_ms} ms each")
                try:
                    row |= measure(peer, x, chunk, dh, direction != "forward")
                except Exception as error:  # a shape it cannot do is a result too
                    row["failed"] = f"{type(error).__name__}: {error}"[:300]
                yield row
        del x, dh
        torch.cuda.empty_cache()


def most_configs(options, name):
    """How many configurations of each kernel are tried; None: all."""
    return CONFIGS_TO_COMPARE if options.compare else dict(options.configs or ()).get(name)


def spread(configs, most):
    """At most so many of them, at even distances: neighbours are alike."""
    if most is None or len(configs) <= most:
        return configs
    return [configs[n * len(configs) // most] for n in range(most)]


def set_tuner(options, name):
    from triton.runtime.autotuner import Autotuner

    def bench_briefly(kernel_call, quantiles):
        return triton.testing.do_bench(kernel_call, warmup=options.tune_ms // 4, rep=options.tune_ms,
                                       quantiles=quantiles)

    def prune_more(tuner, kwargs):
        return spread(prune_as_triton(tuner, kwargs), most_configs(options, name))

    prune_as_triton = getattr(Autotuner.prune_configs, "as_triton", Autotuner.prune_configs)
    prune_more.as_triton = prune_as_triton
    Autotuner.prune_configs = prune_more
    if options.tune_ms != TRITONS_TUNE_MS:
        Autotuner.do_bench = staticmethod(bench_briefly)


def compile_ahead(options):
    """Processes fill Triton's cache. Nothing is measured meanwhile: their own calls would disturb it."""
    fork = multiprocessing.get_context("fork")  # so CUDA must not be in use yet
    begin = time.monotonic()
    processes = [fork.Process(target=compile_share, args=(options, rank)) for rank in range(options.jobs)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(f"compiled ahead in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def compile_share(options, rank):
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    job = 0
    for peer in load(options.peer, quiet=True):
        for shape in options.shape or peer.shapes:
            for chunk in chunks_of(peer, shape, options):
                job += 1
                if peer.autotuned or job % options.jobs == rank:
                    try:
                        compile_kernels(peer, shape, chunk, options, rank)
                    except Exception as error:
                        print(f"{peer.name}: not compiled ahead: {type(error).__name__}: {error}"[:300],
                              file=sys.stderr, flush=True)
                    torch.cuda.empty_cache()


def compile_kernels(peer, shape, chunk, options, rank):
    """Of a kernel that tunes itself every process compiles a part of the configurations and runs none; what
    such a call returns is never looked at."""
    from triton.runtime.autotuner import Autotuner

    set_tuner(options, peer.name)
    turn = 0

    def compile_only(tuner, *args, **kwargs):
        nonlocal turn
        tuner.nargs = dict(zip(tuner.arg_names, args))
        kwargs["warmup"] = True
        for n, config in enumerate(tuner.prune_configs(kwargs)):
            tuner.best_config = config  # Mamba asks for it
            turn += 1
            if turn % options.jobs == rank:
                try:
                    kernel = tuner.fn.run(*args, **kwargs, **config.all_kwargs())
                    if n == 0:
                        kernel.run  # builds what launches it, the same for all
                except Exception:  # too large for this GPU, which the tuner will see too
                    pass

    run = Autotuner.run
    if peer.autotuned:
        Autotuner.run = compile_only
        if 1 < shape["B"] < 16:  # a kernel is the same for every B but 1 and multiples of 16
            shape = {**shape, "B": 2}
    try:
        torch._dynamo.reset()
        x = peer.inputs(shape)
        if not peer.autotuned and DIRECTIONS[0] in options.direction:
            with torch.no_grad():
                peer.call(x, chunk)
        for tensor in x.values():
            tensor.requires_grad_()
        peer.lift_refusal()
        h = peer.call(x, chunk)
        if DIRECTIONS[1] in options.direction:
            torch.autograd.grad(h, list(x.values()), torch.empty_like(h))
    finally:
        Autotuner.run = run


def load(names, quiet=False):
    for name in names or peers_ops.PEERS:
        peer = peers_ops.PEERS[name]
        try:
            peer.load()
        except ImportError as error:
            if not quiet:
                print(f"{name}: left out: {error} (see the top of bench/peers.py)", file=sys.stderr, flush=True)
        else:
            yield peer


def parse_shape(text):
    return {name: int(size) for name, _, size in (item.partition("=") for item in text.split(","))}


def parse_configs(text):
    name, _, count = text.partition("=")
    return name, int(count)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", type=pathlib.Path, default=ROOT / "peers",
                        help="the folder that holds the packages (default: peers/ of the repository)")
    parser.add_argument("--peer", action="append", choices=list(peers_ops.PEERS), help="default: all")
    parser.add_argument("--shape", type=parse_shape, action="append", metavar="B=8,NH=16,T=8192,dqk=128,dhv=256")
    parser.add_argument("--chunk", type=int, action="append", help="chunk sizes of the mlstm peers")
    parser.add_argument("--direction", action="append", choices=DIRECTIONS, help="default: both")
    parser.add_argument("--compare", metavar="PATH", action="append",
                        help="print errors on the files at PATH instead of times")
    parser.add_argument("--backward", action="store_true", help="with --compare: those of the gradients too")
    parser.add_argument("--out", type=argparse.FileType("a"), help="append the lines to this file too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="processes that compile ahead; 0: nothing is compiled ahead")
    parser.add_argument("--tune-ms", type=int, default=TRITONS_TUNE_MS,
                        help="how long each configuration is timed (default: %(default)s, as Triton does)")
    parser.add_argument("--configs", type=parse_configs, action="append", metavar="PEER=COUNT",
                        help="try only COUNT configurations of each of its kernels, at even distances")
    parser.add_argument("--list", action="store_true", help="print the peers' names")
    options = parser.parse_args()
    options.direction = options.direction or DIRECTIONS
    return options


def compare_in_processes(jobs, options):
    """Each file and chunk size in a process of its own: a wrong access takes all of a process with it."""
    def run(job):
        path, _, chunk = job
        command = [sys.executable, __file__, "--peers", options.peers, "--compare", path, "--chunk", str(chunk)]
        return subprocess.run(command + ["--backward"] * options.backward, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        for (path, name, chunk), result in zip(jobs, pool.map(run, jobs)):
            for line in result.stdout.splitlines():
                yield json.loads(line)
            if result.returncode:
                lines = result.stderr.splitlines() or ["unknown"]
                reason = next((line for line in lines if "Error" in line), lines[-1])
                yield {"peer": name, "file": path.name, "chunk": chunk, "failed": reason[:300]}


def compare(options):
    files = list(peers_compare.find_files(options.compare))
    jobs = [(path, name, chunk) for path, name in files
            for chunk in (peers_ops.PEERS[name].autotuned and [peers_ops.PEERS[name].default_chunk]
                          or options.chunk or [64])]
    if len(jobs) > 1:
        yield from compare_in_processes(jobs, options)
        return
    check_gpu()
    machine = describe_machine()
    for path, name, chunk in jobs:
        set_tuner(options, name)
        for peer in load([name]):
            for row in peers_compare.compare(peer, path, chunk, options.backward):
                yield {"peer": name, "kernel": peer.kernel, **peer.found, "file": path.name, "chunk": chunk,
                       **row, **machine}


def measure_all(options):
    if options.jobs > 0:
        compile_ahead(options)
    check_gpu()
    machine = describe_machine()
    for peer in load(options.peer):
        set_tuner(options, peer.name)
        for row in bench(peer, options):
            yield {"peer": peer.name, "kernel": peer.kernel, **peer.found, **row, **machine}


def main():
    options = parse_arguments()
    if options.list:
        for peer in peers_ops.PEERS.values():
            print(f"{peer.name:20} {peer.kernel}")
        return
    sys.path.insert(0, str(options.peers))
    for row in compare(options) if options.compare else measure_all(options):
        line = json.dumps(row)
        print(line, flush=True)
        if options.out:
            print(line, file=options.out, flush=True)


if __name__ == "__main__":
    main()
