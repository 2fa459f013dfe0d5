# SPDX-License-Identifier: MIT
"""Runs all benchmarks and prints one table: what was measured, the ratio, the bar it is held against, and whether it
is met. `make bench`, `make bench-check` and `make bench-report` call it:

    /usr/bin/python3 tests/bench/bench.py build/release [--check] [--report] [--record-floors] [--only kernels,serve] [--again]

A benchmark is a C program tests/bench/X.c, built as bench-X, or a script listed below. It prints one JSON object a
line: {"name": "ours/peer", "ms": .., "ratio": ..}, {"name": .., "missing": "what is not installed"}, or how a cost
grows: {"name": .., "points": [[size, cost], ..]}, to which an exponent is fitted. Bars, and the floors that --check fails below, are in
bars.json beside this. All lines, with what they were measured on, are written to build/bench.json. --record-floors
sets the floors anew, to three quarters of what is seen now, so that they fail by faults rather than by chance, and
never beyond the bar. --again measures nothing, and takes what build/bench.json has.

Ratios are medians of rounds in which both sides are measured by turns, programs and their peers on one core; times are
only there to see what is large.
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys
import time

import _machine
import _report

HERE = os.path.dirname(os.path.abspath(__file__))
BARS = os.path.join(HERE, "bars.json")
RESULT = "build/bench.json"
SCRIPTS = ("serve", "memory")
SERVERS = ("discard",)  # programs that scripts measure
SPREAD = ("growth",) + SCRIPTS  # use all cores


def parts_of(build):
    """name: command of every benchmark."""
    programs = sorted(os.path.basename(path)[:-2] for path in glob.glob(os.path.join(HERE, "*.c")))
    parts = {name: [os.path.join(build, "bench-" + name)] for name in programs if name not in SERVERS}
    parts.update((name, ["/usr/bin/python3", os.path.join(HERE, name + ".py"), build]) for name in SCRIPTS)
    return parts


def pin():
    """To one core, and so the peer that a program starts: two would have two clocks, and neighbours of their own."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def run_part(name, command):
    """Its lines. What it has to say besides goes to standard error, which is ours."""
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, preexec_fn=None if name in SPREAD else pin)
    print(f"bench: {name} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line]
    if done.returncode != 0:
        print(f"bench: {name} ended with {done.returncode}", file=sys.stderr)
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
            return f"peer missing: {self.line['missing']}" if "missing" in self.line else "not measured"
        if self.bar is None:
            return ""
        if self.within(self.bar):
            return "met"
        return f"short: {self.share():.2f} of it"

    def share(self):
        """Of its bar: 1 is just met, more is better."""
        return self.bar / self.ratio if self.at_most else self.ratio / self.bar

    def falls_below(self):
        return self.floor is not None and self.ratio is not None and not self.within(self.floor)

    def is_lost(self):
        return self.ratio is None and "missing" not in self.line

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


HEAD = ["what", "name", "ratio", "bar", ""]


def table_of(cells):
    """Lines of text with columns of one width."""
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]


def sum_of(rows):
    barred = [row for row in rows if row.bar is not None]
    states = [row.state().split(":")[0] for row in barred]
    return f"{len(barred)} bars: {states.count('met')} met, {states.count('short')} short, " \
           f"{len(states) - states.count('met') - states.count('short')} not measured"


def exponent_of(points):
    """e of cost = c * size^e, by least squares of the logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x, mean_y = (sum(log[i] for log in logs) / len(logs) for i in (0, 1))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def growth_of(lines):
    """Cells of how costs grow: what, exponent, and the measured points."""
    return [[line["name"].replace("_", " "), f"{line['exponent']:.2f}",
             ", ".join(f"{x:g}: {y:.3g}" for x, y in line["points"])] for line in lines if "points" in line]


def show(head, rows, lines):
    print("\n".join(table_of([[name + ":", str(value)] for name, value in head.items()])) + "\n")
    print("\n".join(table_of([HEAD] + [row.cells() for row in rows])) + "\n")
    growth = growth_of(lines)
    if growth:
        print("\n".join(table_of([["how cost grows", "exponent", "size: ms (memory: MB)"]] + growth)) + "\n")
    print(sum_of(rows))


def fallen(rows):
    """Says which rows are below their floors, or were not measured though nothing is missing for them; how many."""
    below = [row for row in rows if row.falls_below()]
    for row in below:
        print(f"below its floor: {row.name} is {row.ratio:.4g}, floor {row.sign()} {row.floor:g}")
    lost = [row for row in rows if row.is_lost()]
    for row in lost:
        print(f"not measured: {row.name}")
    return len(below) + len(lost)


def record_floors(bars, rows):
    """Sizes in bytes do not vary: where they stand, their floor stays."""
    for row in rows:
        if row.ratio is not None and not row.name.endswith("_bytes"):
            floor = row.ratio / 0.75 if row.at_most else row.ratio * 0.75
            if row.bar is not None:
                floor = max(floor, row.bar) if row.at_most else min(floor, row.bar)
            bars.setdefault(row.name, {"what": row.name})["floor"] = float(f"{floor:.2g}")
    with open(BARS, "w", encoding="utf-8") as file:
        lines = (f"  {json.dumps(name)}: {json.dumps(bar)}" for name, bar in bars.items())
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


def measure(build, only):
    """What it was measured on, and all lines; both are kept."""
    head = _machine.describe()
    head["load at start"], began = _machine.load_average(), time.monotonic()
    parts = parts_of(build)
    lines = [line for name in parts if name in (only or parts) for line in run_part(name, parts[name])]
    for line in lines:
        if "points" in line:
            line["exponent"] = round(exponent_of(line["points"]), 3)
    head["load at end"], head["seconds"] = _machine.load_average(), round(time.monotonic() - began)
    with open(RESULT, "w", encoding="utf-8") as file:
        json.dump({"head": head, "lines": lines}, file, indent=1)
        file.write("\n")
    return head, lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--record-floors", action="store_true")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    with open(BARS, encoding="utf-8") as file:
        bars = json.load(file)
    only = options.only.replace(",", " ").split()
    if options.again:
        with open(RESULT, encoding="utf-8") as file:
            found = json.load(file)
        head, lines = found["head"], found["lines"]
    else:
        head, lines = measure(options.build, only)
    rows = rows_of(bars, lines, only)
    show(head, rows, lines)
    if options.record_floors:
        record_floors(bars, rows)
    if options.report:
        _report.write(head, [row.cells() for row in rows], growth_of(lines), sum_of(rows))
        _report.plot(rows, [line for line in lines if "points" in line])
    sys.exit(1 if options.check and fallen(rows) else 0)


if __name__ == "__main__":
    main()
