# SPDX-License-Identifier: MIT
"""Runs all benchmarks and prints one table: what was measured, the ratio, the bar it is held against, and whether it
is met. `make bench`, `make bench-check` and `make bench-report` call it:

    python3 tests/bench/bench.py build/release [--check] [--report] [--only kernels,serve]

A benchmark is a C program tests/bench/X.c, built as bench-X, or a script listed below. It prints one JSON object a
line: {"name": "ours/peer", "ms": .., "ratio": ..}, {"name": .., "missing": "what is not installed"}, or how a cost
grows: {"name": .., "points": [[x, ms], ..], "exponent": ..}. Bars, and the floors that --check fails below, are in
bars.json beside this. All lines, with what they were measured on, are written to build/bench.json.

Ratios are medians of rounds in which both sides are measured by turns; times are only there to see what is large.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import time

import _machine

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = [name for name in ("serve", "growth", "memory") if os.path.exists(os.path.join(HERE, name + ".py"))]


def parts_of(build):
    """name: command of every benchmark."""
    programs = sorted(os.path.basename(path)[:-2] for path in glob.glob(os.path.join(HERE, "*.c")))
    parts = {name: [os.path.join(build, "bench-" + name)] for name in programs}
    parts.update((name, ["/usr/bin/python3", os.path.join(HERE, name + ".py"), build]) for name in SCRIPTS)
    return parts


def run_part(name, command):
    """Its lines. What it has to say besides goes to standard error, which is ours."""
    print(f"bench: {name}", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line]
    if done.returncode != 0:
        print(f"bench: {name} ended with {done.returncode}", file=sys.stderr)
        lines.append({"name": name, "missing": f"the rest: exit code {done.returncode}"})
    return [dict(line, part=name) for line in lines]


class Row:
    """A line beside its bar."""

    def __init__(self, name, bar, line):
        self.name, self.line = name, line or {}
        self.what = bar.get("what", name)
        self.bar, self.floor, self.at_most = bar.get("bar"), bar.get("floor"), bar.get("at_most", False)
        self.ratio = self.line.get("ratio")

    def within(self, limit):
        return self.ratio <= limit if self.at_most else self.ratio >= limit

    def state(self):
        if self.ratio is None:
            return "missing: " + self.line.get("missing", "not measured")
        if self.bar is None:
            return ""
        if self.within(self.bar):
            return "met"
        share = self.bar / self.ratio if self.at_most else self.ratio / self.bar
        return f"short: {share:.2f} of it"

    def falls_below(self):
        return self.floor is not None and self.ratio is not None and not self.within(self.floor)

    def sign(self):
        return "<=" if self.at_most else ">="

    def cells(self):
        shown = "" if self.ratio is None else f"{self.ratio:.4g}" if self.ratio < 1e4 else f"{self.ratio:.0f}"
        return [self.what, self.name, shown, "" if self.bar is None else f"{self.sign()} {self.bar:g}", self.state()]


def rows_of(bars, lines, only):
    """All bars in the order of their file, then what has none. With `only`, what was not run is left out."""
    ratios = {line["name"]: line for line in lines if "points" not in line}
    names = [name for name in bars if name in ratios or not only] + [name for name in ratios if name not in bars]
    return [Row(name, bars.get(name, {}), ratios.get(name)) for name in names]


def table_of(rows, edge="", gap="  "):
    """Lines of text with columns of one width."""
    head = ["what", "name", "ratio", "bar", ""]
    cells = [head] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    return [(edge + gap.join(cell.rjust(width) if i == 2 else cell.ljust(width)
                             for i, (cell, width) in enumerate(zip(line, widths))) + edge).rstrip() for line in cells]


def sum_of(rows):
    barred = [row for row in rows if row.bar is not None]
    states = [row.state().split(":")[0] for row in barred]
    return f"{len(barred)} bars: {states.count('met')} met, {states.count('short')} short, " \
           f"{states.count('missing')} not measured"


def growth_of(lines):
    return [f"{line['name']}: exponent {line['exponent']:.2f} "
            f"({', '.join(f'{x:g}: {y:.3g}' for x, y in line['points'])})" for line in lines if "points" in line]


def show(head, rows, lines):
    for name, value in head.items():
        print(f"{name + ':':15}{value}")
    print()
    print("\n".join(table_of(rows)))
    print()
    print("\n".join(growth_of(lines) + [sum_of(rows)]))


def fallen(rows):
    """Says which rows are below their floors; how many."""
    below = [row for row in rows if row.falls_below()]
    for row in below:
        print(f"below its floor: {row.name} is {row.ratio:.4g}, floor {row.sign()} {row.floor:g}")
    return len(below)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    with open(os.path.join(HERE, "bars.json"), encoding="utf-8") as file:
        bars = json.load(file)
    only = [name for name in options.only.replace(",", " ").split() if name]
    head = _machine.describe()
    head["load at start"], began = _machine.load_average(), time.monotonic()
    parts = parts_of(options.build)
    lines = [line for name in parts if name in (only or parts) for line in run_part(name, parts[name])]
    head["load at end"], head["seconds"] = _machine.load_average(), round(time.monotonic() - began)
    rows = rows_of(bars, lines, only)
    show(head, rows, lines)
    with open("build/bench.json", "w", encoding="utf-8") as file:
        json.dump({"head": head, "lines": lines}, file, indent=1)
        file.write("\n")
    sys.exit(1 if options.check and fallen(rows) else 0)


if __name__ == "__main__":
    main()
