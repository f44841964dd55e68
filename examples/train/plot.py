"""Loss over steps, and tokens a second, of what runs of train.py have printed: Tegula's beside the others'.

    python3 examples/train/plot.py runs.json train.svg
"""

import collections
import json
import statistics
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

STYLES = {"tegula": "-", "peer": "--", "torch": ":"}


def read(path):
    """(mixer, by) -> the rows of its run."""
    runs = collections.defaultdict(list)
    with open(path) as lines:
        for row in map(json.loads, lines):
            runs[row["mixer"], row["by"]].append(row)
    return runs


def speed(rows):
    """Tokens a second: the median of the reports, but for the first, in which kernels are compiled."""
    return statistics.median(row["tokens_s"] for row in rows[1:] if "tokens_s" in row)


def main(path, svg):
    runs = read(path)
    mixers = sorted({mixer for mixer, _ in runs})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
    for n, mixer in enumerate(mixers):
        for at, by in enumerate(by for by in STYLES if (mixer, by) in runs):
            rows = [row for row in runs[mixer, by] if "loss" in row]
            left.plot([r["step"] for r in rows], [r["loss"] for r in rows], STYLES[by], color=f"C{n}",
                      label=f"{mixer}, {by}")
            right.barh(n + 0.4 * at - 0.2, speed(rows) / 1e6, 0.38, color=f"C{n}", alpha=1 if by == "tegula" else 0.4)
    left.set(xlabel="step", ylabel="loss, bits a byte")
    left.legend(fontsize=6)
    right.set_yticks(range(len(mixers)), mixers)
    right.invert_yaxis()
    right.set(xlabel="million tokens a second (dark: Tegula)")
    figure.tight_layout()
    figure.savefig(svg)


if __name__ == "__main__":
    main(*sys.argv[1:])
