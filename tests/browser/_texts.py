# SPDX-License-Identifier: MIT
#
# Runs programs of Python and compares what they made with what the service sent: lines of JSON from standard input,
#
#     {"text": program, "names": [name or null], "wanted": [numbers, or JSON], "allowed": [number]}
#
# and for each a line of JSON: {"worst": largest difference, for each name} or {"fault": what went wrong}.
"""What the texts of the pages make, against what was drawn."""

import json
import sys
import traceback


def flat(value):
    """Numbers of a tensor, an array or lists, in a row."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return [number for part in value for number in flat(part)] if isinstance(value, list) else [float(value)]


def pairs(got, wanted):
    """(got, wanted) of all numbers of got; a dict is held against the same names of an object."""
    if isinstance(got, dict):
        return [pair for name, part in got.items() for pair in pairs(part, wanted[name])]
    numbers, all_wanted = flat(got), flat(wanted)
    if len(numbers) != len(all_wanted):
        raise ValueError(f"{len(numbers)} numbers for {len(all_wanted)}")
    return list(zip(numbers, all_wanted))


def worst_of(got, wanted, allowed):
    """The largest difference; a fault where it is more than allowed."""
    if allowed == 0 and isinstance(wanted, dict):  # JSON that was read is the same JSON, texts and all
        if got != wanted:
            raise ValueError(f"{got} for {wanted}")
        return 0.0
    worst = 0.0
    for number, right in pairs(got, wanted):
        gap = abs(number - right)
        if not gap <= allowed * max(1.0, abs(right)):
            raise ValueError(f"{number} for {right}, allowed is {allowed}")
        worst = max(worst, gap)
    return worst


def tried(case):
    """The differences of one program."""
    names = {}
    exec(compile(case["text"], "text", "exec"), names)  # what a reader does with it
    return [None if name is None else worst_of(names[name], *held)
            for name, held in zip(case["names"], zip(case["wanted"], case["allowed"]))]


for line in sys.stdin:
    try:
        print(json.dumps({"worst": tried(json.loads(line))}), flush=True)
    except Exception:  # a program of a reader may raise anything
        print(json.dumps({"fault": traceback.format_exc(limit=3)}), flush=True)
