"""Random articles from a MediaWiki's API. A test server follows its documentation: busy, with errors, in pieces, or
gone."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from loopback import Behaviour, Handler, Loopback, send_json, send_text
from small_workspace import CommandLine, read_lines

from rallebench.core.errors import BackendError, StoppedError
from rallebench.core.stopping import Stop, obey
from rallebench.experiments.builders import _mediawiki_api
from rallebench.experiments.builders._mediawiki_api import MOST_WAIT, WAIT, random_articles

FIRST_REVISION = [{"timestamp": "2022-01-01T00:00:00Z"}]


def parse_query(handler: Handler) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlparse(handler.path).query).items()}


def wiki(handler: Handler) -> None:
    """Four pages in a fixed order, with a new start for each draw. The second has no text, and each one has its own
    revision."""
    query, owner = parse_query(handler), handler.owner
    if query.get("list") == "random":
        start = owner.draws = getattr(owner, "draws", -1) + 1  # type: ignore[attr-defined]
        pages = [{"id": (start + n) % 4 + 1, "ns": 0} for n in range(4)]
        reply: dict[str, Any] = {"query": {"random": pages[: int(query["rnlimit"])]}}
        reply |= {"continue": {"rncontinue": "0.5|0.6|7|0", "continue": "-||"}}
    else:
        page = int(query["pageids"])
        entry = {"pageid": page, "title": f"T{page}", "fullurl": "u", "revisions": FIRST_REVISION}
        entry["extract"] = f"text {page}" * (page != 2)
        reply = {"query": {"pages": [entry]}, "continue": {"rvcontinue": "2|3", "continue": "||"}}
    handler.send(200, json.dumps(reply).encode())


def answer_articles(reply: Any) -> Behaviour:
    """The wiki, with this answer to questions about a page."""
    return lambda handler: (wiki if "list" in parse_query(handler) else send_json(reply))(handler)


def error(code: str, info: str = "Waiting for db1: 9 seconds lagged") -> dict[str, Any]:
    return {"error": {"code": code, "info": info, "docref": "See https://w/w/api.php"}}


def api_address(server: Loopback) -> str:
    return f"http://127.0.0.1:{server.port}/w/api.php"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of the omitted waits."""
    waited: list[float] = []
    monkeypatch.setattr(_mediawiki_api, "_pause", waited.append)
    return waited


def ids(server: Loopback, number: int, **more: Any) -> list[str]:
    return [article.id for article in random_articles(api_address(server), number, **more)]


def test_articles_have_their_first_date_and_pages_without_text_are_counted() -> None:
    passed_over, notes = Counter[str](), list[str]()
    with Loopback(wiki) as server:
        articles = [*random_articles(api_address(server), 3, (), passed_over, notes)]
        queries = [parse_qs(urlparse(path).query) for path in server.paths]
    assert [(a.id, a.title, a.text, a.url, a.date[:4]) for a in articles] == [
        ("1", "T1", "text 1", "u", "2022"),
        ("3", "T3", "text 3", "u", "2022"),
    ]
    assert passed_over == {"without text": 1} and not notes
    assert queries[0]["rnnamespace"] == ["0"] and queries[1]["rvdir"] == ["newer"]
    assert all(query["maxlag"] == ["5"] and query["formatversion"] == ["2"] for query in queries)
    assert all(headers["user-agent"].startswith("rallebench/") for headers in server.headers)
    assert server.most_in_flight == 1, "one after another"


def test_a_wiki_with_fewer_pages_ends_the_draw_and_says_so() -> None:
    notes: list[str] = []
    with Loopback(wiki) as server:
        assert ids(server, 9, notes=notes) == ["1", "3", "4"]
        assert ids(server, 2, known=("1", "3")) == ["4"]
    assert (
        "gave 5 articles fewer than the limit: 5 draws in a row brought none that was new"
        in (notes[0])
    )


def test_a_page_that_is_drawn_twice_is_one_article() -> None:
    twice = send_json({"query": {"random": [{"id": 3}, {"id": 3}, {"title": "no id"}, "x"]}})
    with Loopback(twice, wiki) as server:
        assert ids(server, 3) == ["3", "1"]


BUSY: Mapping[str, Behaviour] = {
    "lag": send_json(error("maxlag"), retry_after="7"),
    "rate": send_json(error("ratelimited", "You've exceeded your rate limit."), retry_after="7"),
    "429": send_json({}, 429, retry_after="7"),
    "503": send_json({}, 503, retry_after="7"),
}


@pytest.mark.parametrize("kind", BUSY)
def test_a_busy_server_is_asked_again_when_it_says(kind: str, waits: list[float]) -> None:
    with Loopback(BUSY[kind], wiki, BUSY[kind], BUSY[kind], wiki) as server:
        assert ids(server, 1) == ["1"]
    assert waits == [7.0] * 3


@pytest.mark.parametrize(
    ("named", "seconds"), [("soon", WAIT), ("0", 0.0), ("99999", MOST_WAIT), ("", WAIT)]
)
def test_a_time_beyond_waiting_is_replaced(named: str, seconds: float, waits: list[float]) -> None:
    with Loopback(send_json({}, 503, retry_after=named), wiki) as server:
        assert ids(server, 1) == ["1"]
    assert waits == [seconds]


def test_a_wait_ends_when_the_work_is_stopped() -> None:
    stop = Stop()

    def draw() -> None:
        obey(stop)
        with pytest.raises(StoppedError):
            ids(server, 1)
        ended.set()

    ended = threading.Event()
    with Loopback(send_json({}, 503, retry_after="60")) as server:
        thread = threading.Thread(target=draw)
        thread.start()
        assert server.until(lambda: server.answered == 1)
        stop.set()
        assert ended.wait(10)
        thread.join()


def test_a_text_that_comes_when_the_reply_is_continued_is_read() -> None:
    def in_pieces(handler: Handler) -> None:
        query = parse_query(handler)
        if "list" in query or "excontinue" in query:
            return wiki(handler)
        page = {"pageid": 1, "title": "T1", "revisions": FIRST_REVISION}
        more = {"excontinue": 1, "continue": "||revisions|info"}
        return send_json({"query": {"pages": [page]}, "continue": more})(handler)

    with Loopback(in_pieces) as server:
        (article,) = random_articles(api_address(server), 1)
    assert (article.text, article.date) == ("text 1", "2022-01-01T00:00:00Z")


def test_a_page_that_is_gone_or_a_redirect_without_text_is_counted() -> None:
    gone = answer_articles({"query": {"pages": [{"pageid": 1, "missing": True}]}})
    turned = answer_articles(
        {"query": {"pages": [{"pageid": 1, "redirect": True, "extract": " \n"}]}}
    )
    passed_over = Counter[str]()
    for behaviour in (gone, turned):
        with Loopback(behaviour) as server:
            assert ids(server, 1, passed_over=passed_over) == []
    assert passed_over == {"no longer there": 1, "without text": 1}


def test_an_old_wiki_that_answers_with_objects_is_read() -> None:
    page = {"pageid": 1, "title": "T", "extract": "text", "revisions": FIRST_REVISION}
    with Loopback(answer_articles({"query": {"pages": {"1": page}}})) as server:
        assert ids(server, 1) == ["1"]


NO_EXTRACTS = {
    "warnings": {"query": {"warnings": 'Unrecognized value for parameter "prop": extracts'}}
}
REFUSALS: Mapping[str, tuple[Behaviour, str]] = {
    "error": (
        send_json(error("readapidenied", "You need read permission.")),
        "(readapidenied: You need read permission)",
    ),
    "an error of another form": (send_json({"error": "no"}), "answers with an error"),
    "a page": (send_text("<html>Not an API</html>"), "does not answer as the API of a MediaWiki"),
    "a list": (send_json([1]), "does not answer as the API of a MediaWiki"),
    "forbidden": (send_json({}, 403), "refuses the request (HTTP 403 Forbidden)"),
    "not there": (send_json({}, 404), "refuses the request (HTTP 404 Not Found)"),
    "hung up": (Handler.drop, "cannot be asked"),
    "no extension": (
        answer_articles({**NO_EXTRACTS, "query": {"pages": [{"pageid": 1}]}}),
        "lacks the extension TextExtracts",
    ),
    "always busy": (send_json(error("maxlag")), "is busy (Waiting for db1: 9 seconds lagged)"),
}


def cut(handler: Handler) -> None:
    """Half of the promised bytes."""
    handler.start(200, {"Content-Type": "application/json", "Content-Length": "1000"})
    handler.wfile.write(b'{"query": {"random"')
    handler.drop()


@pytest.mark.parametrize("kind", [*REFUSALS, "cut"])
def test_what_the_server_refuses_is_one_sentence(kind: str, waits: list[float]) -> None:
    behaviour, words = REFUSALS.get(kind, (cut, "cannot be asked"))
    with Loopback(behaviour) as server, pytest.raises(BackendError) as caught:
        ids(server, 1)
    said = str(caught.value)
    assert api_address(server) in said and words in said and "\n" not in said and said.endswith(".")


@pytest.mark.parametrize(
    "api", ["http://127.0.0.1:9/w/api.php", "en.wikipedia.org/w/api.php", "file:///etc/hostname"]
)
def test_an_address_that_cannot_be_asked_is_one_sentence(api: str) -> None:
    with pytest.raises(BackendError, match=r"needs the network\. Give articles from a file"):
        list(random_articles(api, 1))


# from the command line

OFF = [f"{name}=false" for name in ("recency", "answerable", "closed_book")]


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[CommandLine]:
    yield CommandLine(capfd, tmp_path / "workspace")


def pairs(server: Loopback) -> tuple[str, ...]:
    return ("source=mediawiki", f"api={api_address(server)}", "length=3", "questions=0", *OFF)


def test_articles_drawn_are_not_drawn_again_and_the_rest_is_counted(cli: CommandLine) -> None:
    with Loopback(wiki) as server:
        first = cli.built("barag", *pairs(server), name="drawn", flags=("--limit", "1"))
        assert first["counts"]["stages"]["2-dates"]["kept"] == 1
        assert first["counts"]["questions"] == 0 and "No question is left" in first["notes"][0]
        more = cli.built("barag", *pairs(server), name="drawn", flags=("--limit", "9"))
    counts = more["counts"]["stages"]["1-articles"]
    assert (counts["inputs"], counts["made"], counts["left_out"]) == (3, 2, {"without text": 1})
    assert "articles fewer than the limit" in more["notes"][0]


def test_a_limit_that_is_raised_by_one_draws_one_more(cli: CommandLine) -> None:
    with Loopback(wiki) as server:
        cli.built("barag", *pairs(server), name="drawn", flags=("--limit", "1"))
        server.draws = 1  # type: ignore[attr-defined]
        more = cli.built("barag", *pairs(server), name="drawn", flags=("--limit", "2"))
    assert more["counts"]["stages"]["1-articles"]["inputs"] == 2 and not more["notes"][1:]
    rows = read_lines(cli.workspace / "experiments" / "drawn" / "1-articles.jsonl")
    assert [row["id"] for row in rows] == ["1", "3"]


def test_what_came_before_a_failure_is_kept(cli: CommandLine, waits: list[float]) -> None:
    broken = send_json(error("internal_api_error_DBQueryError", "A database query error."))
    with Loopback(wiki, wiki, broken) as server:
        ran = cli.build("barag", *pairs(server), name="n", flags=("--limit", "4"))
        assert ran.code == 1 and "Traceback" not in ran.err
        assert "answers with an error (internal_api_error_DBQueryError" in ran.last
        rows = read_lines(cli.workspace / "experiments" / "n" / "1-articles.jsonl")
        assert [row["id"] for row in rows] == ["1"]
        server.behaviours, asked_before = (wiki,), len(server.paths)
        done = cli.built("barag", *pairs(server), name="n", flags=("--limit", "4"))
        later = [parse_qs(urlparse(p).query) for p in server.paths[asked_before:]]
    assert done["counts"]["stages"]["1-articles"]["inputs"] == 3
    assert ["1"] not in [query.get("pageids") for query in later]
