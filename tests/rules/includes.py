#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Who may include whom: the layers of the library and of the daemon, checked on every #include.

A file belongs to the first layer whose pattern matches its path. A layer may include the layers of its row and
nothing else of the project; outside headers with an owner may be included by their owners only; and the headers
form no circle. Every pattern is that of a file. Exits with 1 and one line per fault.
"""
import fnmatch
import glob
import os
import re
import sys

# (layer, patterns, layers it may include)
LIB = [
    ("public", ["lib/include/*"], ["public"]),
    ("row", ["lib/encodings/encoding.h"], ["public"]),
    ("registry", ["lib/encodings/registry.*"], ["public", "core", "row", "registry", "encodings"]),
    ("core", ["lib/core/*"], ["public", "core", "row"]),
    ("kernels", ["lib/kernels/*"], ["public", "core", "kernels"]),
    ("encodings", ["lib/encodings/*"], ["public", "core", "kernels", "row", "encodings"]),
    ("formats", ["lib/formats/*"], ["public", "core", "formats"]),
    ("ops", ["lib/ops/*"], ["public", "core", "kernels", "row", "registry", "ops"]),
]
# The daemon, bottom to top: each may include itself, everything below it, and the library's public headers.
SERVER = [
    ("base", ["server/service*", "server/budget*", "server/healthcheck*", "server/cpus*", "server/log*", "server/config*", "server/metrics*", "server/tables*",
              "server/digest*", "server/names*", "server/site*"]),
    ("wire", ["server/wire/*"]),
    ("api", ["server/api/*"]),
    ("call", ["server/call*", "server/routes*"]),
    ("pool", ["server/net/pool*"]),
    ("net", ["server/net/*"]),
    ("main", ["server/launch*", "server/main.c"]),
]
# Outside headers with an owner.
OWNED = {
    "microhttpd.h": ["server/net/http*.c"],
    "jansson.h": ["server/wire/bind*", "server/config*"],
    "cblas.h": ["lib/kernels/linalg.c"],
    "pthread.h": ["server/*"],
    "threads.h": [],
    "zlib.h": ["server/*"],
    "locale.h": [],
    "png.h": ["server/wire/picture.c"],
}
SEARCH = {"lib": ["lib/include", "lib"], "server": ["lib/include", "server"]}


def layer_table():
    table, below = list(LIB), ["public"]
    for name, patterns in SERVER:
        below = below + [name]
        table.append((name, patterns, below))
    return table


TABLE = layer_table()


def layer_of(path):
    for name, patterns, allowed in TABLE:
        if any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
            return name, allowed
    return None, []


def resolve(path, name):
    """The project's file that `#include "name"` in `path` means; None when it is an outside header."""
    for folder in [os.path.dirname(path)] + SEARCH[path.split("/")[0]]:
        candidate = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(candidate):
            return candidate
    return None


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def edge_fault(path, target):
    """Why `path` may not include `target`; None when it may."""
    layer, allowed = layer_of(path)
    target_layer, _ = layer_of(target)
    if target_layer not in allowed:
        return f"{layer} may not include {target_layer} ({target})"
    # One file, one encoding: rope.c may have rope.h or rope_scaling.h, but never alibi.h.
    if layer == target_layer == "encodings" and not stem(target).startswith(stem(path).split("_")[0]):
        return f"one encoding may not include another ({target})"
    return None


def owner_fault(path, name):
    owners = OWNED.get(os.path.basename(name))
    if owners is None or any(fnmatch.fnmatch(path, owner) for owner in owners):
        return None
    return f"<{name}> belongs to {', '.join(owners) or 'nobody'}"


def circles(graph):
    state, faults = {}, []

    def visit(node, trail):
        state[node] = "open"
        for target in graph.get(node, []):
            if state.get(target) == "open":
                loop = trail[trail.index(target):] if target in trail else [node]
                faults.append(f"{node}: a circle of includes: {' -> '.join(loop + [target])}")
            elif target not in state:
                visit(target, trail + [target])
        state[node] = "done"

    for node in sorted(graph):
        if node not in state:
            visit(node, [node])
    return faults


def stale(paths):
    """Patterns that no file has: left from one that is gone, or of one that never came."""
    patterns = [pattern for _, patterns, _ in TABLE for pattern in patterns]
    patterns += [owner for owners in OWNED.values() for owner in owners]
    return [f"tests/rules/includes.py: no file is {pattern}" for pattern in patterns if not fnmatch.filter(paths, pattern)]


def main():
    graph = {}
    paths = sorted(glob.glob("lib/**/*.[ch]", recursive=True) + glob.glob("server/**/*.[ch]", recursive=True))
    paths = [path for path in paths if "/node_modules/" not in path]
    faults = stale(paths)
    for path in paths:
        if layer_of(path)[0] is None:
            faults.append(f"{path}: belongs to no layer: name it in tests/rules/includes.py")
            continue
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for number, line in enumerate(lines, 1):
            match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if not match:
                continue
            target = resolve(path, match.group(2))
            fault = edge_fault(path, target) if target else owner_fault(path, match.group(2))
            if target is None and match.group(1) == '"' and fault is None:
                fault = f'no file "{match.group(2)}"'
            if target:
                graph.setdefault(path, []).append(target)
            if fault:
                faults.append(f"{path}:{number}: {fault}")
    faults += circles(graph)
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
