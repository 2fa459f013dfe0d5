# SPDX-License-Identifier: MIT
"""What figures were measured on: the machine, the compiler and the versions of what we are held against. Whatever is
not there is "none".
"""
import ctypes
import glob
import os
import platform
import re
import subprocess

INSTRUCTIONS = ("sse4_1", "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi", "asimd")


def output_of(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        return done.stdout.strip()
    except OSError:
        return ""


def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def found(pattern, text):
    match = re.search(pattern, text, re.M)
    return match.group(1).strip() if match else "none"


def instructions():
    flags = found(r"^(?:flags|Features)\s*:(.*)", text_of("/proc/cpuinfo")).split()
    return " ".join(name for name in INSTRUCTIONS if name in flags) or "none"


def library(pattern, *functions):
    """What functions without arguments of a shared library say of themselves, or none."""
    try:
        loaded = ctypes.CDLL((glob.glob(pattern) or [pattern])[0])
    except OSError:
        return "none"
    said = []
    for name in functions:
        function = getattr(loaded, name)
        function.restype = ctypes.c_char_p
        said.append(function().decode())
    return ", ".join(said)


def python_modules(*names):
    """In a process of its own, as some take seconds and settle threads when they are loaded."""
    script = "import importlib, sys\nfor name in sys.argv[1:]:\n try: print(name, importlib.import_module(name)" \
             ".__version__)\n except Exception: print(name, 'none')"
    said = output_of("/usr/bin/python3", "-c", script, *names)
    return {name: found(rf"^{name} (.*)", said) for name in names}


def load_average():
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def describe():
    """The head of the table, as name: value, in order."""
    path = os.environ.get("PATH", "")
    nginx = subprocess.run(["sh", "-c", "nginx -v 2>&1"], env={"PATH": path + ":/usr/sbin"}, stdout=subprocess.PIPE,
                           text=True).stdout
    memory = int(found(r"^MemTotal:\s*(\d+)", text_of("/proc/meminfo")).replace("none", "0"))
    versions = python_modules("torch", "numpy", "fastapi", "uvicorn", "uvloop", "httptools", "ujson", "pydantic")
    return {
        "machine": f"{found('^model name.*:(.*)', text_of('/proc/cpuinfo'))}, {len(os.sched_getaffinity(0))} cores, "
                   f"{memory / 2 ** 20:.1f} GiB",
        "instructions": instructions(),
        "kernel": platform.release(),
        "compiler": (output_of("cc", "--version").split("\n") or ["none"])[0],
        "python": platform.python_version(),
        **versions,
        "openblas": library("/usr/lib/*/openblas-pthread/libopenblas.so.0", "openblas_get_config")
        .replace("OpenBLAS ", ""),
        "openblas core": library("/usr/lib/*/openblas-pthread/libopenblas.so.0", "openblas_get_corename"),
        "jansson": library("libjansson.so.4", "jansson_version_str"),
        "simdjson": found(r'define SIMDJSON_VERSION "?([0-9.]+)', text_of("/usr/include/simdjson.h")),
        "nginx": found(r"nginx/(\S+)", nginx),
    }
