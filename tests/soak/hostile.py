# SPDX-License-Identifier: MIT
"""Wrong requests: right ones of tests/cases and of the templates here, changed at random, byte by byte or with malice,
or cut off; and what may be answered to them.

A mutation is bytes and a way to deliver them. Ways: "whole" (its length is right: exactly one reply is awaited, on a
connection that is kept), "loose" (nobody knows what the bytes mean any more: all replies until the connection ends),
"cut" (the client goes away in the middle).
"""
import gzip
import json
import re
import struct
import time

from mixed import FIXED, case_requests, pack
from wire import Closed, Wire, WireError, ends, field, request

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
EXTREMES = [b"0", b"-1", b"-0", b"0.5", b"1e308", b"1e309", b"-1e309", b"1e-320", b"NaN", b"null", b"Infinity", b"65536", b"65537",
            b"2147483647", b"2147483648", b"4294967296", b"9007199254740992", b"9007199254740993", b"18446744073709551615",
            b"18446744073709551616", b"99999999999999999999999999", b"1" + b"0" * 400, b"0." + b"0" * 400 + b"1", b"00", b"+1", b"0x10",
            b"true", b'""', b"[]", b"{}", b"1:", b":", b"0:9007199254740992", b"[[[[[[[[[0]]]]]]]]]"]
TOKENS = [b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b"\\u0000", b"\\ud800", b"\0", b"\r\n", b"\n", b"%00", b"%", b"&", b"=", b"?", b"#",
          b"\xff\xfe", b"\xc3\x28", b"[" * 1500, b'{"a":' * 300, b" " * 3000, b"1," * 2000, b"positions", b"type=none&", b"HEAD ",
          b"\r\n\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"Expect: 100-continue\r\n",
          b"Content-Encoding: gzip\r\n", b"Range: bytes=0-1\r\n", b"Connection: close\r\n", b"X-Posenc-Timeout-Ms: 1\r\n", b"/../",
          b"gzip", b"identity", b"format=npy", b"dtype=bfloat16", b"positions=0:100000000"]
LENGTH = re.compile(rb"(?i)(content-length: *)(\d+)")
STATUSES = set(range(200, 207)) | {304} | set(range(400, 432)) | {501, 503, 504, 505}
MOST = 1 << 20  # read of a reply


# ---- what is mutated ------------------------------------------------------------------------------------------------

def templates():
    """Right requests that the cases have none of: binary bodies, codings, chunks, headers of all kinds."""
    data = struct.pack("<32f", *(x / 8 for x in range(32)))
    document = b'{"encoding":{"type":"sinusoidal"},"embeddings":[[0.5,-1,2,0.25],[1,0,-0.5,4]]}'
    kinds = {"npy": "application/x-npy", "safetensors": "application/x-safetensors", "raw": "application/octet-stream"}
    for form, kind in kinds.items():
        shape = "&shape=4,8&body_dtype=float32" if form == "raw" else ""
        body = pack(form, 4, data)
        yield request("POST", f"/v1/apply?type=sinusoidal&format=csv{shape}", body, [f"Content-Type: {kind}"])
        yield request("POST", f"/v1/apply?type=sinusoidal&format=png&png.cell=3&png.domain=2.5{shape}", body, [f"Content-Type: {kind}"])
        yield request("POST", f"/v1/attention?type=sinusoidal&heads=2{shape}", body, [f"Content-Type: {kind}"])
        yield request("POST", f"/v1/apply?type=none{shape}", gzip.compress(body), [f"Content-Type: {kind}", "Content-Encoding: gzip"])
    yield request("POST", "/v1/apply", document)
    yield request("POST", "/v1/apply?format=safetensors", gzip.compress(document), ["Content-Encoding: gzip"])
    yield (b"POST /v1/apply HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"%x\r\n" % len(document) + document + b"\r\n0\r\n\r\n")
    entries = [{"op": "encode", "encoding": "vaswani", "positions": "0:3"}, {"op": "attention", "q": [[1, 0]], "k": [[1, 0]]},
               {"op": "positions", "grid": [2, 3]}, {"op": "shift", "encoding": {"type": "random", "d_model": 3}, "distance": 1}]
    yield request("POST", "/v1/batch", json.dumps({"requests": entries}).encode())
    for target in FIXED:
        yield request("GET", target, fields=["Accept: application/json, */*;q=0.1", "Accept-Encoding: gzip", 'If-None-Match: "x"',
                                             "X-Request-Id: mine", "X-Posenc-Timeout-Ms: 2000"])
        yield request("HEAD", target)
    yield request("GET", "/v1/encode?type=sinusoidal&d_model=64&positions=0:5000&format=json")


def corpus():
    """[(head, body), ...]"""
    return [data for _, _, data, _ in case_requests()] + list(templates())


# ---- how it is mutated ----------------------------------------------------------------------------------------------

def flip(rng, data, others):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]


def overwrite(rng, data, others):
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.choice([1, 1, 2, 8])) + data[at + 1:]


def delete(rng, data, others):
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice([1, 1, 2, 7, 60]):]


def insert(rng, data, others):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def repeat(rng, data, others):
    at = rng.randrange(len(data))
    piece = data[at:at + rng.choice([1, 5, 50])]
    return data[:at] + piece * rng.choice([2, 2, 3, 40]) + data[at + len(piece):]


def splice(rng, data, others):
    other = b"".join(rng.choice(others))
    at, start = rng.randrange(len(data)), rng.randrange(len(other))
    return data[:at] + other[start:start + rng.choice([10, 100, 10000])] + (data[at:] if rng.random() < 0.5 else b"")


def extreme(rng, data, others):
    numbers = list(NUMBER.finditer(data))
    if not numbers:
        return flip(rng, data, others)
    found = rng.choice(numbers)
    return data[:found.start()] + rng.choice(EXTREMES) + data[found.end():]


def two_numbers(rng, data, others):
    return extreme(rng, extreme(rng, data, others), others)


BYTES = [flip, overwrite, delete, insert, repeat, splice, extreme, extreme, two_numbers]


def header_line(rng, head, others):
    """A line of the head twice, away, at another place, or of another request."""
    lines = head[:-4].split(b"\r\n")
    at = rng.randrange(1, len(lines)) if len(lines) > 1 else 0
    dice = rng.randrange(5)
    if dice == 0:
        lines.insert(at, lines[at])
    elif dice == 1:
        del lines[at]
    elif dice == 2:
        lines.insert(rng.randrange(len(lines)), lines.pop(at))
    elif dice == 3:
        lines.insert(at, rng.choice(rng.choice(others)[0][:-4].split(b"\r\n")))
    else:
        lines[at] += rng.choice([b" ", b"\t", b",", b" x" * 20000, b"; q=0", b"\0"])
    return b"\r\n".join(lines) + b"\r\n\r\n"


def length(rng, head, others):
    """The length of the body, told wrongly."""
    found = LENGTH.search(head)
    true = int(found.group(2)) if found else 0
    told = rng.choice([str(true + 1), str(max(0, true - 1)), "0", "-1", str(true * 2), str(64 << 20), str((64 << 20) + 1), str(1 << 63),
                       str(1 << 64), f"0{true}", f"{true}, {true}", f"+{true}", f"{true} ", "", "x"]).encode()
    if found:
        return head[:found.start(2)] + told + head[found.end(2):]
    return head[:-2] + b"Content-Length: " + told + b"\r\n\r\n"


class Mutation:
    """`data`, delivered in the way `how`; `at` is where it is cut."""
    __slots__ = ("data", "how", "at", "reset", "pause")

    def __init__(self, data, how, at=0, reset=False, pause=0.0):
        self.data, self.how, self.at, self.reset, self.pause = data, how, at, reset, pause


def mutate(rng, others):
    """A wrong request; now and then one that is still right."""
    head, body = rng.choice(others)
    times = rng.choice([1, 1, 1, 2, 4])
    if body and LENGTH.search(head) and rng.random() < 0.6:
        for _ in range(times):
            body = rng.choice(BYTES)(rng, body, others) or b"x"
        found = LENGTH.search(head)
        return Mutation(head[:found.start(2)] + b"%d" % len(body) + head[found.end(2):] + body, "whole")
    dice = rng.random()
    if dice < 0.15:
        data = head + body
        return Mutation(data, "cut", rng.randrange(len(data)), rng.random() < 0.5, rng.choice([0, 0, 0.002]))
    if dice < 0.4:
        for _ in range(times):
            head = rng.choice([header_line, length])(rng, head, others)
        data = head + body
    else:
        data = head + body
        for _ in range(times):
            data = rng.choice(BYTES)(rng, data, others) or b"x"
    return Mutation(data, "loose", pause=rng.choice([0.05] * 40 + [0.005, 0]))


# ---- what may be answered -------------------------------------------------------------------------------------------

def refuse_constant(name):
    raise ValueError(f"{name} in JSON")


def fault_of(reply, method="GET"):
    """What is wrong with a reply to anything at all, or None."""
    kind = field(reply.head, b"content-type").split(b";")[0]
    if reply.status not in STATUSES:
        return f"status {reply.status}: {bytes(reply.body[:500])!r}"
    if reply.status == 503 and not field(reply.head, b"retry-after").isdigit():
        return "503 without Retry-After"
    if method == "HEAD" or reply.cut:
        return None
    if kind in (b"application/json", b"application/problem+json"):
        try:
            value = json.loads(bytes(reply.body), parse_constant=refuse_constant)
        except ValueError as error:
            return f"no JSON: {error}: {bytes(reply.body[:300])!r}"
        if kind == b"application/problem+json" and (value["status"] != reply.status or not value["detail"] or not value["request_id"]):
            return f"no problem document: {value}"
        if reply.status == 504 and value["type"] != "urn:posenc:error:deadline":
            return f"504 for another reason than time: {value}"
    if kind == b"text/csv" and bytes(reply.body).translate(None, b"0123456789.,e+-\r\n"):
        return f"no numbers: {bytes(reply.body[:300])!r}"
    if kind == b"image/png" and bytes(reply.body[:8]) != b"\x89PNG\r\n\x1a\n":
        return f"no picture: {bytes(reply.body[:300])!r}"
    return None


class Deliverer:
    """Sends mutations, one after the other, and judges what comes back."""

    def __init__(self, port, patience):
        self.port, self.patience, self.wire = port, patience, None

    def deliver(self, mutation):
        """(statuses that came, fault or None)"""
        try:
            if mutation.how == "whole":
                return self.whole(mutation)
            return self.loose(mutation) if mutation.how == "loose" else self.cut(mutation)
        except TimeoutError:
            self.drop()
            return [], f"no end within {self.patience} s"
        except WireError as error:
            self.drop()
            return [], f"no HTTP: {error}"

    def drop(self):
        if self.wire:
            self.wire.close(reset=True)
        self.wire = None

    def whole(self, mutation):
        self.wire = self.wire or Wire(self.port, self.patience)
        self.wire.send(mutation.data)
        method = "HEAD" if mutation.data.startswith(b"HEAD") else "GET"
        reply = self.wire.receive(method, MOST)
        if ends(reply) or self.wire.rest:
            self.drop()
        return [reply.status], fault_of(reply, method)

    def loose(self, mutation):
        """The first reply is read strictly. Where requests have been spliced nobody knows whether a later one is to a
        HEAD, so of those only the status lines are."""
        wire = Wire(self.port, self.patience)
        try:
            wire.send(mutation.data)
            if mutation.pause == 0 or not wire.wait(mutation.pause):
                wire.finish()
            method = "HEAD" if mutation.data.lstrip(b"\r\n").startswith(b"HEAD") else "GET"
            try:
                reply = wire.receive(method, MOST)
            except Closed:
                return [0], None
            statuses, fault = [reply.status], fault_of(reply, method)
            wire.finish()
            if not fault and not ends(reply) and b"HEAD" not in mutation.data:
                fault = self.others(wire, statuses)
            return statuses, fault
        finally:
            wire.close(reset=True)

    @staticmethod
    def others(wire, statuses):
        while len(statuses) < 50:
            try:
                reply = wire.receive("GET", MOST)
            except Closed:
                return None
            statuses.append(reply.status)
            fault = fault_of(reply)
            if fault or ends(reply):
                return fault
        return None

    def cut(self, mutation):
        wire = Wire(self.port, self.patience)
        wire.send(mutation.data[:mutation.at])
        time.sleep(mutation.pause)
        wire.close(mutation.reset)
        return [], None
