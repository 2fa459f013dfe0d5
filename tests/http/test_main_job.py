#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The main job from outside: vectors, encoded embeddings and attention weights, in every format, and always the same
bytes: test_main_job.py DAEMON [TEST...].

Expected numbers are published examples, or the paper's formula in Python's doubles, rounded here; files are put
together by struct from their published layouts, and where /usr/bin/python3 has numpy, by numpy too.
"""
import gzip
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _daemon import Daemon, NotTried, run_tests  # noqa: E402

PATH = sys.argv[1]
SANITIZED = any(flavour in PATH for flavour in ("asan", "tsan", "cov"))
CODES = {"float64": "d", "float32": "f", "float16": "e"}
SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
NPY = {"Content-Type": "application/x-npy"}
RAW = {"Content-Type": "application/octet-stream"}
SAFETENSORS = {"Content-Type": "application/x-safetensors"}


# ---- numbers --------------------------------------------------------------------------------------------------------

def narrow(x, dtype):
    """x rounded to a type, as a double."""
    return struct.unpack("<" + CODES[dtype], struct.pack("<" + CODES[dtype], x))[0]


def paper(p, d):
    """The vector of position p by Vaswani et al. 2017, in doubles."""
    angles = [p * 10000 ** (-2 * (c // 2) / d) for c in range(d)]
    return [math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)]


def added(x, p, dtype):
    """A row x with the vector of position p: each step rounded in float32, or all in float64."""
    if dtype == "float64":
        return [a + b for a, b in zip(x, paper(p, len(x)))]
    return [narrow(narrow(a + narrow(b, "float32"), "float32"), dtype) for a, b in zip(x, paper(p, len(x)))]


def sixty_fourths(n, seed):
    """n numbers that every type holds exactly."""
    draw = random.Random(seed)
    return [draw.randint(-512, 512) / 64 for _ in range(n)]


def product(shape):
    return math.prod(shape)


def close(got, want, tolerance):
    assert len(got) == len(want), (len(got), len(want))
    worst = max((abs(a - b) for a, b in zip(got, want)), default=0)
    assert worst <= tolerance, (worst, got[:8], want[:8])


def flatten(data):
    return [x for item in data for x in flatten(item)] if isinstance(data, list) else [data]


# ---- files ----------------------------------------------------------------------------------------------------------

def fortran(values, shape):
    """Values of C order in the order of Fortran: first axis fastest."""
    out = []
    for k in range(len(values)):
        index, rest = 0, k
        for axis, n in enumerate(shape):
            rest, i = divmod(rest, n)
            index += i * product(shape[axis + 1:])
        out.append(values[index])
    return out


def npy_write(values, shape, dtype="float32", byte_order="<", fortran_order=False, version=(1, 0)):
    code, size = CODES[dtype], SIZES[dtype]
    dims = ", ".join(str(n) for n in shape) + ("," if len(shape) == 1 else "")
    head = f"{{'descr': '{byte_order}f{size}', 'fortran_order': {fortran_order}, 'shape': ({dims}), }}"
    length = 2 if version == (1, 0) else 4
    head += " " * (-(8 + length + len(head) + 1) % 64) + "\n"
    data = fortran(values, shape) if fortran_order else values
    start = b"\x93NUMPY" + bytes(version) + struct.pack("<H" if length == 2 else "<I", len(head))
    return start + head.encode() + struct.pack(f"{byte_order}{len(data)}{code}", *data)


def npy_read(data):
    """(values, shape, dtype) of a file as the daemon writes it: version 1.0, little-endian, C order."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length = struct.unpack("<H", data[8:10])[0]
    assert (10 + length) % 64 == 0 and data[9 + length:10 + length] == b"\n"
    head = eval(data[10:10 + length], {"__builtins__": {}})  # a dict of constants, from our own daemon
    assert set(head) == {"descr", "fortran_order", "shape"} and head["fortran_order"] is False, head
    dtype = {"<f8": "float64", "<f4": "float32", "<f2": "float16"}[head["descr"]]
    n = product(head["shape"])
    assert len(data) == 10 + length + n * SIZES[dtype]
    return list(struct.unpack(f"<{n}{CODES[dtype]}", data[10 + length:])), list(head["shape"]), dtype


def safetensors_write(tensors):
    """From {name: (safetensors' type, shape, bytes)}."""
    head, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def safetensors_read(data):
    """{name: (safetensors' type, shape, bytes)}."""
    length = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + length])
    head.pop("__metadata__", None)
    body = data[8 + length:]
    assert max((t["data_offsets"][1] for t in head.values()), default=0) == len(body)
    return {name: (t["dtype"], t["shape"], body[t["data_offsets"][0]:t["data_offsets"][1]]) for name, t in head.items()}


# ---- asking ---------------------------------------------------------------------------------------------------------

def good(reply):
    status, headers, body = reply
    assert status == 200, (status, body[:500])
    return headers, body


def good_json(reply):
    headers, body = good(reply)
    assert headers["Content-Type"] == "application/json", headers["Content-Type"]
    return json.loads(body)


def numbers(item, shape, dtype="float32"):
    """Those of a tensor in JSON, each the number of that type which the text stands for."""
    assert item["shape"] == shape and item["dtype"] == dtype, item
    return [narrow(x, dtype) for x in flatten(item["data"])]


def curl(daemon, *arguments):
    """What curl itself prints for a command of the documentation, at this daemon's port."""
    command = ["curl", "-sS", "--max-time", "60", *(a.replace("localhost:8080", f"127.0.0.1:{daemon.port}") for a in arguments)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr, (command, done)
    return done.stdout


# ---- the stated examples --------------------------------------------------------------------------------------------

APPLY = '{"encoding":{"type":"sinusoidal"},"embeddings":[[0.5,-1,2,0.25],[1,0,-0.5,4]]}'
ATTEND = '{"q":[[1,0],[0,1]],"k":[[1,0],[0,1]],"bias":[[0,-1],[0.5,0]]}'
PRODUCTS = '{"q":[[1,0],[0,1]],"k":[[1,0],[0,1]]}'


def test_examples_by_curl():
    with Daemon(PATH) as daemon:
        reply = json.loads(curl(daemon, "localhost:8080/v1/encode?type=sinusoidal&d_model=6&positions=0:4"))
        assert reply["encoding"] == {
            "type": "sinusoidal", "d_model": 6, "base": 10000.0, "layout": "interleaved", "order": "sin_cos",
            "denominator": "half", "odd": "truncate", "position_scale": 1.0, "offset": 0.0,
            "arithmetic": "exact"}, reply["encoding"]
        rows = numbers(reply["vectors"], [4, 6])
        close(rows, [narrow(v, "float32") for p in range(4) for v in paper(p, 6)], 0)
        close(rows[18:], [.141120, -.989992, .138798, .990321, .006463, .999979], 6e-7)  # keras-hub's test

        reply = json.loads(curl(daemon, "localhost:8080/v1/apply", "-d", APPLY))
        want = [.5, 0, 2, 1.25, 1.84147096, .540302277, -.490000159, 4.99994993]
        close(numbers(reply["embeddings"], [2, 4]), [narrow(v, "float32") for v in want], 0)

        reply = json.loads(curl(daemon, "localhost:8080/v1/attention", "-d", ATTEND))
        close(numbers(reply["weights"], [2, 2]), [.84646064, .15353936, .44840759, .55159241], 6e-8)
        reply = json.loads(curl(daemon, "localhost:8080/v1/attention", "-d", PRODUCTS))
        close(numbers(reply["weights"], [2, 2]), [.66976155, .33023845, .33023845, .66976155], 6e-8)

        reply = json.loads(curl(daemon, "-g", "localhost:8080/v1/positions?mask=[[0,0,1,1,1],[1,1,1,0,0]]&rule=opt"))
        assert reply["positions"]["data"] == [[1, 1, 2, 3, 4], [2, 3, 4, 1, 1]]
        reply = json.loads(curl(daemon, "localhost:8080/v1/shift?type=sinusoidal&d_model=4&distance=1"))
        close(flatten(reply["blocks"]["data"]),
              [math.cos(1), math.sin(1), -math.sin(1), math.cos(1), math.cos(.01), math.sin(.01), -math.sin(.01), math.cos(.01)],
              1e-15)


def test_npy_by_curl():
    """curl reads and writes the files, as in the documentation."""
    with Daemon(PATH) as daemon, tempfile.TemporaryDirectory() as folder:
        x = sixty_fourths(2 * 5 * 16, 1)
        pathlib.Path(folder, "x.npy").write_bytes(npy_write(x, (2, 5, 16)))
        curl(daemon, "localhost:8080/v1/apply?type=sinusoidal", "-H", "Content-Type: application/x-npy",
             "--data-binary", f"@{folder}/x.npy", "-o", f"{folder}/y.npy")
        values, shape, dtype = npy_read(pathlib.Path(folder, "y.npy").read_bytes())
        assert shape == [2, 5, 16] and dtype == "float32"
        assert values == [v for row in range(10) for v in added(x[16 * row:16 * row + 16], row % 5, "float32")]
        curl(daemon, "localhost:8080/v1/encode?type=sinusoidal&d_model=64&positions=0:2000&format=npy", "-o", f"{folder}/pe.npy")
        values, shape, _ = npy_read(pathlib.Path(folder, "pe.npy").read_bytes())
        assert shape == [2000, 64]
        close(values[-64:], paper(1999, 64), 3e-8)


def test_batch_of_operations():
    """Each entry has the body that it would have alone, in its place, whatever becomes of the others."""
    requests = [
        ("encode", {"encoding": {"type": "sinusoidal", "d_model": 6}, "positions": "0:4"}),
        ("apply", json.loads(APPLY)),
        ("attention", json.loads(ATTEND)),
        ("encode", {"encoding": {"type": "sinusoidal", "d_model": 6, "base": 0}, "positions": [1]}),
        ("shift", {"encoding": {"type": "sinusoidal", "d_model": 4}, "distance": 3}),
        ("positions", {"lengths": [3, 1, 2]}),
    ]
    with Daemon(PATH, "--workers", "3") as daemon:
        reply = good_json(daemon.post("/v1/batch", {"requests": [dict(body, op=op) for op, body in requests * 5]}))
        assert len(reply["responses"]) == 30
        for (op, body), response in zip(requests * 5, reply["responses"]):
            status, _, alone = daemon.post("/v1/" + op, body)
            alone = json.loads(alone)
            alone.pop("request_id", None)
            response["body"].pop("request_id", None)
            assert response["status"] == status and response["body"] == alone, (op, response, alone)


# ---- formats --------------------------------------------------------------------------------------------------------

def test_npy_in_every_form():
    """float64, float32 and float16, in both byte orders and both orders of axes, versions 1.0 to 3.0, ranks 2 and 3."""
    with Daemon(PATH) as daemon:
        for dtype in CODES:
            for shape in ((5, 6), (2, 5, 16), (3, 1, 1)):
                x = sixty_fourths(product(shape), 7)
                width, length = shape[-1], shape[-2]
                want = [v for row in range(product(shape[:-1]))
                        for v in added(x[width * row:width * row + width], row % length, dtype)]
                for byte_order in "<>":
                    for fortran_order in (False, True):
                        for version in ((1, 0), (2, 0), (3, 0)):
                            body = npy_write(x, shape, dtype, byte_order, fortran_order, version)
                            headers, reply = good(daemon.post("/v1/apply?type=sinusoidal", body, NPY))
                            assert headers["Content-Type"] == "application/x-npy"
                            assert json.loads(headers["X-Posenc-Encoding"])["d_model"] == width
                            got, got_shape, got_dtype = npy_read(reply)
                            assert got_shape == list(shape) and got_dtype == dtype
                            close(got, want, 4e-15 if dtype == "float64" else 0)


def test_npy_to_other_types():
    """What is asked for wins over what was posted; the sum is rounded once more, from float32."""
    with Daemon(PATH) as daemon:
        x = sixty_fourths(12, 3)
        body = npy_write(x, (2, 6), "float64", ">", True)
        for dtype in CODES:
            got, _, got_dtype = npy_read(good(daemon.post(f"/v1/apply?type=sinusoidal&dtype={dtype}", body, NPY))[1])
            assert got_dtype == dtype
            close(got, [v for p in range(2) for v in added(x[6 * p:6 * p + 6], p, dtype)], 4e-15 if dtype == "float64" else 0)
        reply = good_json(daemon.post("/v1/apply?type=sinusoidal&format=json&dtype=float32", body, NPY))
        close(numbers(reply["embeddings"], [2, 6]),
              [v for p in range(2) for v in added(x[6 * p:6 * p + 6], p, "float32")], 0)


def test_numpy_itself():
    try:
        import io
        import numpy as np
    except ImportError:
        raise NotTried("there is no numpy") from None

    def saved(array):
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    def ask(daemon, target, array):
        return np.load(io.BytesIO(good(daemon.post(target, saved(array), NPY))[1]))

    with Daemon(PATH) as daemon:
        x = np.random.default_rng(0).standard_normal((2, 5, 16))
        angle = np.arange(5)[:, None] / 10000 ** (np.arange(0, 16, 2) / 16)
        pe = np.empty((5, 16))
        pe[:, 0::2], pe[:, 1::2] = np.sin(angle), np.cos(angle)
        for dtype in ("<f8", "<f4", "<f2", ">f8", ">f4", ">f2"):
            for array in (x.astype(dtype), np.asfortranarray(x.astype(dtype)), x.astype(dtype)[:, ::-1][:, ::-1]):
                y = ask(daemon, "/v1/apply?type=sinusoidal", array)
                if dtype[1:] == "f8":
                    assert y.dtype == np.float64 and np.abs(y - (x + pe)).max() < 4e-15
                else:
                    want = (array.astype(np.float32) + pe.astype(np.float32)).astype(dtype[1:])
                    assert y.dtype == np.dtype(dtype[1:]) and y.shape == x.shape and (y == want).all(), dtype
        for kind in ("i1", "u2", "<i4", ">i8", "?"):  # whole numbers count as doubles
            y = ask(daemon, "/v1/apply?type=none", np.array([[0, 1, 1], [1, 0, 1]], kind))
            assert y.dtype == np.float64 and (y == [[0, 1, 1], [1, 0, 1]]).all()
        pe = np.load(io.BytesIO(good(daemon.get("/v1/encode?type=sinusoidal&d_model=512&positions=0:1000&format=npy"))[1]))
        angle = np.arange(1000)[:, None] / 10000 ** (np.arange(0, 512, 2) / 512)
        assert pe.shape == (1000, 512) and pe.dtype == np.float32
        assert np.abs(pe[:, 0::2] - np.sin(angle)).max() < 3.1e-8 and np.abs(pe[:, 1::2] - np.cos(angle)).max() < 3.1e-8


def test_raw_round_trip():
    with Daemon(PATH) as daemon:
        for dtype, size in SIZES.items():
            data = bytes(random.Random(5).randrange(0, 64) for _ in range(24 * size))  # finite whatever it stands for
            for target, headers in (("shape=2,3,4&body_dtype=" + dtype, RAW),
                                    ("", dict(RAW, **{"X-Posenc-Shape": "2,3,4", "X-Posenc-Dtype": dtype}))):
                got, body = good(daemon.post("/v1/apply?type=none&" + target, data, headers))
                assert body == data, dtype
                assert got["Content-Type"] == "application/octet-stream"
                assert got["X-Posenc-Shape"] == "2,3,4" and got["X-Posenc-Dtype"] == dtype, got.items()
        x = sixty_fourths(12, 9)
        _, body = good(daemon.post("/v1/apply?type=sinusoidal&shape=2,6", struct.pack("<12f", *x), RAW))
        assert list(struct.unpack("<12f", body)) == [v for p in range(2) for v in added(x[6 * p:6 * p + 6], p, "float32")]
        # a bfloat16 is the upper half of a float32
        _, body = good(daemon.get("/v1/encode?type=sinusoidal&d_model=6&positions=0:9&format=raw&dtype=bfloat16"))
        for c, bits in enumerate(struct.unpack("<54H", body)):
            value, true = struct.unpack("<f", struct.pack("<I", bits << 16))[0], paper(c // 6, 6)[c % 6]
            assert abs(value - true) <= 2.0 ** (math.frexp(true)[1] - 9) if true else value == 0


def test_safetensors_round_trip():
    with Daemon(PATH) as daemon:
        x = sixty_fourths(2 * 3 * 4, 2)
        positions = [0, 1, 2, 7, 5, 6]
        file = safetensors_write({"embeddings": ("F32", (2, 3, 4), struct.pack("<24f", *x)),
                                  "positions": ("I64", (2, 3), struct.pack("<6q", *positions))})
        headers, body = good(daemon.post("/v1/apply?type=sinusoidal", file, SAFETENSORS))
        assert headers["Content-Type"] == "application/x-safetensors"
        dtype, shape, data = safetensors_read(body)["embeddings"]
        assert dtype == "F32" and shape == [2, 3, 4]
        assert list(struct.unpack("<24f", data)) == [
            v for row in range(6) for v in added(x[4 * row:4 * row + 4], positions[row], "float32")]
        for code, name in (("F64", "float64"), ("F16", "float16"), ("BF16", "bfloat16")):
            data = bytes(random.Random(6).randrange(0, 64) for _ in range(8 * SIZES[name]))
            _, body = good(daemon.post("/v1/apply?type=none", safetensors_write({"embeddings": (code, (2, 4), data)}), SAFETENSORS))
            assert safetensors_read(body) == {"embeddings": (code, [2, 4], data)}
        # two tensors in, several out; the same numbers as in JSON
        q, k = sixty_fourths(8, 11), sixty_fourths(12, 12)
        file = safetensors_write({"q": ("F64", (2, 4), struct.pack("<8d", *q)), "k": ("F64", (3, 4), struct.pack("<12d", *k))})
        _, body = good(daemon.post("/v1/attention?return=weights,logits&mask=causal", file, SAFETENSORS))
        got = safetensors_read(body)
        document = {"q": [q[:4], q[4:]], "k": [k[:4], k[4:8], k[8:]], "mask": "causal", "return": ["weights", "logits"]}
        reply = good_json(daemon.post("/v1/attention?dtype=float64", document))
        for name in ("weights", "logits"):
            assert got[name][:2] == ("F64", [2, 3])
            assert list(struct.unpack("<6d", got[name][2])) == flatten(reply[name]["data"])
        logits = flatten(reply["logits"]["data"])
        close(logits, [sum(a * b for a, b in zip(q[4 * i:4 * i + 4], k[4 * j:4 * j + 4])) / 2 for i in range(2) for j in range(3)], 1e-13)
        for i in range(2):  # query i stands at i + 1 among the keys
            parts = [math.exp(v) if j <= i + 1 else 0 for j, v in enumerate(logits[3 * i:3 * i + 3])]
            close(flatten(reply["weights"]["data"])[3 * i:3 * i + 3], [v / sum(parts) for v in parts], 1e-14)


def test_json_round_trip():
    """The numbers of a JSON reply, posted again, are the same numbers: nested, flat and with a shape."""
    with Daemon(PATH) as daemon:
        for dtype in ("float32", "float64"):
            reply = good_json(daemon.get(f"/v1/encode?type=sinusoidal&d_model=7&positions=0:1000:37.3&dtype={dtype}"))
            vectors = reply["vectors"]
            bits = good(daemon.get(f"/v1/encode?type=sinusoidal&d_model=7&positions=0:1000:37.3&dtype={dtype}&format=raw"))[1]
            flat = dict(vectors, data=flatten(vectors["data"]))
            for form in (vectors, flat, {"shape": vectors["shape"], "data": flat["data"], "dtype": dtype}):
                _, body = good(daemon.post(f"/v1/apply?format=raw&dtype={dtype}", {"encoding": "none", "embeddings": form}))
                assert body == bits, (dtype, body[:16], bits[:16])


def test_gzip_bodies():
    with Daemon(PATH) as daemon:
        zipped = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        _, plain = good(daemon.post("/v1/apply", APPLY.encode()))
        assert good(daemon.post("/v1/apply", gzip.compress(APPLY.encode()), zipped))[1] == plain
        body = npy_write(sixty_fourths(6000, 4), (10, 100, 6))
        _, plain = good(daemon.post("/v1/apply?type=sinusoidal", body, NPY))
        assert good(daemon.post("/v1/apply?type=sinusoidal", gzip.compress(body), dict(NPY, **{"Content-Encoding": "gzip"})))[1] == plain
        status, _, problem = daemon.post("/v1/apply", gzip.compress(APPLY.encode())[:-9], zipped)
        assert status == 400 and json.loads(problem)["field"] == "body"


def test_etag():
    with Daemon(PATH) as daemon:
        target = "/v1/encode?type=sinusoidal&d_model=6&positions=0:4"
        headers, body = good(daemon.get(target))
        etag = headers["ETag"]
        assert etag.startswith('"') and etag.endswith('"') and len(etag) > 10, etag  # a strong one
        assert "Accept" in headers["Vary"] and headers["Cache-Control"]
        for match in (etag, f'"x", {etag}', "W/" + etag, "*"):
            status, again, empty = daemon.get(target, {"If-None-Match": match})
            assert (status, empty) == (304, b"") and again["ETag"] == etag, match
        status, _, full = daemon.get(target, {"If-None-Match": '"other"'})
        assert status == 200 and full == body
        status, head, empty = daemon.request("HEAD", target)
        assert (status, empty) == (200, b"") and head["ETag"] == etag and int(head["Content-Length"]) == len(body)
        # Whatever changes a byte changes the tag.
        other = [target + "&base=10001", target + "&dtype=float64", target + "&flat=1", target + "&format=npy",
                 "/v1/encode?type=sinusoidal&d_model=6&positions=0:5", "/v1/encode?type=sinusoidal&d_model=6&positions=1:5",
                 target + "&offset=1", target + "&padding_idx=0"]
        tags = {good(daemon.get(variant))[0]["ETag"] for variant in other}
        assert len(tags) == len(other) and etag not in tags
        # Two spellings of one request share it.
        accepted = good(daemon.get(target, {"Accept": "application/x-npy"}))[0]["ETag"]
        assert accepted == good(daemon.get(target + "&format=npy"))[0]["ETag"] and accepted != etag
        assert good(daemon.get("/v1/encode?positions=0:4:1&d_model=6&type=sinusoidal&base=1e4"))[0]["ETag"] == etag
        stream = "/v1/encode?type=sinusoidal&d_model=512&positions=0:5000&format=npy"
        etag = daemon.request("HEAD", stream)[1]["ETag"]
        assert daemon.get(stream, {"If-None-Match": etag})[0] == 304
    with Daemon(PATH, "--workers", "7") as daemon:  # another process has the same
        assert daemon.request("HEAD", stream)[1]["ETag"] == etag


# ---- the same bytes, always -----------------------------------------------------------------------------------------

WIDTH = 96
PLACES = [0, 1, 2, 511, 4095, 4096, 100003]  # the last ones are in no short range


def vectors(daemon, positions, dtype="float32", by="GET", width=WIDTH):
    """The bytes of each row."""
    encoding = {"type": "sinusoidal", "d_model": width, "base": 500000}
    if by == "GET":
        text = positions if isinstance(positions, str) else json.dumps(positions, separators=(",", ":"))
        query = f"type=sinusoidal&d_model={width}&base=500000&positions={text}"
        _, body = good(daemon.get(f"/v1/encode?{query}&format=raw&dtype={dtype}"))
    else:
        _, body = good(daemon.post(f"/v1/encode?format=raw&dtype={dtype}", {"encoding": encoding, "positions": positions}))
    size = width * SIZES[dtype]
    return [body[i:i + size] for i in range(0, len(body), size)]


def position_in_every_company(daemon, dtype):
    """{position: bytes} of PLACES, asserted to be the same alone, in lists, ranges and batches of any size."""
    rows = {p: vectors(daemon, [p], dtype)[0] for p in PLACES}
    for by in ("GET", "POST"):
        assert vectors(daemon, PLACES, dtype, by) == list(rows.values())
        assert vectors(daemon, PLACES[::-1], dtype, by) == list(rows.values())[::-1]
        assert vectors(daemon, [PLACES[:3], PLACES[3:6]], dtype, by) == [rows[p] for p in PLACES[:6]]
        for count in (6, 600, 5000):  # 2 kB and 2 MB of float32: at once, on the pool, as a stream
            got = vectors(daemon, f"0:{count}", dtype, by)
            assert len(got) == count and all(got[p] == rows[p] for p in PLACES if p < count)
            got = vectors(daemon, f"100000:{100000 + count}", dtype, by)
            assert got[3] == rows[100003]
            got = vectors(daemon, f"{count - 1}:-1:-1", dtype, by)
            assert all(got[count - 1 - p] == rows[p] for p in PLACES if p < count)
            assert vectors(daemon, f"0:{count}:0.5", dtype, by)[2] == rows[1]
    assert vectors(daemon, {"start": 0, "count": 5000, "step": 1}, dtype, "POST")[4095] == rows[4095]
    mask = {"mask": [[0] * 700 + [1] * 4097], "rule": "bloom"}
    assert vectors(daemon, mask, dtype, "POST")[-1] == rows[4096]
    return rows


def test_position_has_its_bytes():
    seen = {}
    for workers in ("1", "8"):
        with Daemon(PATH, "--workers", workers) as daemon:
            for dtype in SIZES:
                rows = position_in_every_company(daemon, dtype)
                assert seen.setdefault(dtype, rows) == rows, (workers, dtype)
                # As added to zeros (float32 has no other rounding), and in JSON, whose numbers read back.
            batch = good_json(daemon.post("/v1/batch", {"requests": [
                {"op": "encode", "encoding": {"type": "sinusoidal", "d_model": WIDTH, "base": 500000}, "positions": [p]}
                for p in PLACES]}))
            for p, response in zip(PLACES, batch["responses"]):
                values = flatten(response["body"]["vectors"]["data"])
                assert struct.pack(f"<{WIDTH}f", *values) == seen["float32"][p]
            zeros = safetensors_write({"embeddings": ("F32", (3, 4100, WIDTH), bytes(3 * 4100 * WIDTH * 4))})
            _, body = good(daemon.post("/v1/apply?type=sinusoidal&base=500000&format=raw", zeros, SAFETENSORS))
            size = WIDTH * 4
            for b in range(3):
                for p in PLACES[:-1]:
                    at = (b * 4100 + p) * size
                    assert body[at:at + size] == seen["float32"][p], (b, p)


def test_big_apply_is_the_rows_put_together():
    """[64, 512, 256] float32, split over the workers, against single sequences and single rows."""
    batch, length, width = (8, 128, 64) if SANITIZED else (64, 512, 256)
    count = batch * length * width
    draw = random.Random(13)
    block = struct.pack("<4096f", *(draw.uniform(-8, 8) for _ in range(4096)))
    data = block * (count // 4096)
    body = npy_write([], (batch, length, width))[:128] + data
    row, target, replies = width * 4, "/v1/apply?type=sinusoidal", []
    for workers in ("1", "8"):
        with Daemon(PATH, "--workers", workers) as daemon:
            _, reply = good(daemon.post(target, body, NPY))
            assert reply[:128] == body[:128] and len(reply) == len(body)
            replies.append(reply[128:])
            for b in range(0, batch, 9):
                at = b * length * row
                _, one = good(daemon.post(f"{target}&shape={length},{width}", data[at:at + length * row], RAW))
                assert one == replies[-1][at:at + length * row], b
            for _ in range(40):
                b, t = draw.randrange(batch), draw.randrange(length)
                at = (b * length + t) * row
                _, one = good(daemon.post(f"{target}&shape=1,{width}&positions={t}", data[at:at + row], RAW))
                assert one == replies[-1][at:at + row], (b, t)
    assert replies[0] == replies[1]
    x = struct.unpack(f"<{width}f", data[-row:])
    close(struct.unpack(f"<{width}f", replies[0][-row:]), added(x, length - 1, "float32"), 0)


def test_big_attention_is_the_same_for_any_workers():
    """[B, H, T, d] over the workers; one head alone has the same bits, and the weights are a softmax."""
    shape = (2, 2, 40, 8) if SANITIZED else (4, 8, 128, 32)
    heads, length, width = shape[0] * shape[1], shape[2], shape[3]
    values = sixty_fourths(product(shape), 21)
    data, size = struct.pack(f"<{len(values)}f", *values), length * width * 4
    file = safetensors_write({"q": ("F32", shape, data), "k": ("F32", shape, data)})
    replies = []
    for workers in ("1", "8"):
        with Daemon(PATH, "--workers", workers) as daemon:
            headers, body = good(daemon.post("/v1/attention?mask=causal&format=raw", file, SAFETENSORS))
            assert headers["X-Posenc-Shape"] == ",".join(str(n) for n in shape[:3] + (length,))
            replies.append(body)
            for h in (0, heads - 1):
                one = data[h * size:(h + 1) * size]
                alone = safetensors_write({"q": ("F32", shape[2:], one), "k": ("F32", shape[2:], one)})
                _, weights = good(daemon.post("/v1/attention?mask=causal&format=raw", alone, SAFETENSORS))
                assert weights == body[h * length * length * 4:(h + 1) * length * length * 4], h
    assert replies[0] == replies[1]
    q = values[-length * width:]
    weights = struct.unpack(f"<{length * length}f", replies[0][-length * length * 4:])
    for i in (0, 1, length - 1):
        logits = [sum(a * b for a, b in zip(q[width * i:width * i + width], q[width * j:width * j + width])) / math.sqrt(width)
                  for j in range(i + 1)]
        parts = [math.exp(v - max(logits)) for v in logits]
        want = [v / sum(parts) for v in parts] + [0] * (length - 1 - i)
        close(weights[length * i:length * i + length], want, 1e-5)  # logits of about 60 in float32


# ---- without a socket -----------------------------------------------------------------------------------------------

def test_call_gives_the_same_bytes():
    """posencd --call answers as the daemon does by HTTP, whatever the body's type, and tells by its exit code."""
    x = sixty_fourths(60, 31)
    tensors = {"embeddings": ("F32", (3, 20), struct.pack("<60f", *x))}
    calls = [
        ("GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4", None, b""),
        ("GET /v1/encode?type=sinusoidal&d_model=64&positions=0:3000&format=npy", None, b""),
        ("GET /v1/encode?type=sinusoidal&d_model=64&positions=0:3000&format=csv", None, b""),
        ("GET /v1/encode?type=sinusoidal&d_model=64&positions=0:3000", None, b""),
        ("GET /v1/encode?type=random&seed=3&d_model=64&positions=0:300&format=safetensors", None, b""),
        ("GET /v1/encodings", None, b""),
        ("POST /v1/apply", "x.json", APPLY.encode()),
        ("POST /v1/attention", "x.json", ATTEND.encode()),
        ("POST /v1/apply?type=sinusoidal", "x.npy", npy_write(x, (3, 20), "float64", ">", True)),
        ("POST /v1/apply?type=sinusoidal", "x.safetensors", safetensors_write(tensors)),
        ("POST /v1/apply?type=sinusoidal&shape=3,20", "x.raw", tensors["embeddings"][2]),
        ("POST /v1/batch", "x.json", json.dumps({"requests": [dict(json.loads(APPLY), op="apply")] * 3}).encode()),
        ("GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4&nope=1", None, b""),
        ("POST /v1/apply", "x.json", b'{"encoding":"none","embeddings":[[1,2],[3]]}'),
    ]
    types = {".npy": NPY, ".safetensors": SAFETENSORS, ".raw": RAW}
    with Daemon(PATH) as daemon, tempfile.TemporaryDirectory() as folder:
        for call, name, body in calls:
            method, target = call.split(" ")
            command = [PATH, "--call", call]
            if name:
                pathlib.Path(folder, name).write_bytes(body)
                command.append(f"{folder}/{name}")
            done = subprocess.run(command, capture_output=True, check=False, env=Daemon.environment())
            headers = types.get(pathlib.Path(name).suffix, {}) if name else {}
            status, _, reply = daemon.request(method, target, body or None, headers)
            assert (done.returncode == 0) == (status == 200), (call, done.returncode, status)
            if status == 200:
                assert done.stdout == reply, (call, done.stdout[:200], reply[:200])
            else:
                ours, theirs = json.loads(done.stdout), json.loads(reply)
                assert ours.pop("request_id") and theirs.pop("request_id")
                assert ours == theirs and ours["status"] == status == 400
        done = subprocess.run([PATH, "--call", "POST /v1/apply", "-"], input=APPLY.encode(), capture_output=True, check=False,
                              env=Daemon.environment())
        assert done.stdout == daemon.post("/v1/apply", APPLY.encode())[2]


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
