"""What the page says of costs: badges of a step, the line under an answer, the section of a report, cells of tables."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from performing import prepared

from rallebench.core.types import (
    Action,
    Chain,
    Episode,
    Generate,
    Message,
    Outcome,
    Reply,
    Retrieve,
    Step,
)
from rallebench.engine.cost import run_cost
from rallebench.engine.store import RunFolder
from rallebench.gui import views, views_chat, views_cost, views_questions, views_runs
from rallebench.gui.tabs import benchmark as tab
from rallebench.gui.tabs import runs
from rallebench.gui.views_chat import Turn
from rallebench.services.workbench import Workbench

PRICES = {"gpt": {"prompt": 0.5, "completion": 2.0}}
FOUND = Step(Retrieve("tiny", "Who?", 2), Reply(""), 0.5)
SAID = Step(
    Generate("gpt", (Message("user", "Who?"),)),
    Reply("Ada", prompt_tokens=1000, completion_tokens=10, first_token_seconds=0.5),
    2.5,
)
QUIET = Step(Generate("<old>", (Message("user", "Who?"),)), Reply("Ada"), 1.0)


def words(html: str) -> str:
    """The text of some HTML."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def episode(*steps: Step) -> Episode:
    return Episode("q", "chain", steps, Outcome("Ada"))


def test_a_steps_badges_give_time_tokens_speed_and_dollars_with_their_definitions() -> None:
    html = views.cost(SAID, PRICES)
    assert words(html) == "2.50 s first token 0.500 s 1,000 + 10 tokens 5.00 tokens/s $0.00052"
    assert "Completion tokens / (seconds − seconds to first token)" in html


def test_what_is_not_known_is_said_and_never_0() -> None:
    html = views.cost(QUIET, PRICES)
    assert words(html) == "1.00 s tokens not counted $ unknown"
    assert "not known for &lt;old&gt;: tokens not counted" in html and "<old>" not in html
    assert "no prices" in views.cost(SAID)


def test_a_remembered_step_says_what_it_took_then() -> None:
    cached = Step(SAID.request, SAID.reply, 2.5, cached=True)
    assert words(views.cost(cached, PRICES)).startswith("from memory took 2.50 s then")


def test_a_first_token_in_a_batch_is_not_shown_beside_seconds_that_are_a_share() -> None:
    shared = Step(SAID.request, SAID.reply, 0.025, batch=20)
    alone = Step(SAID.request, SAID.reply, 0.725)
    assert "first token" not in words(views.cost(shared, PRICES))
    assert views_cost.question_remark([shared]) == ""
    assert "first token 0.500 s" in words(views.cost(alone, PRICES))
    assert views_cost.question_remark([alone]) == "first token after 0.500 s"


def test_the_cost_of_an_answer_stands_under_it_and_unfolds_to_its_steps() -> None:
    turn = Turn("Who?", 1, answer="Ada", steps=(FOUND, SAID), prices=PRICES, state="done")
    cost = views_chat.messages([turn])[2]
    assert cost["metadata"]["title"] == r"Cost: 3.00 s, 1,000 + 10 tokens, 5.00 tokens/s, \$0.00052"
    assert cost["metadata"]["log"] == "first token after 0.500 s"
    table = words(cost["content"][0]["text"])
    assert (
        "1 0 1 0.500 0.500 0 – – – –" in table
        and "all 1 1 3.00 0.500 2.50 1,000 10 5.00 $0.00052" in table
    )
    running = Turn("Who?", 1, steps=(FOUND,), state="running")
    assert not any(
        "Cost" in str(message.get("metadata")) for message in views_chat.messages([running])
    )


def test_a_question_that_is_known_in_part_says_so() -> None:
    line = views_cost.question_line((FOUND, QUIET, SAID), PRICES)
    assert (
        line == "4.00 s, 1,000 + 10 tokens (1 call not counted), 5.00 tokens/s, $0.00052 + unknown"
    )
    assert views_cost.question_remark(
        (Step(FOUND.request, FOUND.reply, 0.5, cached=True), QUIET)
    ) == ("1 of 2 steps from memory (cost of the first time)")
    assert views_cost.question_line((FOUND,), {}) == "0.500 s"


def test_a_reports_cost_section_has_totals_spreads_and_actions() -> None:
    failed = Episode("q3", "chain", (FOUND,), None, "It broke.", 4.0)
    cost = run_cost([episode(FOUND, SAID), failed], [], PRICES)
    html = views_cost.report(cost)
    text = words(html)
    assert "All questions 2 1 2 7.50 1.00 2.50 1,000 10 5.00 $0.00052" in text
    assert "of which failed 1 0 1 4.50" in text and "Asked by this run" in text
    assert "s to first token, median" in text and "2 · LLM gpt 1 0 2.50 2.50 2.50" in text
    assert "Cost per answered question (n = 1)" in text
    assert 'title="Completion tokens / (seconds − seconds to first token)' in html


def test_the_page_names_the_models_whose_price_or_tokens_are_unknown() -> None:
    text = words(views_cost.report(run_cost([episode(FOUND, QUIET, SAID)], [], PRICES, ["judge"])))
    assert "Tokens not counted by the backend: 1 call of <old>." in text
    assert "US dollars $0.00052 + unknown for <old> (tokens not counted)." in text
    assert "of what judge asks of language models" in text
    assert "1,000*" in text


def test_a_chain_without_a_model_costs_no_tokens(tmp_path: Path) -> None:
    cost = run_cost([episode(FOUND)], [], {})
    assert views_cost.run_cells(cost) == ["–", "–"]
    assert views_cost.question_cells(episode(FOUND)) == ["0.500", "–"]
    assert views_cost.run_cells(None) == ["", ""]
    assert views_cost.run_cells(run_cost([episode(SAID)], [], PRICES)) == ["1,000 + 10", "$0.00052"]
    assert views_cost.question_cells(episode(SAID, QUIET))[1] == "1,000 + 10 *"
    assert views_cost.question_cells(episode(QUIET))[1] == "not counted"


@pytest.fixture
def old(tmp_path: Path) -> tuple[Workbench, RunFolder]:
    """A finished run as an earlier version left it: no costs in its report, no prices, no file of costs."""
    bench = Workbench(tmp_path)
    chain = Chain("said", (Action("identity", "{question}"),))
    plan = prepared(bench.workspace, chain, "starter-qa", limit=2, name="old", track=False)
    list(bench.runs.run(plan))
    folder = bench.runs.open("old")
    (folder.path / "costs.jsonl").unlink()
    for file, gone in (("report.json", ("cost", "seal")), ("run.json", ("prices", "asks_models"))):
        value = json.loads((folder.path / file).read_text())
        kept = {key: item for key, item in value.items() if key not in gone}
        assert len(kept) == len(value) - len(gone)
        (folder.path / file).write_text(json.dumps(kept))
    return bench, folder


def test_a_run_of_an_earlier_version_is_shown_everywhere(old: tuple[Workbench, RunFolder]) -> None:
    bench, folder = old
    row = dict(zip(views_runs.RUN_COLUMNS, runs.row_of(folder)))
    assert (row["tokens / question"], row["US $"]) == ("", "") and row["state"] == "done"
    assert "All questions 2 0 0" in words(runs.run_view(bench.workspace, folder))
    report, *_, questions, _ = tab.result(bench, "old", "all")
    assert "Cost in all" in report and len(questions) == 2
    assert (
        {len(question) for question in questions}
        == {len(views_questions.QUESTION_COLUMNS)}
        == {len(tab.WIDTHS)}
    )
    list(bench.runs.run(bench.runs.resume("old")))
    assert (folder.report() or {})["cost"]["total"]["questions"] == 2, (
        "scoring it again adds the section"
    )
