#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Rules on the text of the C files: licence line, length, banned functions and constructs, test files that nobody
runs. Prints one line per fault and exits with 1; warnings (a file over 400 lines) do not count.
"""
import glob
import re
import sys

WARN_LINES, MAX_LINES = 400, 600
BANNED = {
    "sprintf": "use snprintf", "vsprintf": "use vsnprintf", "strcpy": "use memcpy with a checked size",
    "strcat": "use snprintf", "strtok": "keeps state: use strcspn", "gets": "cannot be used safely",
    "atoi": "reports no error: use strtol or the field parser", "atol": "reports no error", "atof": "reports no error",
    "rand": "hidden state: use Philox", "srand": "hidden state: use Philox", "setlocale": "global state",
    "localtime": "use localtime_r", "gmtime": "use gmtime_r", "alloca": "unbounded stack",
}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
FAST_MATH = re.compile(r"(-f|\b)(fast-math|unsafe-math)")


def strip(text):
    """The text with comments and string contents blanked, line breaks kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_file(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines = text.count("\n")
    if not text.startswith("/* SPDX-License-Identifier: MIT\n"):
        yield f"{path}:1: does not begin with `/* SPDX-License-Identifier: MIT`"
    elif not re.match(r"[^\n]*\n \*\n \* \S", text):
        yield f"{path}:1: has no design comment after the licence line"
    if lines > MAX_LINES:
        yield f"{path}: {lines} lines, at most {MAX_LINES} are allowed"
    elif lines > WARN_LINES:
        print(f"warning: {path}: {lines} lines, over {WARN_LINES}")
    for number, line in enumerate(strip(text).split("\n"), 1):
        match = CALL.search(line)
        if match:
            yield f"{path}:{number}: {match.group(1)}: {BANNED[match.group(1)]}"
        if FAST_MATH.search(line):
            yield f"{path}:{number}: fast-math changes the numbers"
        if "\t" in line:
            yield f"{path}:{number}: a tab"


def check_suites(paths):
    """Every tests/unit/check_<module>.c has its row in suites.h, and every row its file."""
    have = {match.group(1) for match in (re.match(r"tests/(?:unit|properties|faults)/check_(\w+)\.c$", p) for p in paths)
            if match}
    with open("tests/unit/suites.h", encoding="utf-8") as file:
        rows = set(re.findall(r"^\s*X\((\w+)\)", strip(file.read()), flags=re.M))
    for name in sorted(have - rows):
        yield f"tests/unit/suites.h: check_{name}.c has no row, so nobody runs it"
    for name in sorted(rows - have):
        yield f"tests/unit/suites.h: the row {name} has no file check_{name}.c"


def main():
    paths = sorted(path for top in ("lib", "server", "tests") for path in glob.glob(f"{top}/**/*.[ch]", recursive=True)
                   if "/node_modules/" not in path)
    faults = [fault for path in paths for fault in check_file(path)]
    faults += check_suites(paths)
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
