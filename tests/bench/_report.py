# SPDX-License-Identifier: MIT
"""docs/bench.md and docs/bench.png: what bench.py has measured, for readers. The plot needs matplotlib
(python3-matplotlib); without it there is none, and that is said.
"""
import os
import sys

FOLDER = "docs"
INTRODUCTION = """# Measured

Made by `make bench-report`; do not edit. Every ratio is a median over rounds in which both sides were measured by
turns: ours over the peer's speed, or, where the bar says at most, what the row says. "short" means that the bar was
not reached in this run. FastAPI stands for the same operations as `tests/bench/peer_service.py` has them, with uvicorn
and PyTorch: bodies of JSON are taken through a pydantic model, as FastAPI has it, which the bars are for; by hand means
that the service reads them itself with ujson, without any check, which is the faster of the two. Debian's pydantic is
not compiled; a compiled one would be faster. nginx has one worker process, which is one thread.
"""


def table(head, cells):
    lines = [head, ["---"] * len(head)] + cells
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def write(head, cells, growth, total):
    """cells: what, name, ratio, bar, state of each row."""
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "bench.md"), "w", encoding="utf-8") as file:
        file.write(INTRODUCTION + "\n![ratios and growth](bench.png)\n\n" + total + ".\n\n")
        file.write(table(["what", "ratio", "bar", ""], [[line[0], line[2], line[3], line[4]] for line in cells]))
        file.write("\n## How cost grows\n\nThe exponent e of cost = c size^e, fitted to all points.\n\n")
        file.write(table(["what", "exponent", "size: ms (memory: MB)"], growth))
        file.write("\n## What on\n\n" + table(["", ""], [[name, str(value)] for name, value in head.items()]))


def draw_bars(axes, rows):
    rows = list(reversed([row for row in rows if row.bar is not None and row.ratio]))
    shares = [row.share() for row in rows]
    axes.barh(range(len(rows)), [share - 1 for share in shares], left=1, height=0.7,
              color=["#2a7f62" if share >= 1 else "#c8553d" for share in shares])
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=6)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xscale("log")
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10) if min(shares, default=1) / 2 < tick < max(shares, default=1) * 2]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_title("result / bar (right of 1: met)", fontsize=9)


def draw_growth(axes, lines, title):
    for line in lines:
        axes.plot(*zip(*line["points"]), marker="o", markersize=3, linewidth=1,
                  label=f"{line['name'].replace('_', ' ')}: {line['exponent']:.2f}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(title, fontsize=9)
    if lines:
        axes.legend(fontsize=6)
    axes.grid(True, linewidth=0.3)


def plot(rows, lines):
    try:
        import matplotlib
    except ImportError:
        print("bench: no plot, as there is no matplotlib (python3-matplotlib)", file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    memory = [line for line in lines if line["name"].startswith("memory")]
    times = [line for line in lines if line not in memory and "position" not in line["name"]]
    figure = pyplot.figure(figsize=(12, 9), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    draw_bars(figure.add_subplot(grid[:, 0]), rows)
    draw_growth(figure.add_subplot(grid[0, 1]), times, "milliseconds by size, and fitted exponents")
    draw_growth(figure.add_subplot(grid[1, 1]), memory, "peak memory (MB) by MB of numbers in a request")
    figure.savefig(os.path.join(FOLDER, "bench.png"), dpi=110, metadata={"Software": None})
