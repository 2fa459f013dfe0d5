# SPDX-License-Identifier: MIT
"""What one would write instead of posencd: the same operations with FastAPI, uvicorn and PyTorch.

    python3 tests/bench/peer_service.py PORT WORKERS

As fast as these allow: uvloop and httptools, a process for every core with one thread of PyTorch each, ujson (the
fastest of Debian's; orjson is not packaged), bodies that are not taken through pydantic, tables of the encoding that
are made once and kept, no access log. serve.py starts it with an allocator that keeps its pages.
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

app = FastAPI()
torch.set_num_threads(1)


@functools.lru_cache(maxsize=64)
def encoding(tokens, d_model):
    """The tutorial's table [tokens, d_model]."""
    position = torch.arange(tokens).unsqueeze(1)
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table = torch.zeros(tokens, d_model)
    table[:, 0::2] = torch.sin(position * rates)
    table[:, 1::2] = torch.cos(position * rates)
    return table


def reply(name, tensor, form):
    if form == "npy":
        out = io.BytesIO()
        numpy.save(out, tensor.numpy())
        return Response(out.getvalue(), media_type="application/x-npy")
    value = {"shape": list(tensor.shape), "dtype": "float32", "data": tensor.tolist()}
    return Response(ujson.dumps({name: value}), media_type="application/json")


@app.get("/v1/encode")
async def encode(tokens: int, d_model: int, format: str = "json"):
    return reply("vectors", encoding(tokens, d_model), format)


@app.post("/v1/apply")
async def apply(request: Request):
    body = await request.body()
    form = "npy" if request.headers["content-type"] == "application/x-npy" else "json"
    if form == "npy":
        x = torch.from_numpy(numpy.load(io.BytesIO(body)))
    else:
        x = torch.tensor(ujson.loads(body)["embeddings"])
    return reply("embeddings", x + encoding(*x.shape), form)


@app.post("/v1/attention")
async def attention(request: Request):
    body = ujson.loads(await request.body())
    q, k = torch.tensor(body["q"]), torch.tensor(body["k"])
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
    return reply("weights", weights, "json")


if __name__ == "__main__":
    sys.path.insert(0, __file__.rsplit("/", 1)[0])
    uvicorn.run("peer_service:app", port=int(sys.argv[1]), workers=int(sys.argv[2]), loop="uvloop", http="httptools",
                timeout_keep_alive=3600, access_log=False, log_level="error")
