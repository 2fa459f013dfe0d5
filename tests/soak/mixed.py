# SPDX-License-Identifier: MIT
"""Right requests of all kinds and sizes, and what is known of each reply before it comes: its status, its length, and
where the numbers are known, its bytes.

`Facts` are replies learnt once at the beginning; the cases of tests/cases, the pages and a few conditional requests
are compared with them, byte by byte, for ever after.
"""
import gzip
import json
import math
import pathlib
import re
import struct

from wire import field, request

CASES = pathlib.Path(__file__).parent.parent / "cases"
LIMIT = 64 << 20  # of a body, and of a reply that is made before it is sent
SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
KINDS = {"npy": "application/x-npy", "raw": "application/octet-stream", "safetensors": "application/x-safetensors"}
REQUEST_ID = re.compile(rb'"request_id": ?"[^"]*"')
FIXED = ["/v1/encode?type=sinusoidal&d_model=6&positions=0:4", "/v1/encode?encoding=tensor2tensor&d_model=33&positions=1000000:1000007",
         "/v1/encode?type=random&seed=3&d_model=16&positions=-4:4&format=npy", "/v1/shift?type=sinusoidal&d_model=8&distance=3",
         "/v1/encode?type=sinusoidal&d_model=64&positions=0:300&format=csv",
         "/v1/encode?type=sinusoidal&d_model=64&positions=0:300&format=png&png.cell=2", "/v1/positions?lengths=3,1,2",
         "/v1/encode?type=sinusoidal&d_model=128&positions=0:600&dtype=float16&format=raw",
         "/", "/v1", "/v1/limits", "/v1/encodings", "/v1/encodings/sinusoidal", "/v1/presets", "/v1/version", "/v1/tables"]
ERRORS = [  # method, target, fields, body, status
    ("GET", "/nothing", (), b"", 404), ("GET", "/v1/apply", (), b"", 405), ("DELETE", "/v1/encode", (), b"", 405),
    ("BREW", "/v1/encode", (), b"", 501), ("GET", "/v1/encode?type=sinusoidal&d_model=6&positions=0:4&colour=red", (), b"", 400),
    ("GET", "/v1/encode?type=sinusoidal&d_model=6&positions=0:4&format=gif", (), b"", 400),
    ("GET", "/v1/encode?type=sinusoidal&d_model=6&positions=0:4", ("Accept: image/gif",), b"", 406),
    ("POST", "/v1/encode", (), b"{", 400), ("POST", "/v1/encode", (), b"[]", 400), ("POST", "/v1/encode", (), b"", 400),
    ("POST", "/v1/apply", ("Content-Type: text/html",), b"<p>", 415),
    ("POST", "/v1/apply?type=sinusoidal", ("Content-Type: application/x-npy",), b"no npy at all", 400),
    ("POST", "/v1/apply", ("Content-Encoding: gzip",), b"no gzip at all", 400),
    ("GET", "/v1/encode?type=random&d_model=65536&positions=0:1000000000", (), b"", 413),
    ("POST", "/v1/encode?type=sinusoidal&d_model=512&positions=0:1000000", (), b"{}", 413),
    ("POST", "/v1/batch", (), b'{"requests":[' + b",".join([b"{}"] * 257) + b"]}", 413),
]


class Ask:
    """A request and its judge. `statuses`: the first one is wanted; others may come for a reason, and are counted."""
    __slots__ = ("name", "method", "data", "statuses", "check", "most")

    def __init__(self, name, method, data, check=None, statuses=(200,), most=1 << 40):
        self.name, self.method, self.data = name, method, data
        self.check, self.statuses, self.most = check, statuses, most

    def fault(self, reply):
        """What is wrong with the reply, or None."""
        if reply.status not in self.statuses:
            return f"{self.name}: {reply.status}, expected {self.statuses}: {bytes(reply.body[:300])!r}"
        if reply.status == 503 and not field(reply.head, b"retry-after").isdigit():
            return f"{self.name}: 503 without Retry-After"
        if reply.status == self.statuses[0] and self.check:
            what = self.check(reply)
            return f"{self.name}: {what}" if what else None
        return None


# ---- what is known of replies ---------------------------------------------------------------------------------------

def bare(body):
    """Without what is different each time."""
    return REQUEST_ID.sub(b"", body) if len(body) < 1 << 20 and b"request_id" in body else body


def payload(form, body):
    """The bytes of the one tensor in a binary reply, and what is wrong with the file around it."""
    if form == "raw":
        return body, None
    if form == "npy":
        if body[:8] != b"\x93NUMPY\x01\x00":
            return b"", f"no npy: {bytes(body[:80])!r}"
        return memoryview(body)[10 + struct.unpack("<H", body[8:10])[0]:], None
    at = 8 + struct.unpack("<Q", body[:8])[0]
    header = json.loads(bytes(body[8:at]))
    last = max(value["data_offsets"][1] for name, value in header.items() if name != "__metadata__")
    return memoryview(body)[at:], None if at + last == len(body) else f"offsets to {last}, {len(body) - at} bytes"


def tensor_length(form, shape, dtype):
    """A check of a binary reply's length."""
    wanted = math.prod(shape) * SIZES[dtype]

    def check(reply):
        data, fault = payload(form, reply.body)
        return fault or (None if len(data) == wanted else f"{len(data)} bytes of {form}, expected {wanted}")
    return check


def tensor_bytes(form, wanted):
    """A check of a binary reply's numbers."""
    def check(reply):
        data, fault = payload(form, reply.body)
        return fault or (None if data == wanted else f"{len(data)} bytes of {form} differ from the {len(wanted)} expected")
    return check


def text_shape(form, rows, width):
    """A check of a JSON or CSV reply with one tensor [rows, width]: all of it where it is short, else its commas."""
    def check(reply):
        body = reply.body
        if form == "csv":
            good = body.count(b"\n") == rows and body.count(b",") == rows * (width - 1)
        elif len(body) < 1 << 16:
            data = json.loads(bytes(body))["vectors"]["data"]
            good = len(data) == rows and all(len(row) == width for row in data)
        else:
            good = body[-1:] == b"}" and body[body.index(b'"data":'):].count(b",") == rows * width - 1
        return None if good else f"{form} of {len(body)} bytes is not [{rows}, {width}]"
    return check


# ---- kinds of requests: each makes one whose body or reply is of about n bytes -----------------------------------------

def encode(rng, n, pool):
    form = rng.choice(["npy", "raw", "safetensors", "json", "csv"])
    dtype = rng.choice(["float32", "float32", "float64", "float16"] if form not in ("json", "csv") else ["float32", "float64"])
    kinds = ["type=sinusoidal", "encoding=tensor2tensor", "encoding=fairseq", "type=random&seed=5"]
    kind = rng.choice(kinds + ["type=naive"] if dtype != "float16" else kinds)  # naive vectors exceed what float16 holds
    n = min(n, 1 << 20) if "random" in kind else n
    each = SIZES[dtype] if form not in ("json", "csv") else 32  # as much as a number may take
    width = min(rng.choice([1, 2, 6, 33, 64, 512, 4096]), max(1, n // each))
    rows = max(1, min(n, LIMIT * 3 // 4) // (each * width))
    start = rng.choice([0, -5, 1 << 20, (1 << 53) - rows])
    query = f"{kind}&d_model={width}&dtype={dtype}&positions={start}:{start + rows}&format={form}"
    check = text_shape(form, rows, width) if form in ("json", "csv") else tensor_length(form, (rows, width), dtype)
    if rng.random() < 0.5:
        return Ask("encode", "GET", request("GET", "/v1/encode?" + query), check, (200, 503))
    return Ask("encode", "POST", request("POST", "/v1/encode?" + query, b"{}"), check)


def encode_list(rng, n, pool):
    """Positions as a list of numbers in the body."""
    count = max(1, min(n, 1 << 22) // 8)
    body = b'{"encoding":{"type":"sinusoidal","d_model":2},"positions":[' + b",".join([b"%d.25" % rng.randrange(9999)] * count) + b"]}"
    return Ask("encode list", "POST", request("POST", "/v1/encode?format=raw", body), tensor_length("raw", (count, 2), "float32"))


def floats(rng, n, pool):
    """At least one row of 8 float32 from the pool: their bytes, and their number of rows."""
    rows = max(1, min(n, len(pool)) // 32)
    at = rng.randrange(0, (len(pool) - rows * 32) // 32 + 1) * 32
    return memoryview(pool)[at:at + rows * 32], rows


def pack(form, rows, data):
    """Those floats as a file, [rows, 8]."""
    if form == "raw":
        return bytes(data)
    if form == "npy":
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 8), }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
    header = json.dumps({"embeddings": {"dtype": "F32", "shape": [rows, 8], "data_offsets": [0, rows * 32]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


def echo(rng, n, pool):
    """Embeddings without an encoding come back as they were, bit for bit."""
    form, back = rng.choice(list(KINDS)), rng.choice(list(KINDS))
    data, rows = floats(rng, min(n, LIMIT - 4096), pool)
    shape = f"&shape={rows},8" + "&body_dtype=float32" if form == "raw" else ""
    fields, body = [f"Content-Type: {KINDS[form]}"], pack(form, rows, data)
    if rng.random() < 0.3 and len(body) < 4 << 20:
        fields.append("Content-Encoding: gzip")
        body = gzip.compress(body, 1)
    sent = request("POST", f"/v1/apply?type=none{shape}&format={back}", body, fields)
    return Ask("echo", "POST", sent, tensor_bytes(back, data))


def echo_json(rng, n, pool):
    """The same, written as numbers."""
    row = [rng.randrange(-800, 800) / 8 for _ in range(8)]
    text = json.dumps(row).encode() + b","
    rows = max(1, min(n, LIMIT // 2) // len(text))
    body = b'{"encoding":"none","embeddings":[' + (text * rows)[:-1] + b"]}"
    fields = []
    if rng.random() < 0.3 and len(body) < 4 << 20:
        fields.append("Content-Encoding: gzip")
        body = gzip.compress(body, 1)
    sent = request("POST", "/v1/apply?format=npy", body, fields)
    if not fields and rng.random() < 0.3:
        sent = chunked(rng, "/v1/apply?format=npy", body)
    return Ask("echo json", "POST", sent, tensor_bytes("npy", struct.pack("<8f", *row) * rows))


def chunked(rng, target, body):
    """A POST whose body comes in chunks of odd sizes."""
    step = rng.choice([1 + len(body) // 7, 8191, 65537])
    parts = [body[at:at + step] for at in range(0, len(body), step)]
    coded = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    return (f"POST {target} HTTP/1.1\r\nHost: soak\r\nTransfer-Encoding: chunked\r\n\r\n".encode(), coded)


def apply_sinusoidal(rng, n, pool):
    data, rows = floats(rng, min(n, LIMIT - 4096), pool)
    dtype = rng.choice(["float32", "float64"] if rows * 64 < LIMIT - 4096 else ["float32"])
    sent = request("POST", f"/v1/apply?type=sinusoidal&dtype={dtype}", pack("npy", rows, data), [f"Content-Type: {KINDS['npy']}"])
    return Ask("apply", "POST", sent, tensor_length("npy", (rows, 8), dtype))


def attention(rng, n, pool):
    """From one embedding matrix, posted as npy or as JSON; weights and output."""
    steps = max(2, min(400, n // 64))
    data, rows = floats(rng, steps * 32, pool)
    form = rng.choice(["npy", "raw"])
    target = f"/v1/attention?type=sinusoidal&heads={rng.choice([1, 2, 4])}&mask.causal=true&return=output&format={form}"
    if rng.random() < 0.5:
        sent = request("POST", target, pack("npy", rows, data), [f"Content-Type: {KINDS['npy']}"])
    else:
        document = {"embeddings": [struct.unpack_from("<8f", data, row * 32) for row in range(rows)]}
        sent = request("POST", target, json.dumps(document).encode())

    def check(reply):
        wanted = rows * 8 * 4
        size = len(payload(form, reply.body)[0])
        return None if size == wanted else f"{size} bytes, expected {wanted}"
    return Ask("attention", "POST", sent, check)


def shift(rng, n, pool):
    width = 2 * max(1, min(n, 1 << 18) // 64)
    if rng.random() < 0.1:
        return Ask("shift", "GET", request("GET", "/v1/shift?type=random&seed=2&d_model=12&distance=1&positions=0:40&format=npy"),
                   tensor_length("npy", (12, 12), "float64"))
    target = f"/v1/shift?type=sinusoidal&d_model={width}&distance={rng.randrange(-999, 999)}&format=npy"
    return Ask("shift", "GET", request("GET", target), tensor_length("npy", (width // 2, 2, 2), "float64"))


def positions(rng, n, pool):
    count = max(2, min(n, 1 << 21) // 8)
    if rng.random() < 0.5:
        body = b'{"rule":"' + rng.choice([b"bert", b"opt", b"roberta", b"fairseq"]) + b'","mask":[[1' + b",1" * (count - 1) + b"]]}"
        return Ask("positions", "POST", request("POST", "/v1/positions?format=raw", body), tensor_length("raw", (count,), "float64"))
    return Ask("positions", "GET", request("GET", f"/v1/positions?positions=0:{count}&format=raw"), tensor_length("raw", (count,), "float64"))


def batch(rng, n, pool):
    entries, wanted = [], []
    for _ in range(rng.choice([0, 1, 3, 10, min(256, 2 + n // 300)])):
        bad = rng.random() < 0.2
        entries.append({"op": "encode", "encoding": {"type": "sinusoidal", "d_model": 0 if bad else rng.randrange(1, 20)}, "positions": "0:3"})
        wanted.append(400 if bad else 200)

    def check(reply):
        got = [entry["status"] for entry in json.loads(bytes(reply.body))["responses"]]
        return None if got == wanted else f"statuses {got}, expected {wanted}"
    return Ask("batch", "POST", request("POST", "/v1/batch", json.dumps({"requests": entries}).encode()), check)


def leave(rng, n, pool):
    """A long stream of which only the beginning is read."""
    target = f"/v1/encode?type=sinusoidal&d_model=512&positions=0:{10 ** rng.randrange(4, 8)}&format={rng.choice(['npy', 'json', 'raw'])}"
    return Ask("leave", "GET", request("GET", target), None, (200, 503), most=min(n * 4, 1 << 22))


def error(rng, n, pool):
    method, target, fields, body, status = rng.choice(ERRORS)

    def check(reply):
        value = json.loads(bytes(reply.body))
        return None if value["status"] == status and value["detail"] else f"no problem document: {value}"
    return Ask("error", method, request(method, target, body, fields), check, (status,))


def identify(rng, n, pool):
    """A table of sinusoids, of noise or of both, and perhaps positions."""
    rows, width = max(2, min(n, 1 << 14) // 128), 2 * rng.randrange(1, 9)
    noise, start = rng.choice((0, 0, 1e-3, 1)), rng.choice((0, 0, 2, 1000))
    table = [[math.sin((p + start) * 1e4 ** (-(j // 2 * 2) / width) + j % 2 * math.pi / 2) + rng.uniform(-noise, noise)
              for j in range(width)] for p in range(rows)]
    body = {"tensor": table}
    if rng.random() < 0.5:
        body["positions"] = {"start": start, "count": rows}

    def check(reply):
        value = json.loads(bytes(reply.body))
        named = value["candidates"] and value["candidates"][0]["encoding"]["type"]
        known = noise < 0.1 and rows >= 16 and width >= 6
        return None if not known or named == "sinusoidal" else f"{rows} rows of {width}, noise {noise}, named {named}"
    return Ask("identify", "POST", request("POST", "/v1/identify", json.dumps(body).encode()), check)


def block(rng, n, pool):
    """Layers with weights by a seed: the same bytes are asked for by cases."""
    rows, width = max(1, min(n, 1 << 14) // 64), 2 * rng.randrange(1, 9)
    body = {"embeddings": [[rng.uniform(-2, 2) for _ in range(width)] for _ in range(rows)], "heads": rng.choice((1, 2)),
            "layers": rng.randrange(1, 4), "weights_seed": rng.randrange(9)}

    def check(reply):
        shape = json.loads(bytes(reply.body))["output"]["shape"]
        return None if shape[-2:] == [rows, width] else f"output {shape} of {rows} rows of {width}"
    return Ask("block", "POST", request("POST", "/v1/block?return=output", json.dumps(body).encode()), check)


KINDS_OF_REQUESTS = [encode, encode, encode_list, echo, echo, echo_json, apply_sinusoidal, attention, shift, positions, batch, identify, block]


# ---- what is learnt once ---------------------------------------------------------------------------------------------

def case_requests():
    """(name, method, data, status) of every folder of tests/cases."""
    for path in sorted(CASES.glob("*/*/request")):
        head, _, body = path.read_bytes().partition(b"\n\n")
        first, *fields = head.decode().split("\n")
        method, target = first.split(" ", 1)
        wanted = next(p for p in (path.parent / "reply", path.parent / "problem") if p.exists())
        line = next(line for line in wanted.read_text().split("\n") if not line.startswith("#"))
        yield "/".join(path.parts[-3:-1]), method, request(method, target, body.strip(), [f for f in fields if f]), int(line.split()[0])


class Facts:
    """The replies that never change, asked for once on `wire`."""

    def __init__(self, wire):
        self.known, self.etags = [], {}
        for name, method, data, status in case_requests():
            reply = wire.ask(data, method)
            assert reply.status == status, (name, reply)
            self.known.append((name, method, data, status, bare(reply.body), field(reply.head, b"etag")))
        for target in FIXED:
            data = request("GET", target)
            reply = wire.ask(data)
            assert reply.status == 200, (target, reply)
            self.known.append((target, "GET", data, 200, bytes(reply.body), field(reply.head, b"etag")))
            self.etags[target] = field(reply.head, b"etag"), len(reply.body)

    def ask(self, rng):
        """One of them again."""
        name, method, data, status, body, etag = rng.choice(self.known)

        def check(reply):
            same = bare(reply.body) == body and field(reply.head, b"etag") == etag
            return None if same else f"not the bytes of the first time: {bytes(reply.body[:200])!r}"
        return Ask(name, method, data, check, (status,) if status != 200 else (200, 503))

    def conditional(self, rng):
        """Without a body: HEAD, or what the client has already."""
        target = rng.choice([t for t in FIXED if self.etags[t][0]])
        etag, size = self.etags[target]
        if rng.random() < 0.5:
            return Ask("not modified", "GET", request("GET", target, fields=[f'If-None-Match: "x", {etag.decode()}']),
                       lambda reply: None if field(reply.head, b"etag") == etag else "another tag", (304,))
        lengths = (b"", b"%d" % size)  # a streamed reply does not always know it
        return Ask("head", "HEAD", request("HEAD", target),
                   lambda reply: None if field(reply.head, b"content-length") in lengths else f"not {size} long: {reply.head!r}")


def size(rng, largest, share):
    """Log-uniform from 10 bytes: mostly to 64 KiB, a share of them from there to the largest."""
    low, high = (10, 1 << 16) if largest <= 1 << 16 or rng.random() >= share else (1 << 16, largest)
    return int(math.exp(rng.uniform(math.log(low), math.log(high))))


def draw(rng, facts, pool, largest=LIMIT, share=0.02):
    """Any request."""
    dice = rng.random()
    if dice < 0.30:
        return facts.ask(rng)
    if dice < 0.40:
        return facts.conditional(rng)
    if dice < 0.48:
        return error(rng, 0, pool)
    if dice < 0.50:
        return leave(rng, size(rng, largest, share), pool)
    return rng.choice(KINDS_OF_REQUESTS)(rng, size(rng, largest, share), pool)
