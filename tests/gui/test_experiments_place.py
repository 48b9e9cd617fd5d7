"""Experiments: the selection, the plan before anything starts, the running work, and the winner."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from page_views import refused, stored_noise, text_of, texts, view_of
from paying import paid_model
from small_suites import small_suites
from small_workspace import add_llm, record, write_lines

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.report import Estimate
from rallebench.experiments.benchmarks import published_names
from rallebench.experiments.published.rows import own_row
from rallebench.gui.frame import Page
from rallebench.gui.lists import ListState
from rallebench.gui.places import _published
from rallebench.gui.places._runs_list import RunGroup, list_entries
from rallebench.services import experiment_jobs
from rallebench.services.jobs import wait
from rallebench.views import published, run_list
from rallebench.views.experiment_design import Design

assert small_suites

# fmt: off
SWEEP: dict[str, Any] = {
    "chain": "read", "v:k": ["1", "2"], "strategy": "grid", "dataset": "tiny-qa", "limit": "", "metric": "",
    "name": "ks", "seed": "0",
}
# fmt: on
SUITE = {"suite": "small-alone", "shown": "small-alone", "llm": "titan", "limit": ""}


def sweep(page: Page, **changes: Any) -> str:
    """Select a sweep of k, and of the other fields that begin with "v:"; return its plan."""
    page.open("experiments/list?kind=sweep")
    fields = {**SWEEP, **changes}
    varied = {name[2:]: fields[name] for name in fields if name.startswith("v:")}
    page.session("w").state(Design).vary = varied
    return texts(page.call("experiments.change", fields).html["x-plan"])


def wait_for_jobs(page: Page) -> None:
    wait(page.workbench.jobs.list(), 60)


def ran(page: Page, **changes: Any) -> str:
    """A finished sweep of k; returns the list of finished experiments."""
    sweep(page, **changes)
    page.call("experiments.run", {**SWEEP, **changes})
    wait_for_jobs(page)
    return text_of(page, "experiments/list").partition("Done")[2]


# choosing


def test_a_new_window_begins_with_a_sweep_of_k_of_the_chain_in_build(page: Page) -> None:
    page.open("build/one?set=tiny-qa&chain=read")
    drawn = view_of(page, "experiments/list")
    assert "read, as in Build" in drawn and "Vary k (the chain has 2)" in texts(drawn)
    assert "Index trade-off" in drawn and "Published benchmark" in drawn


def test_a_chain_of_another_corpus_is_swept_on_a_dataset_that_it_covers(page: Page) -> None:
    chosen = '<option value="{}" selected>'.format
    drawn = view_of(page, "experiments/list")
    assert chosen("starter-qa") in drawn
    fields = {**SWEEP, "v:k": ["3"], "dataset": "starter-qa", "chain": "read"}
    assert chosen("tiny-qa") in page.call("experiments.change", fields).html["x-form"]
    page.call("experiments.change", fields)
    drawn = view_of(page, "experiments/list")
    assert chosen("starter-qa") in drawn  # chosen by the user, for the same index
    page.open("experiments/list?kind=tradeoff", window="other")
    fields = {"indexes": ["tiny"], "dataset": "starter-qa", "k": "5", "limit": ""}
    drawn = page.call("experiments.change", fields, window="other").html["x-form"]
    assert chosen("tiny-qa") in drawn


@pytest.mark.parametrize(
    ("paper", "title", "table"),
    [
        ("beir", "BEIR", "beir:2"),
        ("mtrag", "MTRAG", "mtrag:1"),
        ("browsecomp", "BrowseComp-Plus", "browsecomp:1"),
    ],
)
def test_a_benchmark_is_offered_by_its_title_with_its_settings_and_its_printed_table(
    page: Page, paper: str, title: str, table: str
) -> None:
    drawn = view_of(page, f"experiments/list?kind=suite&paper={paper}")
    assert f">{title}</button>" in drawn and 'name="s:data"' in drawn and f"table={table}" in drawn
    plan = texts(page.call("experiments.change", {"suite": paper, "shown": paper}).html["x-plan"])
    assert "The setting data is empty: it takes" in plan
    printed = text_of(page, f"experiments/published?table={table}")
    assert title in printed and "BM25" in printed


def test_the_sets_of_the_chosen_folder_are_offered(page: Page, tmp_path: Path) -> None:
    for name in ("en_fact.jsonl", "zh_int.json.gz", "articles_A_f.jsonl", "notes.txt"):
        (tmp_path / name).write_text("{}")
    page.open("experiments/list?kind=suite&paper=rgb")
    for suite, sets in (("rgb-noise", ["en_fact", "zh_int"]), ("barag-modes", ["A_f"])):
        fields = {"suite": suite, "shown": suite, "s:data": str(tmp_path)}
        page.call("experiments.change", {"suite": suite})
        drawn = page.call("experiments.change", fields).html["x-form"]
        offered = drawn.partition('<select name="s:set">')[2].partition("</select>")[0]
        assert all(f'<option value="{name}">' in offered for name in sets)
        assert "notes" not in offered
        drawn = page.call("experiments.change", {**fields, "s:data": "starter-qa"}).html["x-form"]
        assert '<select name="s:set">' not in drawn and 'name="s:set"' in drawn


def test_the_plan_names_runs_questions_calls_and_price_before_anything_starts(page: Page) -> None:
    plan = sweep(page)
    assert "2 variants 16 questions" in plan and "none local model" in plan
    assert "16 calls to models and 16 searches" in plan and "Run 2 variants" in plan
    assert not page.workbench.runs.list() and not page.workbench.jobs.list()


def test_a_plan_never_says_that_a_tenth_of_the_answers_makes_a_larger_difference(
    page: Page,
) -> None:
    sweep(page)  # the dataset that fits the index is selected once; afterwards the user's stays
    few = sweep(page, dataset="starter-qa", limit="12")
    assert re.search(
        r"12 questions show a difference of about \d\d\.\d points or more, if every change is", few
    )
    assert "if 10 % of the answers change" in sweep(page, dataset="starter-qa", limit="")


def test_a_step_without_fields_and_a_count_of_nothing_are_left_out(page: Page) -> None:
    drawn = view_of(page, "experiments/list?kind=suite&paper=barag")
    assert '<h2 class="part"><b>3</b>' in drawn
    tables = page.call("experiments.change", {"suite": "barag-tables"}).html["x-form"]
    assert "folder of run files" in tables and '<h2 class="part"><b>3</b>' not in tables
    page.open("experiments/list?kind=tradeoff")
    fields = {"indexes": ["tiny"], "dataset": "tiny-qa", "k": "5", "limit": ""}
    plan = texts(page.call("experiments.change", fields).html["x-plan"])
    assert "measurement" in plan and "0 questions" not in plan


def test_a_field_is_added_with_choices_of_its_own_and_removed_again(page: Page) -> None:
    sweep(page)
    steps = page.call("experiments.add_field", {**SWEEP, "field": "llm"}).html["x-form"]
    assert "Vary Model (the chain has" in texts(steps) and 'value="echo"' in steps
    plan = page.call("experiments.change", {**SWEEP, "v:llm": ["titan", "echo"]}).html["x-plan"]
    assert "4 variants" in texts(plan)
    steps = page.call("experiments.drop_field", {**SWEEP, "field": "llm"}).html["x-form"]
    assert "Vary Model" not in texts(steps)


def test_another_value_may_be_typed(page: Page) -> None:
    assert "3 variants" in sweep(page, **{"own:k": "4"})
    drawn = view_of(page, "experiments/list")
    assert 'id="x-v:k-4" value="4" checked' in drawn


def test_prompts_are_compared_whatever_commas_and_lines_they_have(page: Page) -> None:
    sweep(page)
    page.call("experiments.add_field", {**SWEEP, "field": "2.template"})
    dialog = page.call("experiments.ask_prompt", {"field": "2.template"}).dialog
    assert "Passages: {response[0]}" in dialog
    text = "First, (second),\n{question}"
    fields = {"field": "2.template", "title": "short one", "template": text}
    page.call("experiments.add_prompt", fields)
    done = ran_with(page, {**SWEEP, "v:k": ["2"], "v:2.template": ["as it is", "short one"]})
    assert "Sweep of k and prompt" in done
    run = page.workbench.runs.open("ks k=2, 2.template=short one")
    assert run.description().spec.settings["chain"]["actions"][1]["template"] == text


def ran_with(page: Page, fields: dict[str, Any]) -> str:
    page.call("experiments.run", fields)
    wait_for_jobs(page)
    return texts(page.call("experiments.news").html["x-done"])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"v:k": []}, "k: choose at least one value, or remove it."),
        ({"own:k": "many"}, "k"),
        ({"limit": "0"}, "The number of questions is 0; it must be at least 1, or empty."),
        ({"seed": "1.5"}, "The seed is 1.5; it must be a whole number."),
        ({"metric": "seconds of joy"}, "There is no metric"),
    ],
)
def test_what_cannot_run_is_a_sentence_in_the_plan_and_the_button_does_nothing(
    page: Page, changes: dict[str, Any], sentence: str
) -> None:
    sweep(page)
    plan = page.call("experiments.change", {**SWEEP, **changes}).html["x-plan"]
    assert sentence in texts(plan) and "disabled" in plan
    with pytest.raises(UsageError if "metric" not in changes else NotFoundError):
        page.call("experiments.run", {**SWEEP, **changes})


def test_any_number_of_questions_may_be_typed(page: Page) -> None:
    assert "2 variants 2 questions" in sweep(page, limit="1")
    for kind, most in (("sweep", "all"), ("suite", "all"), ("tradeoff", "200"), ("batch", "all")):
        drawn = view_of(page, f"experiments/list?kind={kind}")
        field = re.search(r'<input name="limit"[^>]*>', drawn)
        assert field and 'type="number"' in field[0] and f'placeholder="{most}"' in field[0]


def test_an_index_without_the_gold_pages_is_told_in_the_plan(page: Page) -> None:
    sweep(page)
    assert "gold pages are in this index" in sweep(page, dataset="starter-qa", limit="10")


def test_variants_that_search_the_same_index_count_it_once(page: Page) -> None:
    plan = sweep(page, **{"v:index.chunk_size": ["3"]})
    assert "It uses 1 index; 1 must be built first." in plan


def test_two_windows_choose_for_themselves(page: Page) -> None:
    sweep(page, limit="10")
    other = page.open("experiments/list", window="other")
    assert page.session("other").state(Design).limit == "" and "x-plan" in other.html


def test_the_steps_are_drawn_again_only_where_they_have_other_fields(page: Page) -> None:
    sweep(page)
    assert "x-form" not in page.call("experiments.change", {**SWEEP, "limit": "10"}).html
    assert "x-form" in page.call("experiments.change", {**SWEEP, "chain": "title"}).html


# estimates


def test_an_estimate_asks_three_questions_a_run_and_the_plan_has_what_they_took(page: Page) -> None:
    sweep(page)
    page.call("experiments.estimate", SWEEP)
    wait_for_jobs(page)
    plan = texts(page.call("experiments.show_plan", {"name": "ks"}).html["x-plan"])
    assert "as 6 questions asked" in plan and "Estimate again" in plan
    assert not page.workbench.runs.list()
    assert re.search("16 calls to models, [36] of them from the cache, and 16 searches", plan)


def test_an_estimate_that_failed_says_why(page: Page) -> None:
    sweep(page, **{"v:llm": ["mute"]})
    page.call("experiments.estimate", {**SWEEP, "v:llm": ["mute"]})
    wait_for_jobs(page)
    assert (
        "could not be probed" in page.call("experiments.show_plan", {"name": "ks"}).html["x-plan"]
    )


def test_a_plan_of_cached_answers_takes_no_time(page: Page) -> None:
    ran(page)
    plan = sweep(page, name="again")
    assert "a few seconds from the cache" in plan
    assert "16 calls to models, all from the cache, and 16 searches" in plan


def test_times_from_the_cache_are_marked_and_no_chart_compares_them(page: Page) -> None:
    ran(page)
    one = view_of(page, "experiments/one?id=ks")
    assert "Quality against seconds" in one and "from the cache" not in one
    ran(page, name="again")
    one = view_of(page, "experiments/one?id=again")
    assert one.count("<small>from the cache</small>") == 2 and "are not compared" in one
    assert "Quality against seconds" not in one and "Quality against tokens" in one


@pytest.mark.slow
def test_times_come_from_earlier_runs_of_the_same_chains_and_models(page: Page) -> None:
    assert "time unknown: no run of all of them yet" in sweep(page)
    ran(page)
    assert "a few seconds from the cache" in sweep(page, name="again")
    assert "time unknown: no run of all of them yet" in sweep(
        page, name="again", **{"own:k": "4"}
    )  # never run


# running


def test_a_sweep_runs_as_a_job_and_becomes_a_line_with_its_winner(page: Page) -> None:
    done = ran(page)
    assert "ks Sweep of k · 2 variants · tiny-qa" in done
    assert "No winner 2 are equal" in done and "12.5 %" in done and "no difference" in done
    assert re.search(r"12\.5 % \(\d\.\d–\d\d\.\d\)", done), (
        "the interval of 8 questions is wide, and shown"
    )
    one = view_of(page, "experiments/one?id=ks")
    assert "<h2>No winner: 2 are equal.</h2>" in one and "8 questions are too few" in one
    assert "Use the winner" not in one and "Use k 1 in Build" in one


def test_all_variants_share_the_spending_limit_that_is_typed(page: Page) -> None:
    limit = {"v:llm": ["paid"], "max_usd": "0.02"}
    with paid_model(page.workspace.path) as server:
        assert "--max-usd 0.02" in sweep(page, **limit)
        page.call("experiments.run", {**SWEEP, **limit})
        wait_for_jobs(page)
        assert 2 <= len(server.bodies) < 16
    job = page.workbench.jobs.get("sweep", "ks")
    assert job is not None and "spending limit" in str(job.error)
    refused(page, "experiments.run", {**SWEEP, **limit, "max_usd": "0"}, "must be above 0")


def test_all_runs_count_into_one_progress(page: Page) -> None:
    ran(page)
    job = page.workbench.jobs.get("sweep", "ks")
    assert job is not None
    whole = job.tasks[""]
    assert (whole.done, whole.total) == (16, 16)
    assert [part.state for part in experiment_jobs.parts(job)] == ["done", "done"]


@pytest.mark.slow
def test_stopped_and_continued_nothing_is_asked_twice(page: Page) -> None:
    sweep(page, **{"v:llm": ["slow"]})
    page.call("experiments.run", {**SWEEP, "v:llm": ["slow"]})
    job = page.workbench.jobs.get("sweep", "ks")
    assert job is not None
    follow = job.follow()
    while not (getattr(event := next(follow), "done", 0) and getattr(event, "task", "")):
        pass
    page.call("jobs.stop", {"id": job.id})
    wait_for_jobs(page)
    line = texts(page.call("experiments.news").html["x-done"])
    assert "Continue" in line and "not ended" in line
    assert "It has not ended" in view_of(page, "experiments/one?id=ks")
    page.call("experiments.resume", {"id": "ks"})
    wait_for_jobs(page)
    assert "Continue" not in texts(page.call("experiments.news").html["x-done"])


def test_an_experiment_that_failed_says_why_in_its_line(page: Page) -> None:
    ran(page, **{"v:llm": ["mute"]})
    one = view_of(page, "experiments/one?id=ks")
    assert "k 1, model mute" in texts(one) and "Every variant failed. " in texts(one)
    assert "Continue" in texts(one)


def test_the_list_of_what_is_done_is_read_again_only_after_an_end(page: Page) -> None:
    ran(page)
    assert "x-done" not in page.call("experiments.news").html


# one experiment


def test_the_ranking_has_paired_differences_intervals_and_holms_p(page: Page) -> None:
    ran(page, **{"v:llm": ["titan", "echo"]})
    one = view_of(page, "experiments/one?id=ks")
    assert "To the first" in one and "p, corrected" in one and "Holm" in one
    assert "#/runs/compare?a=" in one and "#/build/one?run=ks%20" in one
    assert "EM over k" in one and "<svg" in one
    by = view_of(page, "experiments/one?id=ks&by=f1")
    assert '<option value="f1" selected>' in by
    with pytest.raises(NotFoundError):
        page.open("experiments/one?id=ks&by=joy")


def test_names_and_labels_are_text_never_markup(page: Page) -> None:
    sweep(page)
    page.session("w").state(Design).vary["2.template"] = []
    fields = {"field": "2.template", "title": "<b>x</b>", "template": "{question}"}
    page.call("experiments.add_prompt", fields)
    page.call("experiments.run", {**SWEEP, "v:k": ["2"], "v:2.template": ["<b>x</b>"]})
    wait_for_jobs(page)
    assert "<b>x</b>" not in view_of(page, "experiments/one?id=ks")
    assert "<b>x</b>" not in view_of(page, "experiments/list")


def test_a_ranking_is_saved_in_four_forms(page: Page) -> None:
    ran(page)
    begins = {"csv": "variant,", "tex": r"\begin{tabular}", "html": "<!doctype html>", "json": "{"}
    for form, beginning in begins.items():
        file = page.call("experiments.export", {"id": "ks", "suffix": form}).download
        assert file.name == f"ks.{form}" and file.text.startswith(beginning)


def test_an_earlier_sweep_comes_back_into_the_steps(page: Page) -> None:
    ran(page, limit="4", metric="f1")
    page.session("w").put(Design())
    patch = page.call("experiments.again", {"id": "ks"})
    design = page.session("w").state(Design)
    assert patch.go == "#/experiments/list?kind=sweep"
    assert design.vary == {"k": ["1", "2"]} and (design.limit, design.metric) == ("4", "f1")
    assert design.chain == "read" and design.dataset == "tiny-qa" and design.name == ""


def test_an_address_of_what_is_not_there_opens_the_place_and_says_so(page: Page) -> None:
    patch = page.open("experiments/one?id=gone")
    assert patch.go == "#/experiments/list" and "no experiment gone" in patch.say


@pytest.mark.slow
def test_a_damaged_experiment_is_a_marked_row_and_told_when_it_is_opened(page: Page) -> None:
    ran(page)
    (page.workbench.workspace.path / "experiments" / "ks" / "report.json").write_text("[]")
    shown = view_of(page, "experiments/list")
    assert "ks" in shown and "report.json was damaged by another program" in shown
    with pytest.raises(BadFileError):
        page.open("experiments/one?id=ks")


# the other kinds


def suite(page: Page, **changes: Any) -> Any:
    """Select the small benchmark, and run it to its end."""
    page.open("experiments/list?kind=suite")
    page.session("w").state(Design).suite = "small-alone"
    fields = {**SUITE, "name": "mine", "s:words": "short", "s:times": "2", **changes}
    page.call("experiments.change", fields)
    page.call("experiments.run", fields)
    wait_for_jobs(page)
    return fields


@pytest.mark.usefixtures("small_suites")
def test_a_benchmark_shows_its_tables_plots_notes_and_parts(page: Page) -> None:
    suite(page)
    one = view_of(page, "experiments/one?id=mine")
    assert "Right &lt;i&gt;answers&lt;/i&gt;" in one and "12.5<u>%</u>" in one
    assert "50.0<u>%</u>" in one and "x-printed" in one, "the paper's row stands beside ours"
    assert "Know &lt;this&gt;." in one and "<svg" in one and "#/runs/run?id=mine%20time%201" in one
    assert "raw/answers.txt" in one


@pytest.mark.usefixtures("small_suites")
def test_every_run_of_a_suite_repeats_its_questions_as_often_as_typed(page: Page) -> None:
    fields = suite(page, name="often", repeats="3")
    plan = page.call("experiments.change", {**fields, "name": "new"}).html["x-plan"]
    assert "--repeats 3" in texts(plan)
    for run in ("often time 1", "often time 2"):
        report = page.workbench.runs.open(run).report()
        assert report is not None and report.repeats is not None
        assert report.repeats.requested == 3 and "No model samples" in report.repeats.sentence
    refused(page, "experiments.run", {**fields, "repeats": "0"}, "must be at least 1")


@pytest.mark.usefixtures("small_suites")
def test_settings_are_controls_of_their_kind_and_are_checked(page: Page) -> None:
    page.open("experiments/list?kind=suite")
    page.session("w").state(Design).suite = "small-alone"
    drawn = view_of(page, "experiments/list?kind=suite")
    assert '<select name="s:words">' in drawn
    assert 'name="s:times" value="2" step="1" min="1" max="5"' in drawn
    assert 'type="checkbox" name="s:search"' in drawn
    plan = page.call("experiments.change", {**SUITE, "s:times": "9"}).html["x-plan"]
    assert "times must be a whole number from 1 to 5" in texts(plan)
    plan = page.call("experiments.change", {**SUITE, "s:note": "wrong"}).html["x-plan"]
    assert "such a note is refused" in texts(plan)


def test_a_setting_is_a_chooser_of_what_it_names_and_a_path_is_typed_or_chosen(page: Page) -> None:
    page.session("w").put(design := Design(suite="rgb-testbed"))
    testbed = view_of(page, "experiments/list?kind=suite")
    assert '<input name="s:data" value="" placeholder="a dataset or a file"' in testbed
    assert 'list="s:data-offers"' in testbed and '<option value="tiny-qa">' in testbed
    assert '<select name="s:index">' in testbed and '<option value="tiny">' in testbed
    design.suite = "reval"
    grid = view_of(page, "experiments/list?kind=suite")
    assert '<select name="s:table">' in grid and '<option value="starter-scholars">' in grid
    for name, value in (("models", "echo"), ("workflows", "react"), ("env", "wikipedia")):
        assert f'type="checkbox" name="s:{name}" id="x-s:{name}-{value}"' in grid


@pytest.mark.usefixtures("small_suites")
def test_two_runs_of_a_benchmark_stand_beside_each_other_and_lead_to_compare(page: Page) -> None:
    suite(page)
    suite(page, name="other", llm="echo")
    one = view_of(page, "experiments/one?id=mine&beside=other")
    assert "Differences, question by question" in one
    assert "#/runs/compare?a=mine%20time%201&amp;b=other%20time%201" in one


def test_a_published_table_has_no_empty_column_and_short_cells_in_one_line(page: Page) -> None:
    drawn = view_of(page, "experiments/published?table=ralle:2")
    assert '<span class="nowrap">Petroni et al. 2021</span>' in drawn
    tells = [_published._tells(i, (("a", "", "1"), ("b", "", ""))) for i in range(3)]
    assert tells == [True, False, True]


@pytest.mark.usefixtures("small_suites")
def test_an_earlier_benchmark_comes_back_into_the_steps(page: Page) -> None:
    suite(page, **{"s:times": "1", "s:search": "on"})
    page.call("experiments.again", {"id": "mine"})
    settings = page.session("w").state(Design).settings["small-alone"]
    assert settings["times"] == "1" and settings["search"] == "on"


@pytest.mark.usefixtures("small_suites")
def test_files_are_saved_and_no_other_file_is_reached(page: Page) -> None:
    suite(page)
    file = {"id": "mine", "file": "raw/answers.txt"}
    saved = page.call("experiments.save_file", file).download
    assert saved.name == "answers.txt" and saved.base64
    for name in ("../../llms.json", "report.json", "gone.txt"):
        refused(page, "experiments.save_file", {"id": "mine", "file": name}, "has no file")


def test_errors_are_labelled_in_a_drawer_and_counted_by_the_next_run(page: Page) -> None:
    file = stored_noise(page.workbench.workspace.path / "experiments") / "errors-to-label.csv"
    head, row = "part,qid,category,question,required,prediction", '"Who, <b>now</b>?",Titan,Triton'
    file.write_text(f"{head}\n,q1,,{row}\n")
    assert "Label the errors" in view_of(page, "experiments/one?id=noise")
    drawer = page.call("experiments.edit_file", {"id": "noise", "file": file.name}).drawer
    assert "Who, &lt;b&gt;now&lt;/b&gt;?" in drawer and "long distance" in drawer
    page.open("experiments/list")
    labels = {"id": "noise", "file": file.name, "c:0": "concept confusion"}
    page.call("experiments.save_labels", labels)
    assert file.read_text().splitlines()[1] == f",q1,concept confusion,{row}"
    assert page.session("w").state(Design).settings["rgb-noise"]["labels"] == str(file)


LANDS = [record(f"q{i}", f"Which town rules land{i}?", f"Town{i}", f"page{i}") for i in range(60)]


def test_a_chain_is_improved_with_its_proof_and_stays_as_it_is(page: Page) -> None:
    folder = page.workspace.path
    write_lines(folder / "datasets" / "lands.jsonl", LANDS)
    replies = {rf"(?s)few words.*land{i}\?": f"Town{i}" for i in range(60)}
    add_llm(folder, "towns", replies=replies, default="nowhere")
    drawn = view_of(page, "experiments/list?kind=improve")
    assert "Budget (questions, 0: no limit)" in texts(drawn)
    assert "Improve a chain" in drawn and 'name="s:budget"' in drawn and 'name="s:writer"' in drawn
    fields = {
        "chain": "closed",
        "dataset": "lands",
        "llm": "towns",
        "shown": "improve",
        "s:budget": "400",
        "s:rewordings": "on",
        "s:examples": "2",
        "name": "better",
    }
    plan = texts(page.call("experiments.change", fields).html["x-plan"])
    assert "180 questions" in plan and "none local model" in plan and "--set budget=400" in plan
    assert "improve closed" in plan and "--model towns" in plan
    page.call("experiments.change", {**fields, "s:budget": "10"})
    few = texts(page.call("experiments.change", {**fields, "s:budget": "10"}).html["x-plan"])
    assert "The budget of 10 questions is too small" in few
    page.call("experiments.run", fields)
    wait_for_jobs(page)
    line = text_of(page, "experiments/list").partition("Done")[2]
    assert "Improvement of closed" in line and "prompt brief" in line and "unseen articles" in line
    one = view_of(page, "experiments/one?id=better")
    assert "Confirmed on 24 unseen articles: +100.0 points" in texts(one)
    assert "is saved as the chain better; closed stays as it is" in texts(one)
    assert "Use the variant in Build" in one and "Compare both on the unseen articles" in one
    assert page.workspace.chain("better").actions != page.workspace.chain("closed").actions
    (group,) = list_entries(run_list.rows(page.workspace), ListState())
    assert isinstance(group, RunGroup) and group.name == "better" and group.is_folded
    opened = list_entries(run_list.rows(page.workspace), ListState(folded="better"))
    assert len(opened) == 1 + len(group.rows) > 4, "a press shows its runs"
    page.call("experiments.again", {"id": "better"})
    again = view_of(page, "experiments/list?kind=improve")
    assert 'value="400"' in again and '<option value="closed" selected>' in again


@pytest.mark.slow
def test_baselines_of_a_run_stand_around_it(page: Page) -> None:
    ran(page)
    page.open("experiments/list?run=ks%20k%3D2")
    fields = {"run": "ks k=2", "name": ""}
    assert "3 baselines" in texts(page.call("experiments.change", fields).html["x-plan"])
    long = {**fields, "long_context": "on"}
    assert "4 baselines" in texts(page.call("experiments.change", long).html["x-plan"])
    assert "3 baselines" in texts(page.call("experiments.change", fields).html["x-plan"])
    page.call("experiments.run", fields)
    wait_for_jobs(page)
    one = text_of(page, "experiments/one?id=ks%20k%3D2%20baselines")
    assert "closed book" in one and "oracle passage" in one
    assert "the run less oracle passage" in one and "p, corrected" in one
    file = page.call("experiments.export", {"id": "ks k=2 baselines", "suffix": "csv"})
    assert "the run less oracle passage" in file.download.text


def test_a_folder_of_chains_is_run_and_ranked(page: Page) -> None:
    page.open("experiments/list?kind=batch")
    fields = {"chains": ["read", "title"], "dataset": "tiny-qa", "name": "both"}
    fields |= {"folder": "", "limit": "", "llm": ""}
    assert "2 chains" in texts(page.call("experiments.change", fields).html["x-plan"])
    page.call("experiments.run", fields)
    wait_for_jobs(page)
    one = text_of(page, "experiments/one?id=both")
    assert "No winner: title leads." in one and "read" in one


@pytest.mark.slow
def test_an_index_trade_off_is_measured_drawn_and_saved(page: Page) -> None:
    page.open("experiments/list?kind=tradeoff")
    fields = {"indexes": ["tiny"], "dataset": "tiny-qa", "limit": "", "k": "2", "name": "cost"}
    page.call("experiments.change", fields)
    page.call("experiments.run", fields)
    wait_for_jobs(page)
    one = view_of(page, "experiments/one?id=cost&x=disk&y=Rprec")
    assert "tiny has R-precision" in texts(one) and "R-precision against Disk" in one
    file = page.call("experiments.export", {"id": "cost", "suffix": "csv"}).download
    assert file.text.startswith("index,")


# published tables


def test_every_published_table_opens_and_is_saved(page: Page) -> None:
    for tables in published.list_tables().values():
        for name, _ in tables:
            drawn = view_of(page, f"experiments/published?table={name}")
            assert "arXiv" in drawn and "aria-current=true" in drawn
    drawn = view_of(page, "experiments/published?table=ralle:2")
    assert "Finetuned on KILT" in drawn and "finetuned_on_KILT" not in drawn
    assert ">LLM<" in drawn and ">yes<" in drawn and ">True<" not in drawn
    drawn = view_of(page, "experiments/published?table=rgb:1")
    assert "96.33" in drawn and "67.68 is not" in drawn
    saved = page.call("published.save", {"table": "rgb:1", "suffix": "tex"}).download.text
    assert "ChatGPT" in saved
    with pytest.raises(NotFoundError):
        page.open("experiments/published?table=rgb:99")
    saved = page.call("published.save", {"table": "rgb:1", "suffix": "json"}).download.text
    assert json.loads(saved)["rows"][0]["values"]["en_0"] == 96.33


def test_papers_lists_every_table_is_searched_and_reached_from_experiments(page: Page) -> None:
    assert 'href="#/experiments/published"' in view_of(page, "experiments/list")
    drawn = view_of(page, "experiments/published")
    assert drawn.count("table=") == 2 * len(published_names()), "a link and the row of every table"
    few = page.call("published.search", {"words": "diskann memory"}).html["x-papers"]
    assert "table=ralle:4" in few and "table=rgb" not in few
    assert (
        "try fewer of them" in page.call("published.search", {"words": "nothing"}).html["x-papers"]
    )
    assert "try fewer of them" in view_of(page, "experiments/published")


def test_our_runs_are_marked_in_the_table_and_its_drawings(page: Page) -> None:
    row = own_row("rgb_table1", "reader", {"en_0": Estimate(0.5, 0.4, 0.6, 300)}, "", ["Reworded."])
    experiments = page.workbench.workspace.path / "experiments"
    stored_noise(experiments, "night", published=[row.to_json()])
    drawn = view_of(page, "experiments/published?table=rgb:1")
    assert drawn.count('class="mine"') == 1 and "Ours (night): Reworded." in drawn
    assert "ours: reader (night)" in drawn, "in the drawing"
    listed = view_of(page, "experiments/published")
    assert listed.count('<td class="n">1</td>') == 1
