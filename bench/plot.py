"""What bench/gpu.sh measured, ours beside the peer's: a table, and plots where matplotlib is installed.

    python3 bench/plot.py RESULTS.json --table         median ms for each shape
    python3 bench/plot.py RESULTS.json --svg FOLDER    length.svg: time over T; chunk.svg: over chunk size
"""
import argparse
import json
import pathlib


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def ours(lines, part):
    """(B, T) -> (ms, schedule) of one part."""
    return {(x["shape"]["B"], x["shape"]["T"]): (x["median_ms"], x["schedule"])
            for x in lines if x["part"] == part and "median_ms" in x}


def peers(lines):
    """(B, T) -> (ms, chunk) of the peer's fastest chunk size."""
    best = {}
    for x in lines:
        if x["part"] == "peers" and "ms" in x:
            shape = (x["B"], x["T"])
            best[shape] = min(best.get(shape, (float("inf"), 0)), (x["ms"], x["chunk"]))
    return best


def print_table(lines):
    default, tuned, peer = ours(lines, "bench"), ours(lines, "bench-tuned"), peers(lines)
    print("   B       T  default ms  tuned ms  peer ms  peer/ours  tuned schedule")
    for shape in sorted(set(default) | set(tuned) | set(peer), key=lambda shape: shape[1]):
        times = [table[shape][0] if shape in table else None for table in (default, tuned, peer)]
        cells = [f"{ms:.3f}" if ms else "-" for ms in times]
        fastest = min((ms for ms in times[:2] if ms), default=None)
        ratio = f"{times[2] / fastest:.2f}" if times[2] and fastest else "-"
        print(f"{shape[0]:4} {shape[1]:7} {cells[0]:>11} {cells[1]:>9} {cells[2]:>8} {ratio:>10}"
              f"  {tuned.get(shape, ('', '-'))[1]}")
    for x in lines:
        if x["part"] == "tune":
            print(f"tuned B {x['shape']['B']} T {x['shape']['T']}: {x['best']['schedule']}, "
                  f"{x['best']['ms']:.3f} ms")


def plot_length(plt, lines, path):
    figure, axes = plt.subplots(figsize=(6, 4))
    curves = (("Tegula, default schedule", ours(lines, "bench")),
              ("Tegula, tuned", ours(lines, "bench-tuned")), ("mlstm_kernels xl_chunk", peers(lines)))
    for name, times in curves:
        points = sorted((tokens, value[0]) for (_, tokens), value in times.items())
        if points:
            axes.plot(*zip(*points), marker="o", label=name)
    axes.set(xlabel="T, at 65,536 tokens in all", ylabel="forward pass, ms",
             title=lines[0]["machine"])
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path)


def plot_chunk(plt, lines, path):
    figure, (above, below) = plt.subplots(2, sharex=True, figsize=(6, 6))
    for x in lines:
        if x["part"] != "tune":
            continue
        best = {}
        for c in x["candidates"]:
            if c.get("ms"):
                best[c["chunk"]] = min(best.get(c["chunk"], (float("inf"), 0)),
                                       (c["ms"], c["workspace_bytes"] / 2**20))
        chunks = sorted(best)
        name = f"B {x['shape']['B']}, T {x['shape']['T']}"
        above.plot(chunks, [best[c][0] for c in chunks], marker="o", label=name)
        below.plot(chunks, [best[c][1] for c in chunks], marker="o", label=name)
    above.set(ylabel="forward pass, ms", title=lines[0]["machine"])
    below.set(ylabel="workspace, MiB", xlabel="chunk size")
    below.set_xscale("log", base=2)
    above.set_ylim(bottom=0)
    above.legend()
    figure.savefig(path)


def plot(lines, folder):
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise SystemExit("plots need matplotlib (Debian: python3-matplotlib)")
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    plot_length(plt, lines, folder / "length.svg")
    plot_chunk(plt, lines, folder / "chunk.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    lines = read_lines(options.results)
    if not lines:
        raise SystemExit(f"{options.results} holds no measurement")
    if options.table or not options.svg:
        print_table(lines)
    if options.svg:
        plot(lines, options.svg)


if __name__ == "__main__":
    main()
