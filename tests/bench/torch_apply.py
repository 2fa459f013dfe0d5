# SPDX-License-Identifier: MIT
"""Python's part of the benchmarks, above all PyTorch's. They start it (torch.h); it reads `1 rotate_half 1 4096 32 128`
or `8 add 1 512 1024` from standard input, a line each, runs it so many times on one thread, and writes how many
milliseconds that thread took for each. Before more than one run there is one that does not count.

glibc's malloc returns large blocks to the system and takes page faults for them anew, which can make PyTorch twenty
times slower; it is told to keep them, and in huge pages, so that what is measured is PyTorch's.
"""
import json
import math
import os
import sys
import time

TUNABLES = 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184'
if os.environ.get('GLIBC_TUNABLES') != TUNABLES:
    os.environ['GLIBC_TUNABLES'] = TUNABLES
    os.execv('/usr/bin/python3', ['python3'] + sys.argv)

import numpy  # noqa: E402  after the allocator is settled
import torch  # noqa: E402  after the allocator is settled


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def make_rotate_half(batch, tokens, heads, width):
    """The formula of transformers, with tables that broadcast over heads."""
    x = torch.rand(batch, tokens, heads, width)
    rates = 10000.0 ** (-torch.arange(0, width, 2).double() / width)
    angles = torch.arange(tokens).double()[:, None] * rates
    cos, sin = (torch.cat((t, t), dim=-1).float()[:, None, :] for t in (angles.cos(), angles.sin()))
    return lambda: x * cos + rotate_half(x) * sin


def make_add(batch, tokens, width):
    x, vectors, out = torch.rand(batch, tokens, width), torch.rand(tokens, width), torch.empty(batch, tokens, width)
    return lambda: torch.add(x, vectors, out=out)


def tutorial(positions, width):
    """The code of PyTorch's tutorial on Transformers."""
    div_term = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
    pe = torch.zeros(len(positions), width)
    pe[:, 0::2] = torch.sin(positions * div_term)
    pe[:, 1::2] = torch.cos(positions * div_term)
    return pe


def make_sinusoidal(tokens, width):
    return lambda: tutorial(torch.arange(0, tokens, dtype=torch.float).unsqueeze(1), width)


def make_sinusoidal_list(tokens, width):
    """The places of kernels.c."""
    places = torch.tensor([i * 2654435761 % 65521 for i in range(tokens)], dtype=torch.float).unsqueeze(1)
    return lambda: tutorial(places, width)


def make_sinusoidal_numpy(tokens, width):
    def run():
        pe = numpy.zeros((tokens, width), dtype=numpy.float32)
        positions = numpy.arange(tokens, dtype=numpy.float32)[:, None]
        div_term = numpy.exp(numpy.arange(0, width, 2, dtype=numpy.float32) * numpy.float32(-math.log(10000.0) / width))
        pe[:, 0::2] = numpy.sin(positions * div_term)
        pe[:, 1::2] = numpy.cos(positions * div_term)
        return pe
    return run


def make_attention(heads, tokens, width):
    q, k = torch.rand(heads, tokens, width), torch.rand(heads, tokens, width)
    bias, root = torch.rand(heads, tokens, tokens), width ** 0.5
    return lambda: torch.softmax(q @ k.transpose(1, 2) / root + bias, dim=-1)


def make_json_write(rows, columns):
    vectors = tutorial(torch.arange(0, rows, dtype=torch.float).unsqueeze(1), columns)
    return lambda: json.dumps(vectors.tolist())


def make_json_read(rows, columns):
    """Shortest text of float32, as ours is."""
    vectors = tutorial(torch.arange(0, rows, dtype=torch.float).unsqueeze(1), columns).numpy()
    text = '{"embeddings":[' + ','.join('[' + ','.join(map(str, row)) + ']' for row in vectors) + ']}'
    return lambda: numpy.array(json.loads(text)['embeddings'], dtype=numpy.float32)


def main():
    torch.set_num_threads(1)
    makers = {name[len('make_'):]: make for name, make in globals().items() if name.startswith('make_')}
    made = {}
    print('ready', flush=True)
    for line in sys.stdin:
        if line not in made:
            runs, name, *sizes = line.split()
            made = {line: makers[name](*map(int, sizes))}
        run, n = made[line], int(runs)
        if n > 1:
            run()
        start = time.thread_time_ns()
        for _ in range(n):
            run()
        print((time.thread_time_ns() - start) / n / 1e6, flush=True)


main()
