#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The shape of functions in lib and server: at most 3 levels of nesting, and 6 parameters beside the error and `...`.
One line per fault; exits with 1.

The text is as clang-format leaves it (lint's `format` sees to that), so an indent is a level: four spaces each, bodies
always in braces; bodies of macros are not looked at. An if in a case counts the switch and itself; an else if counts
once. What libmicrohttpd calls has the parameters that it says.
"""
import glob
import re
import sys

from text import strip

MAX_NESTING, MAX_PARAMETERS = 3, 6
CONTROL = re.compile(r"( +)(?:\} else |else\b)?(?:if|for|while|do|switch)\b")
HEAD = re.compile(r"^(?!typedef\b|struct \w+ \{|#)[A-Za-z_][^;{}=#]*\)[^;{}=()#]*(?:\([^()]*\)\s*)*[;{]", re.M)


def without_macros(text):
    """Directives blanked, with the lines they go on; line numbers stay."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.M)


def parameters(head):
    """How many a declaration or definition has but for error and `...`; their list is the first in parentheses."""
    head = re.sub(r"\b(NAMED|PE_PRINTF|__attribute__)\s*\([^()]*\)", "name", head)
    opened = head.find("(")
    depth, one, all_of_them = 0, "", []
    for letter in head[opened:]:
        depth += (letter == "(") - (letter == ")")
        if depth == 0 or (depth == 1 and letter == ","):
            all_of_them.append(one.strip("( \n"))
            one = ""
        if depth == 0:
            break
        one += letter if depth > 1 or letter != "," else ""
    return sum(text not in ("", "void", "...") and "struct pe_error *" not in text for text in all_of_them)


def faults(path):
    with open(path, encoding="utf-8") as file:
        text = without_macros(strip(file.read()))
    for match in HEAD.finditer(text):
        n = parameters(match.group(0))
        if n > MAX_PARAMETERS and "MHD_Result" not in match.group(0):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {n} parameters beside the error, at most {MAX_PARAMETERS} are allowed"
    for number, line in enumerate(text.split("\n"), 1):
        match = CONTROL.match(line)
        level = len(match.group(1)) // 4 if match else 0
        if level > MAX_NESTING:
            yield f"{path}:{number}: nesting {level}, at most {MAX_NESTING} is allowed"


def main():
    found = [fault for top in ("lib", "server") for path in sorted(glob.glob(f"{top}/**/*.[ch]", recursive=True))
             if "/node_modules/" not in path for fault in faults(path)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
