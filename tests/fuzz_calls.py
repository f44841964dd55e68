#!/usr/bin/env python3
"""Random calls of `tegula check`: every variant, in all types, sizes, layouts and forms that there are, by default and by schedules
by name, forward and backward, compared with fp64. A call may be refused with a reason; it may not be wrong, crash or hang.

A call follows from its seed: `--seed 17 --count 1` repeats it, alone. On the emulator calls are smaller.
"""
import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

WIDTHS = [16, 24, 32, 40, 48, 64, 64, 72, 80, 96, 112, 128, 128, 128, 136, 160, 192, 200, 256, 256, 320, 384, 512]
TOKENS = [1, 2, 3, 15, 16, 17, 31, 63, 64, 65, 100, 127, 128, 129, 200, 257, 333, 500, 1000, 2000, 4000, 8192, 30000, 65536]
RIGHT, WRONG, REFUSED = 0, 1, 2  # exit status of tegula check


class Variant:
    def __init__(self, entry):
        self.name = entry["name"]
        self.has_states = any(tensor["axes"] == ["B", "NH", "dqk", "dhv"] for tensor in entry["tensors"])
        self.schedules = entry["schedules"]
        self.backward = (entry["backward"] or {}).get("schedules", [])


def draw_sizes(dice, most_work):
    group = dice.choice([1, 1, 1, 2, 3, 4, 8])
    sizes = {"B": dice.choice([1, 1, 1, 2, 3]), "NH": group * dice.choice([1, 1, 2, 3]), "T": dice.choice(TOKENS),
             "dqk": dice.choice(WIDTHS), "dhv": dice.choice(WIDTHS)}
    if dice.random() < 0.4:
        sizes["dhv"] = sizes["dqk"]
    while sizes["B"] * sizes["NH"] * sizes["T"] * sizes["dqk"] * sizes["dhv"] > most_work and sizes["T"] > 4:
        sizes["T"] //= 2
    return sizes, group


def draw_states(dice):
    words = ([dice.choice(["bf16", "f16", "f32"])] if dice.random() < 0.3 else []) + (["v-first"] if dice.random() < 0.2 else [])
    return (["--states", ",".join(words)] if words else []) + (["--pool"] if dice.random() < 0.2 else [])


def draw_schedules(dice, variant, is_step, has_gradients):
    of_kind = [name for name in variant.schedules if name.startswith("step") == is_step]
    named = ["--schedule", dice.choice(of_kind)] if of_kind and dice.random() < 0.35 else []
    if has_gradients and variant.backward and dice.random() < 0.35:
        named += ["--backward-schedule", dice.choice(variant.backward)]
    return named


def draw_call(seed, variants, most_work):
    dice = random.Random(seed)
    variant = dice.choice(variants)
    sizes, group = draw_sizes(dice, most_work)
    is_step, has_gradients = dice.random() < 0.2, dice.random() < 0.5
    options = ["--group", str(group), "--seed", str(seed % 1000), "--dtype", dice.choice(["bf16", "bf16", "bf16", "f16", "f32"])]
    if is_step:
        most = dice.choice([1, 2, 4, 8])
        sizes["T"] = dice.randint(1, most)
        options += ["--tokens", str(most)]
    elif has_gradients:
        options += ["--grad"]
        if any("kept" in name for name in variant.backward) and dice.random() < 0.4:
            options += ["--keep-states"]
    if 2 * sizes["B"] <= sizes["T"] and dice.random() < 0.2:
        options += ["--packed"]
    options += ["--layout", "bthd"] if dice.random() < 0.2 else []
    options += ["--int64"] if dice.random() < 0.1 else []
    options += draw_states(dice) if variant.has_states else []
    options += draw_schedules(dice, variant, is_step, has_gradients and not is_step)
    return [variant.name, "--shape", ",".join(f"{name}={size}" for name, size in sizes.items()), *options]


def run_call(tegula, call, where, cache):
    """Exit status, and what was said of a call that is wrong or odd."""
    command = [tegula, "check", *call, *where, "--no-wisdom"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "XDG_CACHE_HOME": cache})
    except subprocess.TimeoutExpired:
        return 124, "more than 300 s"
    said = [line for line in done.stdout.splitlines() if "FAILED" in line] + done.stderr.splitlines()[-3:]
    refused = done.returncode == REFUSED and re.search(r"^error", done.stderr, re.M)
    return (done.returncode if done.returncode != REFUSED or refused else -1), "\n".join(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tegula", help="the built command")
    parser.add_argument("--device", default="emu", help="GPU number or emulator")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the first call")
    parser.add_argument("--count", type=int, default=sys.maxsize, help="calls, if there is time for them")
    arguments = parser.parse_args()
    on_emulator = arguments.device == "emu"
    listed = subprocess.run([arguments.tegula, "variants", "--json"], capture_output=True, check=True).stdout
    variants = [Variant(entry) for entry in json.loads(listed)["variants"]]
    where = ["--device", arguments.device] + (["--arch", "sm_90a"] if on_emulator else [])
    end = time.monotonic() + arguments.seconds
    counts = collections.Counter()

    with tempfile.TemporaryDirectory() as cache, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def one(seed):
            if time.monotonic() > end:
                return None
            call = draw_call(seed, variants, 6e7 if on_emulator else 5e8)
            return seed, call, *run_call(arguments.tegula, call, where, cache)

        seeds = itertools.islice(itertools.count(arguments.seed), arguments.count)
        batches = iter(lambda: list(itertools.islice(seeds, 64)), [])
        for seed, call, status, said in itertools.chain.from_iterable(filter(None, pool.map(one, batch)) for batch in batches):
            counts["right" if status == RIGHT else "wrong" if status == WRONG else "refused" if status == REFUSED else "odd"] += 1
            if status not in (RIGHT, REFUSED):
                print(f"seed {seed}: exit status {status}: tegula check {' '.join(call)}\n{said}")
            if time.monotonic() > end:
                break
    total = sum(counts.values())
    print(f"{total} calls from seed {arguments.seed}: " + ", ".join(f"{counts[kind]} {kind}" for kind in ("right", "refused", "wrong", "odd")))
    is_vain = counts["right"] < total / 4
    if is_vain:
        print("fewer than a quarter were computed: the draws are wrong, or the command is")
    return 1 if counts["wrong"] or counts["odd"] or is_vain else 0


if __name__ == "__main__":
    sys.exit(main())
