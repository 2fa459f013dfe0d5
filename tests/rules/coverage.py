#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the tests reached: coverage.py FOLDER, of a build with FLAVOUR=cov that tests were run with.

Fails when less than 95 % of the library's lines or 85 % of the daemon's were run, and when an error of the library
is made nowhere in the tests: every statement in lib/ that names a code (PE_ERR_...) has to be run. Those that were
not are listed, by code. Needs gcov, which comes with gcc.
"""
import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEAST = {"lib": 95.0, "server": 85.0}  # per cent of lines


def read_lines(folder):
    """{file: {line: times it was run}} of the library and the daemon."""
    notes = sorted(os.path.join(path, name) for half in LEAST for path, _, names in os.walk(os.path.join(folder, half))
                   for name in names if name.endswith(".gcno"))
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    printed = subprocess.run(["gcov", "--json-format", "--stdout", *notes], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout
    for unit in printed.splitlines():
        for file in json.loads(unit)["files"]:
            if file["file"].split(os.sep)[0] in LEAST:
                for line in file["lines"]:
                    lines[file["file"]][line["line_number"]] += line["count"]
    return lines


def statement_runs(runs, line):
    """How often the statement on a line was run: long ones are counted where they begin. None = no code."""
    known = [at for at in runs if line - 4 <= at <= line]
    return runs[max(known)] if known else None


def error_places(lines):
    """[(code, file, line, runs)] of the library's statements that name a code."""
    places = []
    for name in sorted(lines):
        if not name.startswith("lib" + os.sep):
            continue
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                for code in re.findall(r"\bPE_ERR_[A-Z]+(?:_[A-Z]+)*", text.split("/*")[0]):
                    runs = statement_runs(lines[name], number)
                    if runs is not None:
                        places.append((code, name, number, runs))
    return places


def all_codes():
    with open(os.path.join(ROOT, "lib", "include", "posenc_types.h"), encoding="utf-8") as file:
        names = re.findall(r"^    (PE_ERR_[A-Z_]+),", file.read(), re.M)
    return [name for name in names if name != "PE_ERR_COUNT"]


def check_lines(lines):
    """Prints the share of lines of each half; returns how many fell short."""
    short = 0
    for half, least in LEAST.items():
        runs = [times for name in lines if name.startswith(half + os.sep) for times in lines[name].values()]
        share = 100.0 * sum(times > 0 for times in runs) / max(len(runs), 1)
        short += share < least
        print(f"{half:8} {share:5.1f} % of {len(runs)} lines (at least {least:.0f} %)")
    return short


def check_errors(lines):
    """Prints which errors were made; returns how many places were not reached."""
    places = error_places(lines)
    missing = 0
    for code in all_codes():
        of_code = [place for place in places if place[0] == code]
        unreached = [place for place in of_code if place[3] == 0]
        print(f"{code:22} made in {len(of_code) - len(unreached)} of {len(of_code)} places")
        for _, name, number, _ in unreached:
            print(f"    never: {name}:{number}")
        missing += len(unreached) + (not of_code)
    return missing


def main():
    lines = read_lines(os.path.abspath(sys.argv[1]))
    short, missing = check_lines(lines), check_errors(lines)
    print(f"cov: {len(LEAST) - short} passed, {short + missing} failed; {missing} errors missing")
    return 1 if short or missing else 0


sys.exit(main())
