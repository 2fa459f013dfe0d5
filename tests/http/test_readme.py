"""The README's examples give the replies written beside them: test_readme.py DAEMON.

Each ```sh block is run by a shell as it stands, but for the port; the ```json block after it, where there is one, is
what must come back: every member it names, numbers to their last digit, as the values of the examples have the same bits
on every machine. `...` stands for members that are left out. The error of float32 code that its first lines tell is
measured here, and its program in C is compiled.
"""
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon  # noqa: E402

README = pathlib.Path(__file__).parents[2] / "README.md"
EXAMPLES = 25
FILES = {"y.npy": (0.5, 0, 2, 1.25, 1.841471, 0.5403023, -0.49000016, 4.99995),
         "q_rot.npy": (1, 2, 3, 4, -1.9841106, 1.9599006, 2.4623778, 4.0197997)}  # published: -1.984111, 1.959901 ...
STREAM_BYTES = 2048000128  # 1,000,000 x 512 float32 and an npy header of 128 bytes


def blocks():
    """(command, expected reply or None) of each example."""
    text = README.read_text()
    for match in re.finditer(r"```sh\n(.*?)```\n(?:```json\n(.*?)```)?", text, re.S):
        yield match.group(1).strip(), match.group(2)


def expected(text):
    return json.loads(re.sub(r"\.\.\.", '"...": 0', text))


def differences(want, got, path=""):
    """Where `got` is not as wanted: a list of sentences."""
    if isinstance(want, dict) and isinstance(got, dict):
        partial = "..." in want
        names = [name for name in want if name != "..."]
        found = [] if partial else [f"{path}.{name} is not expected" for name in got if name not in want]
        for name in names:
            found += [f"{path}.{name} is missing"] if name not in got else differences(want[name], got[name], f"{path}.{name}")
        return found
    if isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            return [f"{path} has {len(got)} items, expected {len(want)}"]
        return [d for i, (w, g) in enumerate(zip(want, got)) for d in differences(w, g, f"{path}[{i}]")]
    if isinstance(want, (int, float)) and not isinstance(want, bool) and isinstance(got, (int, float)):
        return [] if want == got else [f"{path} is {got}, expected {want}"]
    return [] if want == got else [f"{path} is {got!r}, expected {want!r}"]


def write_npy(path, shape, *numbers):
    """Eight float32 as numpy would write them."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    values = struct.pack("<8f", *numbers)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)


def run(command, port, folder):
    command = command.replace("localhost:8080", f"127.0.0.1:{port}")
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr.decode()[:200]}")
    return done.stdout


def check(command, reply, port, folder, sanitized):
    if "-o pe.npy" in command:
        rows = 20000 if sanitized else 1000000
        command = command.replace("1000000", str(rows)).replace("-o pe.npy", "-o /dev/null -w '%{size_download}'")
        want = (STREAM_BYTES - 128) // 1000000 * rows + 128
        return [] if int(run(command, port, folder)) == want else ["the stream has the wrong size"]
    output = run(command, port, folder)
    if "-o pe.png" in command:
        size = struct.unpack(">II", (folder / "pe.png").read_bytes()[16:24])
        return [] if size == (1024, 512) else [f"the picture has {size} pixels"]
    for name, want in FILES.items():
        if f"-o {name}" in command:
            values = struct.unpack("<8f", (folder / name).read_bytes()[-32:])
            return [] if values == struct.unpack("<8f", struct.pack("<8f", *want)) else [f"{name} holds {values}"]
    return differences(expected(reply), json.loads(output))


def error(daemon, position, d, base, arithmetic):
    """The largest error of a vector."""
    _, _, body = daemon.get(f"/v1/encode?type=sinusoidal&d_model={d}&base={base}&positions={position}&arithmetic={arithmetic}&format=raw")
    got = struct.unpack(f"<{d}f", body)
    angles = [position * base ** (-i / d) for i in range(0, d, 2)]
    return max(max(abs(s - math.sin(x)), abs(c - math.cos(x))) for s, c, x in zip(got[::2], got[1::2], angles))


def check_figure(daemon):
    """The sentence about float32 code, told with what its replay gives."""
    found = re.search(r"width\s+(\d+),\s+base\s+(\d+)\)\s+is\s+off\s+by\s+([0-9.]+)\s+at\s+position\s+([0-9,]+)", README.read_text())
    if not found:
        return ["the README does not say how far float32 code is off"]
    d, base, position = int(found[1]), int(found[2]), int(found[4].replace(",", ""))
    theirs, ours = (error(daemon, position, d, base, a) for a in ("float32_exp", "exact"))
    if f"{theirs:.3f}" != found[3] or ours > 2.0 ** -25 + 1e-9:
        return [f"float32 code is off by {theirs:.3g}, the README says {found[3]}; ours is off by {ours:.3g}"]
    return []


def check_program(folder):
    """The program in C compiles as it stands, against the headers of the tree."""
    programs = re.findall(r"```c\n(.*?)```", README.read_text(), re.S)
    if len(programs) != 1:
        return [f"the README has {len(programs)} programs in C, not 1"]
    (folder / "prog.c").write_text(programs[0])
    made = subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                           README.parent / "lib/include", folder / "prog.c"], capture_output=True, text=True)
    return made.stderr.splitlines()[:5]


def main():
    passed = failed = 0
    sanitized = "/release/" not in sys.argv[1]
    with tempfile.TemporaryDirectory() as name, Daemon(sys.argv[1]) as daemon:
        folder = pathlib.Path(name)
        write_npy(folder / "x.npy", (2, 4), 0.5, -1, 2, 0.25, 1, 0, -0.5, 4)
        write_npy(folder / "q.npy", (1, 2, 1, 4), 1, 2, 3, 4, 1, 2, 3, 4)
        examples = list(blocks())
        for command, reply in examples:
            try:
                found = check(command, reply, daemon.port, folder, sanitized)
            except (AssertionError, ValueError) as error:
                found = [str(error)]
            passed += not found
            failed += bool(found)
            for sentence in found[:5]:
                print(f"FAIL {command[:70]}: {sentence}")
        for what, found in (("the error of float32 code", check_figure(daemon)), ("C", check_program(folder))):
            passed += not found
            failed += bool(found)
            for sentence in found:
                print(f"FAIL {what}: {sentence}")
        if len(examples) != EXAMPLES:
            failed += 1
            print(f"FAIL the README has {len(examples)} examples, not {EXAMPLES}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
