"""An embeddings server is called in batches, called again when this may help, and never trusted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("httpcore2", reason="httpcore2 is not installed")
from loopback import Handler, Loopback, drop_at_once, fail, send_json

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.types import Passage
from rallebench.encoders.hashing import Hashing
from rallebench.encoders.openai_embeddings import read_vectors
from rallebench.encoders.references import open_encoder
from rallebench.workspace.indexes.encoding import encode_passages

TEXTS = [f"the moon number {number} of a planet" for number in range(10)]


def rows(texts: list[str], scale: float = 3.0) -> dict[str, Any]:
    """Vectors of the texts, not of unit length, in reverse order."""
    vectors = scale * Hashing().encode(texts)
    data = [
        {"object": "embedding", "index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": data[::-1], "model": "m", "usage": usage}


def answer(change: Callable[[dict[str, Any]], Any]) -> Callable[[Handler], None]:
    """Answer with changed data."""

    def behave(handler: Handler) -> None:
        handler.send(200, json.dumps(change(rows(handler.body["input"]))).encode())

    return behave


embed = answer(lambda document: document)


def opened(server: Loopback, more: str = "") -> Any:
    return open_encoder(f"openai_embeddings:m?base_url={server.url}&backoff=0.01{more}")


# ── the vectors ──────────────────────────────────────────────────────────────


def test_vectors_come_in_the_asked_order_in_unit_length_over_several_requests() -> None:
    def embed_two_at_once(handler: Handler) -> None:
        server.until(lambda: server.most_in_flight > 1)
        embed(handler)

    with Loopback(embed_two_at_once) as server:
        encoder = opened(server, "&batch=3&concurrency=4")
        vectors = encoder.encode(TEXTS, role="passage")
        assert sorted(len(body["input"]) for body in server.bodies) == [1, 3, 3, 3]
        assert server.most_in_flight > 1
    assert vectors.dtype == np.float32 and encoder.dim == 256
    np.testing.assert_allclose(vectors, Hashing().encode(TEXTS), atol=1e-6)


def test_the_tokens_of_queries_are_those_that_the_server_counted() -> None:
    def counted(handler: Handler) -> None:
        sizes = sum(len(text) for text in handler.body["input"])
        answer(lambda document: {**document, "usage": {"prompt_tokens": sizes + 1}})(handler)

    with Loopback(counted) as server:
        encoder = opened(server, "&batch=4&concurrency=2")
        encoder.encode(TEXTS, role="query")
        counts = encoder.count_tokens(TEXTS)
        assert sum(counts) == sum(map(len, TEXTS)) + 3, "three requests of at most four queries"
        assert all(abs(count - len(text)) <= 1 for count, text in zip(counts, TEXTS))
        assert encoder.count_tokens(["never asked"]) == [None]
    with Loopback(answer(lambda document: {**document, "usage": None})) as server:
        silent = opened(server)
        silent.encode(["who?"], role="query")
        assert silent.count_tokens(["who?"]) == [None]


def test_prompts_dimensions_and_cuts_are_what_the_server_is_sent() -> None:
    more = "&query_prompt=query: &passage_prompt=passage: &dimensions=256&max_characters=8"
    with Loopback(embed) as server:
        encoder = opened(server, more)
        encoder.encode(TEXTS[:1], role="query")
        encoder.encode([*TEXTS[:1], ""], role="passage")
        assert [body["input"] for body in server.bodies] == [
            ["query: the moon"],
            ["passage: the moon", "passage: "],
        ]
        assert {
            (body["model"], body["dimensions"], body["encoding_format"]) for body in server.bodies
        } == {("m", 256, "float")}
        assert set(server.paths) == {"/v1/embeddings"}


def test_an_empty_text_is_sent_as_a_space_and_nothing_asks_nothing() -> None:
    with Loopback(embed) as server:
        encoder = opened(server)
        encoder.encode(["", "moon"], role="query")
        assert encoder.encode([], role="query").shape == (0, 256)
        assert [body["input"] for body in server.bodies] == [[" ", "moon"]]


def test_an_index_is_encoded_in_batches_and_again_after_a_failure(tmp_path: Path) -> None:
    passages = [Passage(str(n), text, "t") for n, text in enumerate(TEXTS)]
    with Loopback(embed, fail(400, "no"), embed) as server:
        encoder = opened(server, "&batch=4&concurrency=1")
        with pytest.raises(BackendError, match="refused the request"):
            list(encode_passages(tmp_path, passages, "0", encoder))
        *_, last = encode_passages(tmp_path, passages, "0", encoder)
    assert (last.done, last.total) == (10, 10)


# ── keys and names ───────────────────────────────────────────────────────────


def test_the_key_comes_from_its_variable_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-1234567890")
    with Loopback(embed) as server:
        encoder = opened(server, "&api_key_env=MY_KEY")
        encoder.encode(TEXTS[:1], role="query")
        assert server.headers[0]["authorization"] == "Bearer sk-secret-1234567890"
    assert "secret" not in repr(vars(encoder.settings)) + encoder.name + encoder.fingerprint


def test_the_fingerprint_names_model_server_prompts_and_length() -> None:
    base = "openai_embeddings:m?base_url=http://127.0.0.1:1/v1"
    ones = ("", "&dimensions=64", "&query_prompt=q", "&passage_prompt=q", "&max_characters=9")
    found = [open_encoder(base + more).fingerprint for more in ones]
    found += [
        open_encoder(base.replace(*change)).fingerprint
        for change in ((":m?", ":n?"), (":1/", ":2/"))
    ]
    assert len(set(found)) == 7
    assert open_encoder(base + "&batch=1&concurrency=2&timeout=3").fingerprint == found[0]


# ── failures ─────────────────────────────────────────────────────────────────


INSIDE = send_json({"error": {"message": "busy", "code": 503}})


@pytest.mark.parametrize(
    "first", [fail(503, "busy"), drop_at_once, INSIDE], ids=["503", "hang up", "503 inside a 200"]
)
def test_what_may_pass_is_tried_again(first: Any) -> None:
    with Loopback(first, embed) as server:
        vectors = opened(server).encode(TEXTS[:2], role="query")
        assert len(server.bodies) == 2
    np.testing.assert_allclose(vectors, Hashing().encode(TEXTS[:2]), atol=1e-6)


def test_a_server_that_refuses_the_name_of_the_form_is_asked_without_it_from_then_on() -> None:
    def picky(handler: Handler) -> None:
        refused = fail(422, "encoding_format: Extra inputs are not permitted")
        (refused if "encoding_format" in handler.body else embed)(handler)

    with Loopback(picky) as server:
        encoder = opened(server, "&max_retries=0")
        for _ in range(2):
            encoder.encode(TEXTS[:2], role="query")
        assert ["encoding_format" in body for body in server.bodies] == [True, False, False]


def test_refused_dimensions_are_never_left_out_in_silence() -> None:
    with Loopback(
        fail(400, "This model does not support dimensions", param="dimensions")
    ) as server:
        with pytest.raises(BackendError, match="does not support dimensions"):
            opened(server, "&max_retries=0&dimensions=8").encode(TEXTS[:2], role="query")
        assert len(server.bodies) == 1


def test_a_server_that_is_not_there_is_named() -> None:
    with Loopback(embed) as server:
        encoder = opened(server)
    with pytest.raises(BackendError, match=r"cannot be reached .* Start the server, or correct"):
        encoder.encode(["x"], role="query")


def first_row(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda document: {"data": [{**document["data"][0], **values}, *document["data"][1:]]}


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        (fail(401, "bad key"), r"refused the key \(401: bad key\)"),
        (fail(404, "no such model"), "does not know the model 'm'"),
        (fail(400, "input too long"), r"\(400: input too long\).* Set max_characters"),
        (fail(503, "busy"), r"had an internal error \(503: busy\) \(tried 2 times\)"),
        (send_json([]), "JSON that is not an object"),
        (send_json({"error": {"message": "out of memory"}}), "reported an error: out of memory"),
        (send_json({"data": 3}), "without a list of embeddings"),
        (answer(lambda d: {"data": d["data"][1:]}), "answered 1 embeddings to 2 texts"),
        (answer(first_row(index=7)), "numbered them wrongly"),
        (answer(first_row(embedding=[1.0, 2.0])), "not lists of numbers of one length"),
        (answer(first_row(embedding="AAAA")), "not lists of numbers of one length"),
        (answer(first_row(embedding=[float("nan")] * 256)), "infinite or undefined values"),
        (answer(first_row(embedding=None)), "not lists of numbers"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_of_the_server(behaviour: Any, sentence: str) -> None:
    with Loopback(behaviour) as server:
        with pytest.raises(BackendError, match=sentence) as caught:
            opened(server, "&max_retries=1").encode(TEXTS[:2], role="query")
        assert server.url in str(caught.value) and "\n" not in str(caught.value)


def test_other_dimensions_than_those_asked_for_are_refused() -> None:
    with (
        Loopback(embed) as server,
        pytest.raises(BackendError, match=r"256 dimensions instead of 64.* Set dimensions"),
    ):
        opened(server, "&dimensions=64").encode(TEXTS[:1], role="query")


def test_a_closed_encoder_says_that_it_was_unloaded() -> None:
    with Loopback(embed) as server:
        encoder = opened(server)
        encoder.close()
        with pytest.raises(BackendError, match="was unloaded"):
            encoder.encode(["x"], role="query")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("", r"needs a key .*OPENAI_API_KEY"),
        ("base_url=ftp://x", "does not name a server"),
        ("base_url=http://me:secret@x/v1", "the address contains a user name"),
        (
            "base_url=http://x/v1&api_key_env=sk-secret",
            "api_key_env must be the name of an environment variable",
        ),
        ("base_url=http://x/v1&batch=0", "batch must be a whole number from 1"),
        ("base_url=http://x/v1&colour=red", "has no setting 'colour'"),
    ],
)
def test_a_wrong_setting_is_refused_without_echoing_a_secret(
    monkeypatch: pytest.MonkeyPatch, more: str, sentence: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match=sentence) as caught:
        open_encoder(f"openai_embeddings:m?{more}")
    assert "secret" not in str(caught.value)


def test_rows_without_an_index_are_taken_in_their_order() -> None:
    found = read_vectors({"data": [{"embedding": [0, 2]}, {"embedding": [3, 0]}]}, 2)
    assert found.tolist() == [[0.0, 1.0], [1.0, 0.0]]
