#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sends what a soak kept to a fresh daemon, and shows what comes back: replay.py DAEMON FILE [--cut N].

The bytes go out as they are, and nothing after them; with --cut only the first N, and then the connection is reset.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from watch import QuietDaemon  # noqa: E402
from wire import Wire  # noqa: E402


def main():
    data = pathlib.Path(sys.argv[2]).read_bytes()
    with QuietDaemon(sys.argv[1]) as daemon:
        wire = Wire(daemon.port, patience=60)
        if "--cut" in sys.argv:
            wire.send(data[:int(sys.argv[sys.argv.index("--cut") + 1])])
            wire.close(reset=True)
        else:
            wire.send(data)
            wire.wait(5)
            wire.finish()
            reply, _ = wire.take_rest(1 << 30)
            print(f"{len(reply)} bytes: {reply[:2000]!r}")
        status = daemon.get("/v1/limits")[0]
        print(f"then /v1/limits is answered {status}; the log's last lines:")
        print("\n".join(str(line) for line in list(daemon.lines)[-5:]))


if __name__ == "__main__":
    main()
