"""``--max-usd`` stops paid work at a limit: spending is counted, answers are kept and resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import paying
import pytest
from loopback import Loopback, send_json
from small_workspace import RECORDS, CommandLine, add_llm


@pytest.fixture
def server(workspace: Path) -> Iterator[Loopback]:
    with paying.paid_model(workspace) as serving:
        yield serving


@pytest.fixture
def paid_model(server: Loopback) -> str:
    """The name of the model behind the server."""
    return "paid"


def questions_done(workspace: Path, run: str) -> int:
    return int(json.loads((workspace / "runs" / run / "report.json").read_text())["n_done"])


def state(workspace: Path, run: str) -> tuple[str, str]:
    content = json.loads((workspace / "runs" / run / "state.json").read_text())
    return content["state"], content["message"]


def test_a_run_stops_at_its_limit_and_is_resumed(
    cli: CommandLine, workspace: Path, paid_model: str, server: Loopback
) -> None:
    words = ("--batch-size", "1", "--metrics", "em")
    ran = cli.run("costly", paid_model, *words, "--max-usd", "0.025")
    assert ran.code == 130
    assert "Stopped at the spending limit: 0.0" in ran.last and "of at most 0.025" in ran.last
    done = questions_done(workspace, "costly")
    assert 3 <= done < len(RECORDS)
    stopped, message = state(workspace, "costly")
    assert stopped == "stopped" and "spending limit" in message
    asked = len(server.bodies)
    ran = cli.run("costly", paid_model, *words, "--resume")
    assert ran.code == 0 and state(workspace, "costly")[0] == "done"
    assert len(server.bodies) <= asked + len(RECORDS) - done


def test_a_limit_that_is_not_reached_changes_nothing(
    cli: CommandLine, workspace: Path, paid_model: str
) -> None:
    ran = cli.run("cheap", paid_model, "--metrics", "em", "--max-usd", "5")
    assert ran.code == 0 and state(workspace, "cheap")[0] == "done"


def test_replies_from_the_cache_cost_nothing(
    cli: CommandLine, workspace: Path, paid_model: str
) -> None:
    assert cli.run("first", paid_model, "--metrics", "em").code == 0
    ran = cli.run("second", paid_model, "--metrics", "em", "--max-usd", "0.001")
    assert ran.code == 0 and state(workspace, "second")[0] == "done"


def test_a_free_model_has_no_limit(cli: CommandLine, workspace: Path) -> None:
    assert cli.run("free", "titan", "--metrics", "em", "--max-usd", "0.000001").code == 0


def test_a_model_without_prices_is_refused_before_it_is_asked(
    cli: CommandLine, workspace: Path, server: Loopback
) -> None:
    add_llm(workspace, "unknown", "openai_compatible", model="m", base_url=server.url)
    ran = cli.run("never", "unknown", "--metrics", "em", "--max-usd", "1")
    assert ran.code == 2 and "needs the prices of 'unknown'" in ran.last
    assert not server.bodies


def test_a_server_that_counts_no_tokens_ends_the_run(
    cli: CommandLine, workspace: Path, paid_model: str, server: Loopback
) -> None:
    reply = {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}]}
    server.behaviours = (send_json(reply),)
    ran = cli.run("uncounted", paid_model, "--metrics", "em", "--max-usd", "1")
    assert ran.code == 1 and "counts no tokens" in ran.last


@pytest.mark.parametrize("limit", ["0", "-1", "inf", "nan"])
def test_a_limit_that_cannot_be_is_refused(cli: CommandLine, workspace: Path, limit: str) -> None:
    ran = cli.run("never", "titan", f"--max-usd={limit}")
    assert ran.code == 2 and "must be above 0" in ran.last
    assert not (workspace / "runs" / "never").exists()


def test_a_wrong_limit_is_named_before_a_missing_chain(cli: CommandLine) -> None:
    ran = cli("run --max-usd=-1")
    assert ran.code == 2 and "must be above 0" in ran.last


def test_the_judges_of_a_scored_run_stop_at_the_limit_and_are_continued(
    cli: CommandLine, workspace: Path, paid_model: str, server: Loopback
) -> None:
    assert cli.run("judged", "titan", "--metrics", "em").code == 0
    words = ("--run", "judged", "--metrics", f"rgb-rejection:{paid_model}")
    ran = cli("score", *words, "--max-usd", "0.025")
    assert ran.code == 130 and "spending limit" in ran.last
    asked = len(server.bodies)
    assert 3 <= asked < len(RECORDS)
    ended = cli("score", *words)
    assert ended.code == 1 and "could not be read" in ended.last, "no reply names a verdict"
    assert len(server.bodies) <= len(RECORDS) + 1, "no judgement is asked for twice"


def test_a_limit_of_predictions_is_refused(cli: CommandLine) -> None:
    ran = cli("score --guess none.jsonl --max-usd 1")
    assert ran.code == 2 and "--max-usd goes with --run" in ran.last


def test_all_variants_of_a_sweep_share_one_limit(
    cli: CommandLine, workspace: Path, paid_model: str
) -> None:
    words = ("--chain", "read", "--llm", paid_model, "--dataset", "tiny-qa", "--metrics", "em")
    ran = cli("sweep --no-mlflow --name s --batch-size 1 --vary k=1,2", *words, "--max-usd", "0.02")
    assert ran.code == 130 and "spending limit" in ran.last
