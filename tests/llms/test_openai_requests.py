"""What a request that leaves its temperature and seed open is sent with."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from loopback import Loopback

from rallebench.core.types import Generate, Message
from rallebench.llms import LLMS

WHO = Generate("gpt", (Message("user", "Who?"),))


def load(server: Loopback, **settings: Any) -> Any:
    return LLMS["openai_compatible"]("gpt", model="m", base_url=server.url, **settings)


@pytest.mark.parametrize(
    ("settings", "temperature", "seed"),
    [
        ({}, 0.0, None),
        ({"temperature": 0.3}, 0.3, None),
        ({"temperature": None}, 1.0, None),  # the server's own, and then it samples
        ({"temperature": 0.3, "extra_body": {"temperature": 0.9, "seed": 5}}, 0.9, 5),
        ({"extra_body": {"temperature": None}}, 1.0, None),
        ({"extra_body": {"temperature": "hot"}}, 1.0, None),
    ],
    ids=str,
)
def test_temperature_and_seed_are_those_of_a_request_that_leaves_them_open(
    settings: dict[str, Any], temperature: float, seed: int | None
) -> None:
    with Loopback() as server, closing(load(server, **settings)) as llm:
        llm.generate([WHO])
    assert (llm.temperature, llm.seed) == (temperature, seed)
    sent = server.bodies[0].get("temperature", "the server's own")
    assert sent == temperature or (temperature == 1.0 and isinstance(sent, str))
    assert server.bodies[0].get("seed") == seed
