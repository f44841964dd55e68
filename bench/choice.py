#!/usr/bin/env python3
"""bench/choice.py - what is taken by default beside the best that tuning finds, for drawn shapes.

    bench/choice.py [--seeds 1-60] [--budget SECONDS] (--device N | --gpu NAME | --list)

A seed is a shape: variant, direction, sizes, group, packed; up to 100 of one gate a token and head, from 101 on of decays by
channels and of the delta rule, from 201 on of both, with numbers of heads and sequences that are no powers of two. For each `tegula tune --json`; a line of JSON with both times,
their ratio and all that was timed (a ratio of 1 of little says little), then one with the median and the worst ratio. With --gpu nothing is measured: both are the model's. --list prints
the shapes, a line each, for tests/test_choice.c.
"""
import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile

VARIANTS = ["linear", "retention", "gated-retention", "simple-gla", "mamba2", "mlstm-sig", "mlstm-sig-norm", "mlstm-exp",
            "lightning"]
CHANNELS = ["gla", "hgrn2", "rwkv6", "kda", "kda-safe", "kda-gate"]
DELTA = ["gated-delta", "gated-delta-gate", "delta-net"]
FIRST_OF_OTHERS = 101
FIRST_OF_ANY = 201
MOST = 2**31  # elements of v: 4 GiB of bf16
MOST_OF_OTHERS = 2**29  # ... whose gradients have some twenty tensors of that size beside it


def draw_scalar(source, one_of):
    while True:
        shape = {"variant": one_of(VARIANTS), "backward": source.random() < 0.5, "B": one_of([1, 2, 4, 8]),
                 "NH": one_of([4, 8, 16, 32]), "T": one_of([512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]),
                 "dqk": one_of([64, 128, 128, 192, 256]), "dhv": one_of([64, 128, 256, 256, 384, 512]),
                 "group": one_of([1, 1, 1, 4]), "packed": source.random() < 0.25}
        if shape["B"] * shape["NH"] * shape["T"] * shape["dhv"] <= MOST:
            return shape


def draw_other(source, one_of):
    """Heads of a group share queries and keys where the variant has groups."""
    while True:
        of_delta = source.random() < 0.5
        shape = {"variant": one_of(DELTA if of_delta else CHANNELS), "backward": source.random() < 0.5,
                 "B": one_of([1, 1, 2, 4, 8]), "NH": one_of([4, 8, 16, 32, 32]),
                 "T": one_of([512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]), "dqk": one_of([64, 128, 128, 128]),
                 "dhv": one_of([64, 128, 128, 256]), "group": one_of([1, 1, 2, 4]) if of_delta else 1,
                 "packed": source.random() < 0.25}
        if shape["B"] * shape["NH"] * shape["T"] * shape["dhv"] <= MOST_OF_OTHERS:
            return shape


def draw_any(source, one_of):
    while True:
        shape = (draw_other if source.random() < 0.6 else draw_scalar)(source, one_of)
        shape.update(B=one_of([1, 2, 3, 5, 6, 7, 9]), NH=one_of([6, 12, 20, 24, 40, 48, 96]))
        if shape["NH"] % shape["group"] == 0 and shape["B"] * shape["NH"] * shape["T"] * shape["dhv"] <= MOST_OF_OTHERS:
            return shape


def draw(seed):
    """The same for a seed everywhere: random.Random(int).random() is fixed by the language."""
    source = random.Random(seed)

    def one_of(values):
        return values[int(source.random() * len(values))]

    of = draw_scalar if seed < FIRST_OF_OTHERS else draw_other if seed < FIRST_OF_ANY else draw_any
    return of(source, one_of)


def name_of(shape):
    return shape["variant"] + ("-backward" if shape["backward"] else "")


def sizes_of(shape):
    tokens = shape["T"] * (shape["B"] if shape["packed"] else 1)
    return shape["B"], shape["NH"], tokens, shape["dqk"], shape["dhv"]


def command(shape, args):
    name = name_of(shape)
    sizes = "B=%d,NH=%d,T=%d,dqk=%d,dhv=%d" % sizes_of(shape)
    where = ["--gpu", args.gpu] if args.gpu else ["--device", str(args.device)]
    return (["./dev", "tegula", "tune", name, "--shape", sizes, "--group", str(shape["group"]), "--json",
             "--budget-seconds", str(args.budget)] + where + (["--packed"] if shape["packed"] else []))


def compare(seed, args, wisdom):
    shape = draw(seed)
    words = command(shape, args) + ["--wisdom", wisdom]
    run = subprocess.run(words, capture_output=True, text=True)
    line = {"seed": seed, "choice": shape}
    if run.returncode == 0:
        found = json.loads(run.stdout)
        default, best = found["default"], found["best"]
        if default and "ms" in default:
            line.update(default=default["schedule"], default_ms=default["ms"], best=best["schedule"], best_ms=best["ms"],
                        model_ms=default["model_ms"], ratio=default["ms"] / best["ms"],
                        timed={one["schedule"]: one["ms"] for one in found["candidates"] if "ms" in one})
    if "ratio" not in line:
        line["error"] = run.stderr[-300:]
    return line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="1-60")
    parser.add_argument("--budget", type=float, default=4)
    parser.add_argument("--device", type=int)
    parser.add_argument("--gpu")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if (args.device is not None) + (args.gpu is not None) + args.list != 1:
        parser.error("one of --device, --gpu and --list")
    first, last = (args.seeds.split("-") + [args.seeds])[:2]
    if args.list:
        for shape in map(draw, range(int(first), int(last) + 1)):
            print(name_of(shape), *sizes_of(shape), shape["group"], int(shape["packed"]))
        return 0
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(int(first), int(last) + 1):
            line = compare(seed, args, folder + "/wisdom.txt")
            print(json.dumps(line), flush=True)
            if "ratio" in line:
                ratios.append(line["ratio"])
    n = int(last) - int(first) + 1
    if ratios:
        print(json.dumps({"n": n, "compared": len(ratios), "median": statistics.median(ratios), "worst": max(ratios)}))
    return 0 if len(ratios) == n else 1


if __name__ == "__main__":
    sys.exit(main())
