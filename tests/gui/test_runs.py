"""Runs on the new page: the list, a new run, one run, comparing, the bin, exports."""

from __future__ import annotations

import csv
import html as html_names
import io
import json
import re
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from labelled_runs import QIDS, kinds_of_answers, label, make_quiz_run
from page_views import ended, opened_page, refused, run_of, text_of, texts, view_of
from paying import paid_model
from small_workspace import add_llm, make_workspace

from rallebench.core.corrections import cell
from rallebench.core.errors import UsageError
from rallebench.core.events import complete
from rallebench.core.numbers import plural
from rallebench.core.repeats import RepeatOptions
from rallebench.core.runs import RunOptions
from rallebench.engine.store import TITLE
from rallebench.gui.events import RowWindow
from rallebench.gui.frame import Page
from rallebench.gui.jobs import job_news
from rallebench.gui.places import _runs_list
from rallebench.gui.places._runs_compare import tell_apart
from rallebench.services.jobs import Job
from rallebench.services.workbench import Workbench
from rallebench.views import run_columns, run_list, run_views
from rallebench.views.corrections import correct_runs
from rallebench.views.run_requests import BenchmarkOptions, of_chain

REFUSED = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0}
SECOND = "read-tiny-qa-20260101-120000"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page over two finished runs: ``first`` of the chain, and one with k 1 and an echo under an automatic name."""
    with opened_page(tmp_path_factory.mktemp("runs") / "workspace") as page:
        run_of(page.workbench, "first")
        run_of(page.workbench, SECOND, llm="echo", settings=("k=1",))
        yield page


def rows(page: Page, html: str, list_name: str) -> list[Any]:
    found = re.search(rf'data-list="{list_name}" data-key="([^"]*)" data-total="(\d+)"', html)
    assert found
    key = json.loads(html_names.unescape(found[1]))
    message = {"list": list_name, "key": key, "start": 0, "count": 100, "window": "w"}
    listed = page.list_rows(message).rows
    assert len(listed) == int(found[2])
    return listed


def test_the_list_tells_runs_apart_by_what_differs(ran: Page) -> None:
    listed = rows(ran, view_of(ran, "runs/list"), "runs")
    words = {name: texts(html) for name, html in listed}
    assert words["first"].startswith("first") and "12.5 %" in words["first"]
    assert words[SECOND].startswith("read · k 1 · echo")
    assert "k 2 · titan" in words["first"] and "k 1 · echo" in words[SECOND]
    assert "tiny-qa 8 questions" in words["first"] and 'class="s-' in listed[0][1]


def test_the_list_is_filtered(ran: Page) -> None:
    ran.open("runs/list")
    patch = ran.call("runs-list.filter", {"where": '"k 1" em<50'})
    assert [name for name, _ in rows(ran, patch.html["runs-rows"], "runs")] == [SECOND]
    assert patch.address == "#/runs/list?where=%22k%201%22%20em%3C50"
    nothing = ran.call("runs-list.filter", {"where": "nothing"})
    assert "No run fits" in nothing.html["runs-rows"]
    ran.call("runs-list.filter", {"where": ""})


def test_a_fault_of_the_filter_is_told_at_its_field_and_nothing_else_changes(ran: Page) -> None:
    message = {"action": "runs-list.filter", "data": {"where": "em<"}, "window": "w"}
    patch = ran.act(message)
    assert patch.problem == "'em<' at character 1 needs a number after it."
    assert patch.at_field == "where" and not patch.html and not patch.address
    opened = view_of(ran, "runs/list?where=em%3C")
    assert "needs a number" in opened and 'value="em&lt;"' in opened
    ran.call("runs-list.filter", {"where": ""})


def test_the_list_is_sorted_by_its_heads(ran: Page) -> None:
    ran.open("runs/list")
    patch = ran.call("runs-list.sort", {"column": "score"})
    assert patch.address == "#/runs/list?sort=-score" and 'aria-sort="descending"' in str(
        patch.html
    )
    assert [name for name, _ in rows(ran, patch.html["runs-rows"], "runs")] == ["first", SECOND]
    patch = ran.call("runs-list.sort", {"column": "score"}, sort="-score")
    assert [name for name, _ in rows(ran, patch.html["runs-rows"], "runs")] == [SECOND, "first"]
    patch = ran.call("runs-list.sort", {"column": "score"}, sort="score")
    assert patch.address == "#/runs/list"


def test_the_rows_that_fit_are_saved_as_csv_with_all_columns(ran: Page) -> None:
    ran.open("runs/list")
    saved = ran.call("runs-list.export", where='"k 1"').download
    assert saved is not None and saved.name == "runs.csv"
    heads, row = list(csv.reader(io.StringIO(saved.text)))
    names = [column.name for column in run_columns.columns(ran.workspace)]
    assert heads == names and row[names.index("k")] == "1"
    assert float(row[names.index("em")]) == 0.0, "a share, not a percentage"


def test_columns_are_chosen_and_the_mean_is_below(ran: Page) -> None:
    patch = ran.call("runs-list.show", {"show": ["em", "tokens", "model"]})
    assert patch.address == "#/runs/list?show=em,tokens,model"
    words = texts(patch.html["runs-rows"])
    assert words.startswith("Run EM Tokens Model") and "Mean of 2 runs 6.2 %" in words
    assert "titan" in dict(rows(ran, patch.html["runs-rows"], "runs"))["first"]
    ran.call("runs-list.show", {"show": ["dataset"]})


def test_groups_fold_and_stay_folded(ran: Page) -> None:
    patch = ran.call("runs-list.group", {"group": "dataset"})
    listed = rows(ran, patch.html["runs-rows"], "runs")
    assert [name for name, _ in listed] == ["group tiny-qa", SECOND, "first"]
    assert texts(listed[0][1]).startswith("▾ tiny-qa 2 runs 6.2 %")
    patch = ran.call("runs-list.fold", {"fold": "tiny-qa"}, group="dataset")
    assert patch.address == "#/runs/list?group=dataset&folded=tiny-qa"
    assert [name for name, _ in rows(ran, patch.html["runs-rows"], "runs")] == ["group tiny-qa"]
    assert ran.open("runs/list").address == patch.address, "the window remembers it"
    ran.call("runs-list.group", {"group": ""})


def test_a_filter_is_saved_under_a_name(ran: Page) -> None:
    ran.call("runs-list.save", {"as": "Good ones"}, where="em>10", sort="-em")
    html = view_of(ran, "runs/list")
    assert "Good ones" in html and "#/runs/list?where=em%3E10&amp;sort=-em" in html
    refused(ran, "runs-list.save", {"as": " "}, "Give the filter a name")
    (ran.workspace.path / "lists.json").write_text("[]")
    assert "lists.json was damaged by another program" in view_of(ran, "runs/list")
    (ran.workspace.path / "lists.json").unlink()


def test_a_run_has_tags_a_note_and_a_star(ran: Page) -> None:
    before = (ran.workspace.runs / "first" / "run.json").read_bytes()
    ran.call(
        "runs.mark", {"id": "first", "tags": "night, best of May,night", "note": "For the paper"}
    )
    ran.call("runs.star", {"id": "first", "starred": "yes"})
    patch = ran.call("runs-list.filter", {"where": 'tag:"best of May" star:yes'})
    ((name, row),) = rows(ran, patch.html["runs-rows"], "runs")
    assert name == "first" and "night best of May" in texts(row) and "For the paper" in row
    assert "For the paper" in view_of(ran, "runs/run?id=first")
    assert ran.call("runs.ask_form", {"run": "first"}).drawer
    assert "For the paper" in ran.call("runs.report", {"run": "first"}).download.text
    assert ran.call("runs.compare", {"pick": f"{SECOND}/first"}).go.startswith(
        "#/runs/compare?a=first&b="
    ), "the reference run is the baseline"
    assert (ran.workspace.runs / "first" / "run.json").read_bytes() == before
    refused(ran, "runs.mark", {"id": "first", "tags": "x" * 41}, "more than 40 characters")
    ran.call("runs.star", {"id": SECOND, "starred": "yes"})
    starred = [row.name for row in run_list.rows(ran.workspace) if row.is_reference]
    assert starred == [SECOND], "one of each dataset"
    ran.call("runs.star", {"id": SECOND})
    ran.call("runs.mark", {"id": "first"})
    ran.call("runs-list.filter", {"where": ""})
    assert not (ran.workspace.runs / "first" / "marks.json").exists()


def test_an_empty_workspace_says_what_to_do(tmp_path: Path) -> None:
    bench = Workbench(make_workspace(tmp_path))
    html = Page(bench).open("runs/list").html["v-runs-list"]
    assert "No run yet." in html and html.count("New run") == 2
    bench.close()


def test_a_run_shows_tiles_the_waterfall_and_its_questions(ran: Page) -> None:
    html = view_of(ran, "runs/run?id=first")
    words = texts(html)
    assert "EM 12.5 %" in words and "1 of 8 right" in words and "Price none" in words
    ran.call("runs.stages", {"run": "first"})
    html = view_of(ran, "runs/run?id=first")
    assert "not in the answer" in html and "runs.stages" not in html
    assert [row[0] for row in rows(ran, html, "run-questions")] == [f"q{n}" for n in range(1, 9)]


def test_questions_are_filtered_in_the_address(ran: Page) -> None:
    html = view_of(ran, "runs/run?id=first&only=right")
    assert [row[0] for row in rows(ran, html, "run-questions")] == ["q1"]
    patch = ran.call("runs.choose", {"run": "first", "words": "danube", "only": "wrong"})
    assert patch.address == "#/runs/run?id=first&only=wrong&words=danube"
    assert 'data-total="2"' in patch.html["run-list"]


def test_a_question_shows_every_step(ran: Page) -> None:
    patch = ran.call("runs.question", {"run": "first", "id": "q2", "index": 1})
    words = texts(patch.html["run-question"])
    assert "Retrieve · tiny" in words and "Generate · titan" in words and "gold Triton" in words
    assert "Question: Which moon goes round Neptune backwards?" in words
    assert "#/build/one?set=tiny-qa&amp;q=q2&amp;run=first" in patch.html["run-question"]


@pytest.mark.parametrize(
    ("part", "words"),
    [("metrics", "accepted answer"), ("cost", "Calls to models 8"), ("config", "rallebench-run/1")],
)
def test_metrics_cost_and_settings_stand_second(ran: Page, part: str, words: str) -> None:
    assert words.lower() in text_of(ran, f"runs/run?id=first&part={part}").lower()


def test_metrics_are_written_as_papers_write_them_and_each_in_its_unit(ran: Page) -> None:
    words = text_of(ran, "runs/run?id=first&part=metrics")
    assert "ROUGE-L" in words and "R-precision" in words and "rougel" not in words
    assert re.search(r"Seconds [^%]*? question[^%]*? \d+ ms", words)
    assert "Range 0 to 100 %" in words and "(fraction)" not in words
    tiles = text_of(ran, "runs/run?id=first")
    assert "on the clock" in tiles, "the time of the steps is another one"


def test_a_run_opens_at_a_wrong_question_and_its_price_is_one_and_the_same(ran: Page) -> None:
    html = view_of(ran, "runs/run?id=first")
    assert "choose a question" not in texts(html).lower() and 'id="step-1"' in html
    cost = text_of(ran, "runs/run?id=first&part=cost")
    assert "Price none" in texts(html) and "Price none" in cost


def test_the_answers_of_a_run_that_is_not_scored_yet_have_verdicts(ran: Page) -> None:
    folder = ran.workbench.workspace.runs / "half"
    shutil.copytree(folder.with_name("first"), folder)
    for name in ("scores.jsonl", "report.json", "state.json"):
        (folder / name).unlink(missing_ok=True)
    lines = (folder / "episodes.jsonl").read_text().splitlines(keepends=True)
    (folder / "episodes.jsonl").write_text("".join(lines[:5]))
    html = view_of(ran, "runs/run?id=half")
    assert "The scores appear when the run ends" in texts(html)
    assert "Wrong 4" in texts(html) and "Right 1" in texts(html)
    assert "4 wrong 1 right 3 not asked yet" in texts(html)
    bar = re.findall(r'class="s-(\w+)" style="flex:(\d)"', html)
    assert bar == [("unread", "4"), ("right", "1"), ("todo", "3")], "not analysed yet"
    ran.call("runs.delete", {"id": "half"})


def test_a_run_that_is_not_there_is_one_sentence(ran: Page) -> None:
    with pytest.raises(UsageError, match="There is no run 'gone'; choose one of the list"):
        ran.open("runs/run?id=gone")
    with pytest.raises(UsageError, match="choose one of the list"):
        ran.open("runs/run")


def test_two_runs_are_compared_verdict_first(ran: Page) -> None:
    words = text_of(ran, f"runs/compare?a=first&b={SECOND}")
    heads = ("Undecided:", "Questions that flipped", "What is different")
    assert sorted(heads, key=words.index) == list(heads)
    assert "looks worse by" in words and "No difference shown" not in words and "Take " not in words
    assert "answers 0 of 8 questions better and 1 worse" in words and "k 2 1" in words


def test_two_labelled_runs_show_the_metric_raw_and_corrected(tmp_path: Path) -> None:
    with opened_page(tmp_path / "workspace") as page:
        for name, seed in (("first", 1), ("second", 2)):
            kinds = kinds_of_answers(seed, 0.4)
            make_quiz_run(page.workspace.path, name, kinds)
            if name == "first":
                label(page.workspace.path, name, kinds, QIDS[:60])
        assert "Corrected by labels" in text_of(page, "runs/compare?a=first&b=second&metric=em")
        label(page.workspace.path, "second", kinds, QIDS[:60])
        words = text_of(page, "runs/compare?a=first&b=second&metric=em")
        *_, gap = correct_runs([page.workbench.runs.open(x) for x in ("first", "second")], "em")
        for estimate in (gap.raw, gap.corrected):
            assert cell(estimate, signed=True) in words
        assert "second − first: corrected by labels; 60 labels in 60 articles" in words


def test_runs_without_labels_show_no_correction(ran: Page) -> None:
    assert "Corrected by labels" not in text_of(ran, f"runs/compare?a=first&b={SECOND}")


def test_the_spread_over_repeats_stands_below_the_metrics(ran: Page) -> None:
    run_of(ran.workbench, "warm", settings=("temperature=0.7",), repeats=RepeatOptions(2))
    words = text_of(ran, "runs/run?id=warm&part=metrics")
    assert "Each question was asked 2 times; its score is the mean." in words
    assert "pass^2" in words and "unstable questions" in words
    run_of(ran.workbench, "cold", repeats=RepeatOptions(2))
    assert "No model samples" in text_of(ran, "runs/run?id=cold&part=metrics")
    words = text_of(ran, "runs/compare?a=first&b=warm")
    assert "Scores are means over the repeats of a question" in words
    for name in ("warm", "cold"):
        ran.call("runs.delete", {"id": name})


def test_the_gate_is_a_sentence_of_two_compared_runs_where_it_can_be(ran: Page) -> None:
    words = text_of(ran, f"runs/compare?a=first&b={SECOND}")
    assert (
        "Gate: Undecided: read · k 1 · echo may or may not be worse than first by more than 2 points. "
        "6 articles are too few for an interval: to decide it takes about" in words
    )
    assert "Gate" not in text_of(ran, f"runs/compare?a=first&b={SECOND}&metric=prompt_tokens")
    run_of(ran.workbench, "short", limit=5)
    assert "Gate" not in text_of(ran, "runs/compare?a=first&b=short"), "other questions"
    ran.call("runs.delete", {"id": "short"})


def test_times_that_the_cache_replays_are_not_compared(ran: Page) -> None:
    run_of(ran.workbench, "again")
    words = text_of(ran, "runs/compare?a=again&b=first")
    assert "their times are those of the first time" in words and "times as fast" not in words
    assert not re.search(r"\d\.\d\d s\b", words.partition("Time and price")[2])
    assert "The settings are the same." in words and "by chance" not in words, "nothing differs"
    ran.call("runs.delete", {"id": "again"})
    asked = text_of(ran, f"runs/compare?a=first&b={SECOND}")
    assert "reply cache" not in asked


def test_runs_of_one_title_are_told_apart_by_their_minute_or_their_second(ran: Page) -> None:
    row = run_list.run_row(ran.workbench.workspace, "first")
    times = ["2026-01-02T10:20:03", "2026-01-02T10:20:44", "2026-01-02T10:31:00"]
    titles = [x.title for x in tell_apart([replace(row, created=time) for time in times])]
    assert len(set(titles)) == 3 and titles[0].endswith("10:20:03") and titles[2].endswith("10:31")
    assert tell_apart([row]) == [row]


def test_only_the_questions_that_two_runs_share_are_compared(ran: Page) -> None:
    name = run_of(ran.workbench, "read-tiny-qa-20260102-120000", limit=5)
    ran.call("runs.rename", {"id": name, "as": "a part"})
    html = view_of(ran, f"runs/compare?a=first&b={name}")
    words = texts(html)
    duel = texts(html[html.index('class="duel"') :].partition("</div>")[0])
    assert duel.count("20.0 %") == 2, "1 of the 5 that both were asked, not 1 of 8"
    assert "times as fast" not in words
    assert "(left out: 3 of first)" in words and name not in words
    lost = texts(html[html.index('id="compare-lost"') :].partition("</summary>")[0])
    assert lost.endswith("not in the answer 4 → 4")
    ran.call("runs.delete", {"id": name})


def test_every_metric_has_the_difference_and_its_interval(ran: Page) -> None:
    html = view_of(ran, f"runs/compare?a=first&b={SECOND}")
    table = html[html.index('id="compare-metrics"') :].partition("</table>")[0]
    assert ">difference<" in table and "points" in table
    assert "R-precision" in texts(table) and "<b>" not in table, "no difference is shown"


def test_another_metric_decides_and_plots_stand_below(ran: Page) -> None:
    patch = ran.call("runs.decide", {"metric": "f1"}, a="first", b=SECOND)
    assert patch.go == f"#/runs/compare?a=first&b={SECOND}&metric=f1"
    html = view_of(ran, f"runs/compare?a=first&b={SECOND}&metric=f1")
    assert "F1" in texts(html) and "Quality against" in html and "<svg" in html


def test_three_runs_are_ranked(ran: Page) -> None:
    if not (ran.workbench.workspace.runs / "third").exists():
        run_of(ran.workbench, "third", llm="picky", max_errors=99)
    html = view_of(ran, f"runs/compare?r0=first&r1={SECOND}&r2=third")
    assert "3 runs on" in html and "Holm" in html
    assert "interval corrected" in html and "hold together at 95 %" in html
    ran.call("runs.delete", {"id": "third"})


def test_a_comparison_writes_shares_in_percent_and_times_in_seconds(ran: Page) -> None:
    address = f"runs/compare?a=first&b={SECOND}"
    html = view_of(ran, address)
    metrics = texts(html[html.index("compare-metrics") :].partition("</table>")[0])
    assert re.search(r"EM \d+\.\d %", metrics) and not re.search(r"\b0\.\d{4}\b", metrics)
    assert "points" in texts(html)
    timed = view_of(ran, f"{address}&metric=seconds")
    timed = texts(timed.partition("compare-lost")[0])
    assert re.search(r"Seconds [+−][\d.]+ m?s", timed) and "points" not in timed


def test_a_run_leads_to_its_baselines_and_to_mlflow(ran: Page) -> None:
    html = view_of(ran, "runs/run?id=first")
    assert 'href="#/experiments/list?run=first"' in html
    assert 'data-do="runs.mlflow" data-run="first"' in html


def test_ticked_runs_are_compared_and_fewer_than_two_are_refused(ran: Page) -> None:
    go = ran.call("runs.compare", {"pick": f"first/{SECOND}"}).go
    assert go == f"#/runs/compare?a=first&b={SECOND}"
    refused(ran, "runs.compare", {"pick": "first"}, "Tick two or more")


def test_a_run_is_renamed_and_its_folder_stays(ran: Page) -> None:
    ran.call("runs.rename", {"id": SECOND, "as": "my echo"})
    assert "my echo" in text_of(ran, f"runs/run?id={SECOND}")
    ran.call("runs.rename", {"id": SECOND, "as": ""})
    assert "read · k 1 · echo" in text_of(ran, f"runs/run?id={SECOND}")


@pytest.mark.parametrize("damage", ["[]", '{"title": 5}', "", '{"title": null}'])
def test_a_damaged_title_is_marked_with_its_mend_and_the_run_stays_whole(
    ran: Page, damage: str
) -> None:
    path = ran.workbench.runs.open(SECOND).path / TITLE
    path.write_text(damage)
    row = run_list.run_row(ran.workbench.workspace, SECOND)
    assert row.title == f"{SECOND} (title.json was damaged by another program; rename the run)"
    assert row.mean is not None
    ran.call("runs.rename", {"id": SECOND, "as": ""})
    assert run_list.run_row(ran.workbench.workspace, SECOND).title == "read · k 1 · echo"


def test_a_deleted_run_comes_back_from_the_bin(ran: Page) -> None:
    patch = ran.call("runs.delete", {"id": "first"})
    assert texts(patch.undo) == "Bring back" and 'data-id="first"' in patch.undo
    drawer = ran.call("runs.open_bin").drawer
    count = len(run_list.in_bin(ran.workbench.workspace))
    assert "first tiny-qa" in texts(drawer) and texts(drawer).endswith(f"Empty the bin ({count})")
    assert f"Delete {plural(count, 'run')} in the bin for good?" in drawer
    ran.open("runs/list")  # the other run still has another name than the one in the bin
    assert "read · k 1 · echo" in text_of(ran, f"runs/run?id={SECOND}")
    for gone in (
        ran.open("runs/run?id=first"),
        ran.call("runs.question", {"run": "first", "id": "q2"}, id="first"),  # another window
    ):
        said = texts(gone.html["v-runs-run"])
        assert "is in the bin; bring it back to read it. Bring it back" in said
    patch = ran.call("runs.bring_back", {"id": "first"}, id="first")
    assert patch.title == "first" and "EM 12.5 %" in texts(patch.html["v-runs-run"])
    refused(ran, "runs.restore", {"id": "first"}, "in the bin")


def test_emptying_the_bin_says_how_many_runs_are_gone(page: Page) -> None:
    for name in ("one", "two"):
        run_of(page.workbench, name)
        page.call("runs.delete", {"id": name})
    assert page.call("runs.empty_bin").say == "Deleted 2 runs."
    assert not run_list.in_bin(page.workbench.workspace)


def test_a_new_run_says_of_gold_pages_only_what_is_so(ran: Page) -> None:
    folder = ran.workbench.workspace.path / "datasets"
    (folder / "plain.jsonl").write_text(
        json.dumps({"id": "a", "input": "Which moon?", "output": [{"answer": "Titan"}]}) + "\n"
    )

    def plan(**changes: str) -> str:
        return texts(ran.call("runs.check", {"chain": "read", **changes}).html["new-plan"])

    assert "All gold pages are in the index." in plan(dataset="tiny-qa")
    without = plan(dataset="plain")
    assert "The questions name no gold pages, so their retrieval cannot be scored." in without
    assert "All gold pages" not in without
    assert "gold pages" not in plan(dataset="plain", chain="closed")


def test_a_closed_book_loses_questions_in_the_answer_and_has_no_r_precision(ran: Page) -> None:
    chosen = BenchmarkOptions(dataset="tiny-qa", run=RunOptions(track=False))
    complete(
        ran.workbench.runs.run(of_chain(ran.workbench.workspace, "closed", chosen, run="shut"))
    )
    view_of(ran, "runs/run?id=shut")
    ran.call("runs.stages", {"run": "shut"})
    words = text_of(ran, "runs/run?id=shut&only=wrong")
    assert "not in the answer" in words and "not retrieved" not in words
    assert "R-precision" not in words.partition("Time a question")[0]
    assert "8 questions are few, so the intervals are wide." in words


def test_the_time_of_a_judge_is_no_time_of_the_chain(ran: Page) -> None:
    judge = run_views.judge_lines()[0][0]
    fields = {"chain": "read", "dataset": "tiny-qa", "judge": judge, "judge_model": "echo"}
    plan = texts(ran.call("runs.check", fields).html["new-plan"])
    assert "a judge is asked about every answer" in plan and "a few seconds" not in plan


def test_a_new_run_says_what_it_will_take_before_it_starts(ran: Page) -> None:
    ran.open("build/one?set=tiny-qa&chain=read")
    dialog = texts(ran.call("runs.new").dialog)
    assert "8 questions of tiny-qa · tiny → titan" in dialog
    assert "8 of 8 answers are in the cache, so it takes a few seconds" in dialog
    assert dialog.endswith("Run 8 questions")
    patch = ran.call("runs.check", {"chain": "read", "dataset": "starter-qa", "limit": "50"})
    plan = texts(patch.html["new-plan"])
    assert "as earlier runs" in plan and "cache" not in plan
    assert texts(patch.html["new-start"]) == "Run 50 questions"
    patch = ran.call("runs.check", {"chain": "read", "dataset": "tiny-qa", "limit": "0"})
    assert "The number of questions is 0" in texts(patch.html["new-plan"])
    assert "50 questions" in plan and "gold pages are in this index" in plan
    patch = ran.call("runs.check", {"chain": "read", "dataset": "tiny-qa", "metric": ["nosuch"]})
    assert "nosuch" in texts(patch.html["new-plan"])


def test_a_new_run_runs_as_a_job_and_is_read_while_it_runs(ran: Page) -> None:
    fields = {"chain": "read", "dataset": "tiny-qa", "llm": "slow", "name": "night"}
    patch = ran.call("runs.start", {**fields, "batch_size": "2"})
    assert patch.go == "#/runs/run?id=night"
    ran.open("runs/run?id=night")
    ended(ran, "run", "night")
    at_the_end = ran.call("runs.live", {"run": "night"}, id="night")
    assert 'id="step-1"' in at_the_end.html["run-question"], "the row that is marked is shown"
    assert "run-question" not in ran.call("runs.live", {"run": "night"}, id="night", q="q2").html
    assert "8 questions" in text_of(ran, "runs/run?id=night")
    refused(ran, "runs.start", fields, "exists already")
    ran.call("runs.delete", {"id": "night"})


def test_a_run_stops_at_its_spending_limit_and_says_so(page: Page) -> None:
    folder = page.workspace.path
    fields = {"chain": "read", "dataset": "tiny-qa", "llm": "paid", "batch_size": "1", "name": "a"}
    assert "Spending limit (US$)" in texts(page.call("runs.new").dialog)
    plan = page.call("runs.check", {**fields, "max_usd": "-1"}).html["new-plan"]
    with paid_model(folder) as server:
        assert "must be above 0" in texts(plan)
        page.call("runs.start", {**fields, "max_usd": "0.025"})
        assert ended(page, "run", "a").status == "stopped"
        assert 3 <= len(server.bodies) < 8
    assert "Stopped at the spending limit" in text_of(page, "runs/run?id=a")
    assert "Stopped at the spending limit" in texts(job_news(page.workbench).list)


def test_judges_of_the_page_stop_at_the_limit(page: Page) -> None:
    run_of(page.workbench, "a")
    with paid_model(page.workspace.path) as server:
        judge = {"judge": "rgb-rejection", "judge_model": "paid", "max_usd": "0.01"}
        page.call("runs.rescore", {"run": "a", **judge})
        assert ended(page, "scoring", "a").status == "stopped" and len(server.bodies) < 8


def test_a_run_has_its_title_in_the_jobs_and_before_its_folder_is_there(page: Page) -> None:
    bench = page.workbench
    options = BenchmarkOptions(dataset="tiny-qa", run=RunOptions(track=False))
    prepared = of_chain(bench.workspace, "read", options)
    going = Job("run", prepared.name, prepared)
    assert run_list.titles(bench.workspace, [(going.name, going.identity)]) == {
        prepared.name: "read"
    }
    page.call("runs.start", {"chain": "read", "dataset": "tiny-qa"})
    (job,) = bench.jobs.list("run")
    ended(page, "run", job.name)
    assert texts(job_news(bench).list).startswith("Run read ")
    assert job.name not in job_news(bench).list


def test_no_empty_list_is_shown_while_the_first_run_starts(page: Page) -> None:
    end = threading.Event()

    def work(job: Job) -> Iterator[str]:
        yield "starting"
        end.wait(20)

    page.workbench.jobs.submit("run", "first", None, work)
    html = view_of(page, "runs/list")
    assert "first" in texts(html) and "No run yet" not in html
    end.set()


def test_a_stopped_run_is_resumed(ran: Page) -> None:
    fields = {"chain": "closed", "dataset": "tiny-qa", "llm": "slow", "name": "halt"}
    ran.call("runs.start", {**fields, "batch_size": "1"})
    answers, deadline = ran.workbench.workspace.runs / "halt/episodes.jsonl", time.monotonic() + 20
    while not answers.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    ran.call("runs.stop", {"id": "halt"})
    ended(ran, "run", "halt")
    assert "Resume" in view_of(ran, "runs/run?id=halt")
    ran.call("runs.resume", {"run": "halt"})
    ended(ran, "run", "halt")
    assert "8 questions" in text_of(ran, "runs/run?id=halt")
    ran.call("runs.delete", {"id": "halt"})


@pytest.mark.parametrize("form", ["csv", "jsonl", "trec", "qrels", "kilt", "r-eval"])
def test_a_run_is_taken_away_in_every_form(ran: Page, form: str) -> None:
    assert ran.call("runs.download", {"run": "first", "shape": form}).download.text


def test_a_run_is_taken_away_as_a_report(ran: Page) -> None:
    file = ran.call("runs.report", {"run": "first"}).download
    assert file.name == "first.html" and "<script" not in file.text


def test_a_run_is_scored_by_more_metrics(ran: Page) -> None:
    assert "bleu" in ran.call("runs.ask_metrics", {"run": "first"}).dialog
    ran.call("runs.rescore", {"run": "first", "metric": ["bleu"], "judge": ""})
    assert ended(ran, "scoring", "first").error is None
    assert "BLEU" in text_of(ran, "runs/run?id=first&part=metrics")
    refused(ran, "runs.rescore", {"run": "first"}, "No metric is chosen")


def test_a_judge_scores_a_run_and_its_card_stands_with_those_of_the_metrics(ran: Page) -> None:
    add_llm(ran.workspace.path, "critic", default="Yes.")
    dialog = texts(ran.call("runs.ask_metrics", {"run": SECOND}).dialog)
    assert "rgb-errors 1 for an answer that noticed wrong documents" in dialog
    ran.call("runs.rescore", {"run": SECOND, "judge": "rgb-errors", "judge_model": "critic"})
    assert ended(ran, "scoring", SECOND).error is None
    words = text_of(ran, f"runs/run?id={SECOND}&part=metrics")
    cards = words.partition("Metric cards")[2]
    assert "ED* (critic) Definition 1 for an answer that noticed" in cards
    assert "Needs a language model" in cards and "Source RGB, Chen et al. 2023" in cards
    assert "Beware Only ASCII punctuation" in cards, "the card of em"


def test_a_scoring_whose_judge_cannot_be_loaded_fails_and_the_metrics_say_so(ran: Page) -> None:
    add_llm(ran.workspace.path, "gone", "openai_compatible", **REFUSED)
    ran.call("runs.rescore", {"run": "first", "judge": "rgb-errors", "judge_model": "gone"})
    job = ended(ran, "scoring", "first")
    sentence = "The judge 'rgb-errors:gone' gave no scores: "
    assert job.status == "failed" and sentence in str(job.error)
    assert "Not scored: rgb-errors:gone (" in text_of(ran, "runs/run?id=first&part=metrics")


def test_predictions_of_another_program_become_a_run(ran: Page, tmp_path: Path) -> None:
    file = tmp_path / "guess.jsonl"
    assert "Import predictions" in view_of(ran, "runs/list")
    assert "Choose a file" in ran.call("runs.ask_predictions").dialog
    taken = ran.call("runs.download", {"run": "first", "shape": "kilt"})
    file.write_text(taken.download.text)
    files = [{"path": str(file), "name": "guess.jsonl"}]
    patch = ran.call("runs.import_file", {"files": files, "dataset": "tiny-qa", "as": "theirs"})
    assert patch.go == "#/runs/run?id=theirs"
    words = text_of(ran, "runs/run?id=theirs")
    assert "EM 12.5 %" in words and "Price unknown imported predictions do not say it" in words
    asked = RowWindow({"where": "theirs"}, 0, 1, ran.session("w"))
    ((name, row),) = _runs_list.run_rows(ran, asked).rows
    assert name == "theirs" and "none" not in texts(row), "no price is known"
    cost = text_of(ran, "runs/run?id=theirs&part=cost")
    assert "Cost unknown: imported predictions do not say it." in cost
    ran.call("runs.delete", {"id": "theirs"})


def test_a_damaged_run_stays_in_the_list_with_its_problem(ran: Page) -> None:
    folder = ran.workbench.workspace.runs / "broken"
    folder.mkdir()
    (folder / "run.json").write_text("{")
    listed = dict(rows(ran, view_of(ran, "runs/list"), "runs"))
    assert texts(listed["broken"]).startswith("broken") and "run.json" in listed["broken"]
    (folder / "run.json").unlink()


def test_a_run_of_a_sweep_is_titled_by_what_it_varies(page: Page) -> None:
    run_of(page.workbench, "sweep-20260101-120000 k=1, index.chunk_size=64")
    listed = rows(page, view_of(page, "runs/list"), "runs")
    assert texts(listed[0][1]).startswith("read · k 1, chunk size 64")


def test_the_bars_of_the_list_are_filled_when_the_steps_were_read(page: Page) -> None:
    run_of(page.workbench, "one")
    assert "runs.losses" in view_of(page, "runs/list")
    assert "runs.losses" not in page.call("runs.losses").html["runs-rows"]


def test_several_runs_are_ranked_in_percent_under_their_titles(ran: Page) -> None:
    words = text_of(ran, f"runs/compare?r0=first&r1={SECOND}")
    assert "read · k 1 · echo" in words and "points" in words and "0.1250" not in words


def test_the_groups_of_a_run_are_a_fold_and_a_filter(ran: Page) -> None:
    assert "Why it fails" in view_of(ran, "#/runs/run?id=first")
    words = texts(ran.call("runs.why", {"run": "first"}).html["run-why"])
    assert "are too few for groups by meaning; that takes 30" in words
    assert "By question word" in words and "word-which" in words
    one = view_of(ran, "#/runs/run?id=first&only=word-who")
    assert [qid for qid, _ in rows(ran, one, "run-questions")] == ["q5"]
    assert 'data-only="word-who"' in one, "a chip shows the group"
    unknown = ran.open("#/runs/run?id=first&only=word-why")
    assert "no group 'word-why'" in unknown.say
    assert len(rows(ran, str(unknown.html["v-runs-run"]), "run-questions")) == 8


def test_the_graders_of_a_run_are_audited_in_a_fold(ran: Page) -> None:
    assert "Graders" in view_of(ran, "#/runs/run?id=first&part=metrics")
    card = texts(ran.call("runs.audit", {"run": "first", "grader": "f1"}).html["run-graders"])
    assert "first: f1 against em" in card and "Reliability" in card
    chosen = {"run": "first", "grader": "f1", "truth": "labels", "precision": "70"}
    card = texts(ran.call("runs.audit", chosen).html["run-graders"])
    assert "label some first" in card
    wrong = ran.call("runs.audit", {"run": "first", "grader": "f1", "precision": "300"})
    assert "it must lie between 0 and 1" in texts(wrong.html["run-graders"])
