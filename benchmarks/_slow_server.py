"""A chat-completions server with log-normal latency and a share of errors, in a process of its own.

``python _slow_server.py SEED MEDIAN_SECONDS SIGMA ERROR_SHARE BEARABLE`` prints its port. ``GET /stats`` tells
what it served: prompts are told apart by their last line. What fails, and how, follows from the seed. A
request while BEARABLE others are in flight is turned away at once (429).
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
from collections import Counter
from typing import Any

FAILURES = ("500", "429", "dropped")


class Served:
    """Counts of the requests and connections so far."""

    def __init__(
        self, seed: int, median: float, sigma: float, errors: float, bearable: float
    ) -> None:
        self.drawn = random.Random(seed)
        self.mu, self.sigma, self.errors = math.log(median), sigma, errors
        self.bearable = bearable
        self.prompts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.how: Counter[str] = Counter()
        self.seconds = 0.0
        self.connections = self.open = self.most_open = self.in_flight = self.most_in_flight = 0

    def to_json(self) -> dict[str, Any]:
        """For ``GET /stats``."""
        return {
            key: value
            for key, value in vars(self).items()
            if key not in ("drawn", "mu", "sigma", "errors")
        }


class Connection(asyncio.Protocol):
    """One connection; one request after the other."""

    def __init__(self, served: Served) -> None:
        self.served, self.read = served, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        served = self.served
        served.connections += 1
        served.open += 1
        served.most_open = max(served.most_open, served.open)

    def connection_lost(self, _: Exception | None) -> None:
        self.served.open -= 1

    def data_received(self, data: bytes) -> None:
        self.read += data
        head, end, body = self.read.partition(b"\r\n\r\n")
        if not end:
            return
        if head.startswith(b"GET"):
            self.read = b""
            self.served.open -= 1  # a request for the counts does not count
            self.served.connections -= 1
            self.send(200, self.served.to_json())
            self.served.open += 1
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.read = body[length:]
        self.meet(json.loads(body[:length])["messages"][-1]["content"].rpartition("\n")[2])

    def meet(self, prompt: str) -> None:
        """Answer, or fail, after a while."""
        served = self.served
        served.prompts[prompt] += 1
        if served.in_flight >= served.bearable:
            self.fail(prompt, "429")
            return
        served.in_flight += 1
        served.most_in_flight = max(served.most_in_flight, served.in_flight)
        seconds = served.drawn.lognormvariate(served.mu, served.sigma)
        failure = served.drawn.choice(FAILURES) if served.drawn.random() < served.errors else ""
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, self.end, prompt, failure, loop.time())

    def end(self, prompt: str, failure: str, started: float) -> None:
        served = self.served
        served.seconds += asyncio.get_running_loop().time() - started
        served.in_flight -= 1
        if failure:
            self.fail(prompt, failure)
            return
        served.answered[prompt] += 1
        message = {"role": "assistant", "content": f"answer to {prompt}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 120, "completion_tokens": 8, "total_tokens": 128}
        head = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
        self.send(200, {**head, "choices": [choice], "usage": usage})

    def fail(self, prompt: str, failure: str) -> None:
        self.served.failed[prompt] += 1
        self.served.how[failure] += 1
        if failure == "dropped":
            self.transport.abort()
        else:
            self.send(int(failure), {"error": {"message": "not now"}})

    def send(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


async def serve(*settings: float) -> None:
    """Serve until the process is ended."""
    served = Served(int(settings[0]), *settings[1:])
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(served), "127.0.0.1", 0, backlog=512
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(*map(float, sys.argv[1:6])))
