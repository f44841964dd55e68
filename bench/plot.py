"""What bench/gpu.sh measured, ours beside the peer's: a table, and plots where matplotlib is installed.

    python3 bench/plot.py RESULTS.json... --table         median ms for each shape
    python3 bench/plot.py RESULTS.json... --svg FOLDER    length.svg: time over T; chunk.svg: over chunk size;
                                                          family.svg: variants beside their peers
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


# Which peer does what a variant does.
PEER_OF = {"mlstm-sig": "mlstm-sig", "mlstm-exp": "mlstm-exp", "simple-gla": "fla-simple-gla", "retention": "fla-retention",
           "lightning": "fla-lightning-attn", "linear": "fla-linear-attn", "mamba2": "mamba-ssd", "delta-net": "fla-delta-rule",
           "gated-delta": "fla-gated-delta-rule", "gla": "fla-gla", "kda": "fla-kda"}


def is_family(x):
    """Of the parts "family" and "delta", whichever call of them."""
    return x["part"].split(",")[0] in ("family", "delta")


def family(lines):
    """Rows of `tegula bench` and the peer's at the same shape: the fastest chunk size for the sum of both directions."""
    rows = []
    for x in lines:
        if not is_family(x) or "backward" not in x:
            continue
        shape = {k: x["shape"][k] for k in ("B", "NH", "T", "dqk", "dhv")}
        found = {}
        for y in lines:
            if y.get("peer") == PEER_OF.get(x["variant"]) and "ms" in y and all(y[k] == shape[k] for k in shape):
                key = (y.get("chunk"), y["direction"])
                found[key] = (y["ms"], y.get("memory_bytes"))
        chunks = {chunk for chunk, direction in found if direction == "forward+backward"}
        best = min(chunks, key=lambda chunk: found[chunk, "forward+backward"][0], default=None)
        forward = min((v[0] for (_, d), v in found.items() if d == "forward"), default=None)
        kept = ", kept" if "--keep-states" in x["command"] else ""
        rows.append({"variant": x["variant"] + kept, "shape": shape, "forward": x["median_ms"], "both": x["both_ms"],
                     "workspace": (x["workspace_bytes"], x["backward"]["workspace_bytes"]),
                     "peer_forward": forward,
                     "peer_both": found[best, "forward+backward"][0] if chunks else None,
                     "peer_memory": tuple(found.get((best, d), (0, None))[1] for d in ("forward", "forward+backward"))})
    return rows


def cell(ms):
    return f"{ms:.2f}" if ms else "-"


def print_family(lines):
    print("variant          B  NH      T  dqk dhv   forward    peer   both    peer   workspace MiB (fwd, bwd)   peer's memory")
    for r in family(lines):
        s = r["shape"]
        memory = " / ".join(f"{m / 2**20:.0f}" if m else "-" for m in r["peer_memory"])
        print(f"{r['variant']:15} {s['B']:2} {s['NH']:3} {s['T']:6} {s['dqk']:4} {s['dhv']:3} {cell(r['forward']):>9}"
              f" {cell(r['peer_forward']):>7} {cell(r['both']):>6} {cell(r['peer_both']):>7}"
              f"   {r['workspace'][0] / 2**20:.0f}, {r['workspace'][1] / 2**20:.0f}   {memory}")
    for x in lines:
        if is_family(x) and "peer" not in x and "backward" not in x:
            print(f"{x['variant']:15} decode, B {x['shape']['B']}, {x['shape']['T']} tokens: {x['median_ms']:.4f} ms, {x['gb_per_s']:.0f} GB/s")


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


def over_length(lines, direction, of_peer):
    """T -> ms of mlstm-sig at 65,536 tokens, 16 heads of 128 / 256: figure 5 of the TFLA paper."""
    times = {}
    for x in lines:
        shape = x.get("shape", x)
        if shape.get("NH") != 16 or shape.get("dqk") != 128 or shape["B"] * shape["T"] != 65536:
            continue
        if of_peer and x.get("peer") == "mlstm-sig" and x["direction"] == direction and "ms" in x:
            times[shape["T"]] = min(times.get(shape["T"], float("inf")), x["ms"])
        elif not of_peer and x["part"] == "paper":
            times[shape["T"]] = x["median_ms"] + (x["backward"]["median_ms"] if direction != "forward" else 0)
    return sorted(times.items())


def plot_length(plt, lines, path):
    figure, axes = plt.subplots(figsize=(6, 4))
    for of_peer, name, color in ((False, "Tegula", "tab:blue"), (True, "mlstm_kernels xl_chunk", "tab:gray")):
        for direction, style in (("forward", "o-"), ("forward+backward", "s--")):
            points = over_length(lines, direction, of_peer)
            if points:
                axes.plot(*zip(*points), style, color=color, label=f"{name}, {direction.replace('+', ' and ')}")
    axes.set(xlabel="T, at 65,536 tokens in all", ylabel="ms", title=lines[0]["machine"])
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
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


def plot_family(plt, lines, path):
    rows = [r for r in family(lines) if r["peer_both"] and r["shape"]["B"] * r["shape"]["T"] == 65536]
    figure, axes = plt.subplots(figsize=(8, 0.6 * len(rows) + 1.5))
    names = [f"{r['variant']}, {r['shape']['NH']} heads\n{r['shape']['dqk']}/{r['shape']['dhv']}, T {r['shape']['T']}" for r in rows]
    for offset, whose, color in ((-0.2, "", "tab:blue"), (0.2, "peer_", "tab:gray")):
        label = "peer" if whose else "Tegula"
        y = [i + offset for i in range(len(rows))]
        axes.barh(y, [r[whose + "both"] for r in rows], 0.38, color=color, alpha=0.45, label=f"{label}, forward and backward")
        axes.barh(y, [r[whose + "forward"] or 0 for r in rows], 0.38, color=color, label=f"{label}, forward")
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="ms at 65,536 tokens", title=lines[0]["machine"])
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)


def plot(lines, folder):
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise SystemExit("plots need matplotlib (Debian: python3-matplotlib)")
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    parts = {x["part"] for x in lines}
    if "paper" in parts:
        plot_length(plt, lines, folder / "length.svg")
    if "tune" in parts:
        plot_chunk(plt, lines, folder / "chunk.svg")
    if any(is_family(x) for x in lines):
        plot_family(plt, lines, folder / "family.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=pathlib.Path, nargs="+")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    lines = [line for path in options.results for line in read_lines(path)]
    if not lines:
        raise SystemExit(f"{options.results} holds no measurement")
    if options.table or not options.svg:
        print_table(lines)
        print_family(lines)
    if options.svg:
        plot(lines, options.svg)


if __name__ == "__main__":
    main()
