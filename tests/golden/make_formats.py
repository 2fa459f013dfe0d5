#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files as other programs write them, for the tests of the readers: writes npy_files.h and safetensors_files.h.

npy files come from NumPy itself; safetensors files are put together here from the published layout. Run it in this
folder; the result is committed, so the tests need no Python. Needs python3-numpy.
"""
import io
import json
import struct

import numpy as np

HEAD = "/* SPDX-License-Identifier: MIT\n *\n * Made by make_formats.py: do not edit.\n */\n/* clang-format off */\n"
DTYPES = {"f8": "PE_DTYPE_F64", "f4": "PE_DTYPE_F32", "f2": "PE_DTYPE_F16"}


def literal(data):
    """Bytes as C string literals: printable as they are, the rest in three octal digits."""
    text = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data)
    lines, line = [], ""
    while text:
        step = 4 if text[0] == "\\" else 1
        line, text = line + text[:step], text[step:]
        if len(line) > 96 or not text:
            lines.append(f'     "{line}"')
            line = ""
    return "\n".join(lines) if lines else '     ""'


def numbers(values):
    return ", ".join(float(v).hex() for v in values) or "0"


def shape(dims):
    return "{" + ", ".join(str(d) for d in dims) + "}" if len(dims) else "{0}"


def npy_cases():
    six = np.array([[0, 1, -2], [0.5, -1024, 3.140625]])
    for descr in ("<f8", ">f8", "<f4", ">f4", "<f2", ">f2"):
        yield descr, six.astype(descr), (1, 0)
    edge = np.array([-0.0, 5e-324, 1.7976931348623157e308, 0.1])
    yield "<f8 edge", edge, (1, 0)
    yield ">f8 edge", edge.astype(">f8"), (1, 0)
    yield "<f4 edge", np.array([-0.0, 2.0**-149, 3.4028234663852886e38, 0.1], "<f4"), (1, 0)
    for kind, low, high in (("i", -1, 0), ("u", 0, 0)):
        for size in (1, 2, 4, 8):
            bits = min(8 * size - (kind == "i"), 53)
            values = [0, 1, 2, 2**bits - 1, low * (2**bits - 1) if kind == "i" else 7, 100]
            for order in "<>" if size > 1 else "|":
                yield f"{order}{kind}{size}", np.array(values).reshape(2, 3).astype(f"{order}{kind}{size}"), (1, 0)
    yield "i8 least", np.array([-2**63, 2**62, -2**53 - 2], "<i8"), (1, 0)
    yield "u8 large", np.array([2**63, 2**64 - 2048], ">u8"), (1, 0)
    yield "|b1", np.array([[True, False, True]]), (1, 0)
    for dims in ((), (3,), (2, 3), (2, 1, 3), (2, 1, 2, 2), (1, 2, 1, 2, 1, 1, 1, 2), (0,), (0, 3), (2, 0, 3)):
        count = int(np.prod(dims))
        yield f"rank {len(dims)}", np.arange(count, dtype="<f4").reshape(dims) - 1, (1, 0)
    for descr, dims in (("<f4", (2, 3)), ("<f8", (2, 3, 4)), (">f2", (3, 2)), ("<i2", (2, 3)), ("|b1", (2, 2)),
                        ("<f8", (0, 3)), ("<f4", (2, 2, 1, 3))):
        values = np.arange(int(np.prod(dims))).reshape(dims)
        yield f"{descr} fortran", np.asfortranarray((values % 2 if descr == "|b1" else values).astype(descr)), (1, 0)
    yield "version 2.0", six.astype("<f4"), (2, 0)
    yield "version 3.0", np.asfortranarray(six.astype("<f8")), (3, 0)


def make_npy():
    cases, arrays = [], []
    for i, (name, array, version) in enumerate(npy_cases()):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, version=version)
        data = buffer.getvalue()
        dtype = DTYPES.get(array.dtype.str[1:], "PE_DTYPE_F64")
        arrays.append(f"static const double npy_{i}[] = {{{numbers(array.ravel(order='C').tolist())}}};")
        cases.append(f'    {{"{name}", {len(data)},\n{literal(data)},\n'
                     f"     {dtype}, {array.ndim}, {shape(array.shape)}, npy_{i}}},")
    with open("npy_files.h", "w", encoding="ascii") as out:
        out.write(HEAD + "\n".join(arrays) + "\nstatic const struct npy_case npy_cases[] = {\n" + "\n".join(cases)
                  + "\n};\n/* clang-format on */\n")


def bfloat16(values):
    return b"".join(struct.pack("<f", v)[2:] for v in values)  # of values that bfloat16 holds exactly


PACK = {"F64": "<d", "F32": "<f", "F16": "<e", "I64": "<q", "I32": "<i", "I16": "<h", "I8": "<b", "U64": "<Q",
        "U32": "<I", "U16": "<H", "U8": "<B", "BOOL": "<?"}


def packed(dtype, values):
    if dtype == "BF16":
        return bfloat16(values)
    if dtype not in PACK:
        return bytes(values)
    return b"".join(struct.pack(PACK[dtype], v) for v in values)


def safetensors(tensors, metadata=None, order=None, pad=8, indent=None, ascii_names=False):
    """tensors: name, dtype, shape, values, in the order of the data; order: of the header."""
    data, entries = b"", {}
    for name, dtype, dims, values in tensors:
        block = packed(dtype, values)
        entries[name] = {"dtype": dtype, "shape": list(dims), "data_offsets": [len(data), len(data) + len(block)]}
        data += block
    header = {} if metadata is None else {"__metadata__": metadata}
    header.update({name: entries[name] for name in (order or entries)})
    text = json.dumps(header, indent=indent, ensure_ascii=ascii_names,
                      separators=None if indent else (",", ":")).encode()
    text += b" " * (-len(text) % pad)
    return struct.pack("<Q", len(text)) + text + data


def safetensors_files():
    every = [("d", "F64", (2, 2), [0.1, -0.0, 1e308, 5e-324]), ("l", "I64", (2,), [-2**53, 7]),
             ("ul", "U64", (1,), [2**53]), ("f", "F32", (3,), [0.5, -1.25, 2.0**-149]), ("i", "I32", (1,), [-2**31]),
             ("u", "U32", (1,), [2**32 - 1]), ("b", "BF16", (2,), [1.0, -3.140625]),
             ("h", "F16", (2, 1), [65504.0, -0.333251953125]), ("s", "I16", (1,), [-2**15]),
             ("us", "U16", (1,), [2**16 - 1]), ("c", "I8", (1,), [-128]), ("uc", "U8", (1,), [255]),
             ("m", "BOOL", (1, 3), [True, False, True]), ("e", "F8_E4M3", (3,), [1, 2, 3]),
             ("new", "F5_X", (4,), [9, 9])]
    yield "every dtype", every, safetensors(every, {"format": "pt", "by": "hand"})
    two = [("wte.weight", "F32", (2, 2), [1, 2, 3, 4]), ("wpe.weight", "F32", (3, 1), [-1, -2, -3])]
    yield "names sorted apart from the data", two, safetensors(two, order=["wpe.weight", "wte.weight"])
    yield "header not padded", two, safetensors(two, pad=1)
    yield "header with spaces", two, safetensors(two, {}, indent=1)
    names = [("\u00fc\u4f60\U0001f600", "F32", (1,), [1.5]), ('a"b\\c\n\t/', "F64", (), [2.5]), ("", "F16", (1, 1), [3])]
    yield "names in UTF-8", names, safetensors(names)
    yield "names escaped", names, safetensors(names, ascii_names=True)
    empty = [("none", "F32", (0, 4), []), ("one", "F32", (1,), [1]), ("nil", "F64", (2, 0, 3), []),
             ("nine", "F32", (1,) * 9, [1])]
    yield "empty tensors", empty, safetensors(empty)
    yield "no tensor", [], safetensors([])


def make_safetensors():
    tensors, files = [], []
    for i, (name, listed, data) in enumerate(safetensors_files()):
        rows = []
        for j, (key, dtype, dims, values) in enumerate(listed):
            tensors.append(f"static const double safetensors_{i}_{j}[] = {{{numbers(values)}}};")
            rows.append(f'    {{{literal(key.encode()).strip()}, "{dtype}", {len(dims)}, {shape(dims[:8])}, '
                        f"safetensors_{i}_{j}}},")
        tensors.append(f"static const struct safetensors_tensor safetensors_{i}[] = {{\n"
                       + "\n".join(rows or ["    {0}"]) + "\n};")
        files.append(f'    {{"{name}", {len(data)},\n{literal(data)},\n     {len(listed)}, safetensors_{i}}},')
    with open("safetensors_files.h", "w", encoding="ascii") as out:
        out.write(HEAD + "\n".join(tensors) + "\nstatic const struct safetensors_case safetensors_cases[] = {\n"
                  + "\n".join(files) + "\n};\n/* clang-format on */\n")


if __name__ == "__main__":
    make_npy()
    make_safetensors()
