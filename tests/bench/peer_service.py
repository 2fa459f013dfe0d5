# SPDX-License-Identifier: MIT
"""What one would write instead of posencd: the same operations with FastAPI, uvicorn and PyTorch.

    python3 tests/bench/peer_service.py PORT WORKERS

In two forms, which are both measured:

    /v1/...          FastAPI's own way, which bars are for: a pydantic model says what a body is, and a reply is a
                     UJSONResponse, given as such: so its documentation wants large ones, as a dict would be gone through
                     number by number. Debian's pydantic is not compiled, which the one of PyPI is: that would be faster.
    /v1/by_hand/...  as fast as it goes: bodies are not taken through pydantic but read by ujson, without any check

As fast as these allow: uvloop and httptools, a process for every core with one thread of PyTorch each, ujson (the
fastest of Debian's; orjson is not packaged), tables of the encoding that are made once and kept, no access log. serve.py
starts it with an allocator that keeps its pages.
"""
import functools
import io
import math
import sys

import numpy
import torch
import ujson
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import UJSONResponse
from pydantic import BaseModel

app = FastAPI(default_response_class=UJSONResponse)
torch.set_num_threads(1)


class Embeddings(BaseModel):
    embeddings: list[list[float]]


class Heads(BaseModel):
    q: list[list[list[float]]]
    k: list[list[list[float]]]


@functools.lru_cache(maxsize=64)
def encoding(tokens, d_model):
    """The tutorial's table [tokens, d_model]."""
    position = torch.arange(tokens).unsqueeze(1)
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table = torch.zeros(tokens, d_model)
    table[:, 0::2] = torch.sin(position * rates)
    table[:, 1::2] = torch.cos(position * rates)
    return table


def attention_of(q, k):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)


def npy(tensor):
    out = io.BytesIO()
    numpy.save(out, tensor.numpy())
    return Response(out.getvalue(), media_type="application/x-npy")


def named(name, tensor):
    return {name: {"shape": list(tensor.shape), "dtype": "float32", "data": tensor.tolist()}}


def by_hand(name, tensor):
    return Response(ujson.dumps(named(name, tensor)), media_type="application/json")


@app.get("/v1/encode")
async def encode(tokens: int, d_model: int, format: str = "json"):
    vectors = encoding(tokens, d_model)
    return npy(vectors) if format == "npy" else UJSONResponse(named("vectors", vectors))


@app.post("/v1/apply")
async def apply(body: Embeddings):
    x = torch.tensor(body.embeddings)
    return UJSONResponse(named("embeddings", x + encoding(*x.shape)))


@app.post("/v1/apply_npy")
async def apply_npy(request: Request):
    x = torch.from_numpy(numpy.load(io.BytesIO(await request.body())))
    return npy(x + encoding(*x.shape))


@app.post("/v1/attention")
async def attention(body: Heads):
    return UJSONResponse(named("weights", attention_of(torch.tensor(body.q), torch.tensor(body.k))))


@app.post("/v1/by_hand/apply")
async def apply_by_hand(request: Request):
    x = torch.tensor(ujson.loads(await request.body())["embeddings"])
    return by_hand("embeddings", x + encoding(*x.shape))


@app.post("/v1/by_hand/attention")
async def attention_by_hand(request: Request):
    body = ujson.loads(await request.body())
    return by_hand("weights", attention_of(torch.tensor(body["q"]), torch.tensor(body["k"])))


if __name__ == "__main__":
    sys.path.insert(0, __file__.rsplit("/", 1)[0])
    uvicorn.run("peer_service:app", port=int(sys.argv[1]), workers=int(sys.argv[2]), loop="uvloop", http="httptools",
                timeout_keep_alive=3600, access_log=False, log_level="error")
