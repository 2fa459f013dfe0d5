#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Rules on the symbols of the built objects, which no macro can hide from: symbols.py BUILD-FOLDER.

The shared library exports what the public headers declare with PE_API, neither less nor more; every other global
name of the library begins with pe_ too; the library calls no HTTP, JSON, thread or BLAS function but where it is
allowed to; nothing calls a banned function. Every pattern of an owner is that of an object. Exits with 1 and one line
per fault.
"""
import fnmatch
import glob
import os
import re
import subprocess
import sys

PUBLIC = ["lib/include/posenc.h", "lib/include/posenc_types.h", "lib/include/posenc_block.h",
          "lib/include/posenc_formats.h", "lib/include/posenc_fields.h",
          "lib/include/posenc_identify.h", "lib/include/posenc_admits.h"]
# (undefined symbol, objects that may have it)
OWNED = [
    ("json_*", ["server/wire/bind*", "server/config*"]),
    ("MHD_*", ["server/net/http*"]),
    ("cblas_*", ["lib/kernels/linalg.o"]),
    ("openblas_*", ["lib/kernels/linalg.o"]),
    ("pthread_*", ["server/*"]),
    ("sprintf", []), ("vsprintf", []), ("strcpy", []), ("strcat", []), ("strtok", []), ("gets", []),
    ("rand", []), ("srand", []), ("setlocale", []), ("localtime", []), ("gmtime", []),
]


def nm(path, *options):
    out = subprocess.run(["nm", *options, path], capture_output=True, text=True, check=True).stdout
    return [tuple(line.split()[-2:]) for line in out.split("\n") if len(line.split()) >= 2]


def sections(path):
    """(symbol, section) of all data in an object."""
    out = subprocess.run(["nm", "-f", "sysv", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    for line in out.split("\n"):
        column = [text.strip() for text in line.split("|")]
        if len(column) == 7 and column[2] in "BbDdC":
            yield column[0], column[6]


def declared():
    names = set()
    for path in PUBLIC:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        text = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
        for statement in re.findall(r"\bPE_API\b([^;]*);", text):
            match = re.search(r"\b(pe_\w+)\s*[(\[]", statement) or re.search(r"\b(pe_\w+)\s*$", statement)
            if match:
                names.add(match.group(1))
    return names


def main():
    build = sys.argv[1]
    if not os.path.exists(f"{build}/libposenc.so"):
        sys.exit(f"{build}/libposenc.so was not built")
    faults = []
    exported = {name for kind, name in nm(f"{build}/libposenc.so", "-D", "--defined-only") if kind.upper() != "A"}
    want = declared()
    faults += [f"libposenc.so exports {name}, which no public header declares" for name in sorted(exported - want)]
    faults += [f"{name} is declared, but libposenc.so does not export it" for name in sorted(want - exported)]
    paths = sorted(glob.glob(f"{build}/lib/*/*.o") + glob.glob(f"{build}/server/**/*.o", recursive=True))
    names = [os.path.relpath(path, build) for path in paths]
    faults += [f"tests/rules/symbols.py: no object is {owner}"
               for _, owners in OWNED for owner in owners if not fnmatch.filter(names, owner)]
    for path, name in zip(paths, names):
        if not os.path.exists(os.path.splitext(name)[0] + ".c"):
            continue  # left from a file that is gone
        for kind, symbol in nm(path):
            if kind == "U":
                for pattern, owners in OWNED:
                    if fnmatch.fnmatch(symbol, pattern) and not any(fnmatch.fnmatch(name, o) for o in owners):
                        faults.append(f"{name}: {symbol} may be used by {', '.join(owners) or 'nobody'} only")
            elif kind in "TDBRC" and name.startswith("lib/") and not symbol.startswith("pe_"):
                faults.append(f"{name}: the global name {symbol} does not begin with pe_")
        # Tables of pointers are const, too: the loader fills them in and makes them read-only.
        faults += [f"{name}: {symbol} is data that can change: the library has const tables only"
                   for symbol, section in sections(path)
                   if name.startswith("lib/") and not section.startswith(".data.rel.ro")]
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
