"""Builds a DiskANN index in a separate process: ``python _diskann_build.py '{"kind": …}'``.

The library holds Python's global lock and prints while it builds. A child of this process does the
work; this one waits, and kills the child when its standard input closes, because the caller has ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from typing import Any

import numpy as np


def build(order: dict[str, Any]) -> None:
    """Run the library's builder on the vectors in ``order["data"]``."""
    import diskannpy

    common = {
        "data": order["data"],
        "distance_metric": "l2",
        "index_directory": order["folder"],
        "complexity": order["complexity"],
        "graph_degree": order["graph_degree"],
        "num_threads": order["threads"],
        "vector_dtype": np.float32,
        "index_prefix": order["prefix"],
    }
    if order["kind"] == "disk":
        more = {name: order[name] for name in ("search_memory_maximum", "build_memory_maximum")}
        diskannpy.build_disk_index(**common, **more)
    else:
        diskannpy.build_memory_index(**common)


def main() -> int:
    """Fork, build in the child, supervise it; return its exit code."""
    child = os.fork()
    if child == 0:
        build(json.loads(sys.argv[1]))
        sys.stdout.flush()
        os._exit(0)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) & 255
        if select.select([0], [], [], 0.05)[0] and not os.read(0, 1):
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(main())
