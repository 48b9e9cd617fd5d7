"""Build on one question: the chain as fields, execution, verdicts, staleness, versions, code."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from page_views import FIELDS, ended, hanging_model, refused, run_of, text_of, texts, view_of
from small_workspace import record, write_lines

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Gold, Hit, Passage
from rallebench.gui.answers import places
from rallebench.gui.frame import Page
from rallebench.gui.patches import PageEvent, Patch, problem
from rallebench.gui.places import _steps
from rallebench.gui.places._bench import Bench, Execution
from rallebench.gui.places._few_table import VariantGrid
from rallebench.gui.places._steps import excerpt
from rallebench.services.forecasts import Forecasts
from rallebench.views import run_list
from rallebench.views.chain_forms import from_address


@pytest.fixture
def build_page(page: Page) -> Page:
    page.open("build/one?set=tiny-qa&chain=read")
    return page


def bench(page: Page) -> Bench:
    return page.session("w").state(Bench)


def test_the_page_opens_with_a_question_already_executed(build_page: Page) -> None:
    patch = build_page.open("build/one", window="w")
    result = texts(patch.html["v-build-one"])
    assert "Right" in result and "answer Titan gold Titan" in result
    assert "gold page at rank 1" in result and "starter" not in patch.chain


def test_a_first_execution_says_how_many_of_its_models_and_indexes_are_loaded(page: Page) -> None:
    going = Execution("open", "loading")
    going.needs = going.missing(page, ("starter-bm25", "extractive-reader"))
    assert "1 of 2 · Loading" in texts(going.words(page, ()))
    list(page.workbench.models.load("starter-bm25", "retriever"))
    assert "2 of 2 · Loading" in texts(going.words(page, ()))
    assert going.missing(page, going.needs) == ("extractive-reader",)
    going.needs = ("starter-bm25",)
    assert "1 of" not in texts(going.words(page, ()))


@pytest.mark.slow
def test_loading_the_reader_says_at_which_stage_it_is(page: Page) -> None:
    said = [*page.workbench.models.load("extractive-reader", "language model")]
    assert "loading extractive-reader: reading its weights" in said


def test_a_wrong_answer_says_where_it_was_lost(build_page: Page) -> None:
    patch = build_page.call("build.pick", {"id": "q2"})
    result = texts(patch.html["build-result"])
    assert "Wrong answer Titan gold Triton" in result and "In the answer lost here" in result
    assert patch.address == "#/build/one?set=tiny-qa&q=q2"


def test_a_passage_begins_shortly_before_its_first_mark() -> None:
    text = f"{'Salt and water. ' * 20}Glands on the tongue help."
    shown = excerpt(text, places(text, ["tongue"]))
    lead, _, rest = shown.partition("</span> <span>")
    assert texts(lead).startswith("Salt and water") and len(texts(rest)) < 90
    assert '<mark class="">tongue</mark>' in rest and texts(shown) == text
    assert "lead" not in excerpt("The tongue.", places("The tongue.", ["tongue"]))


def test_passages_beyond_k_stand_below_a_divider(build_page: Page) -> None:
    patch = build_page.call("build.run", {**FIELDS, "a0_k": "1"})
    assert "beyond k = 1" in patch.html["build-result"]


def test_what_an_edit_made_out_of_date_is_still_marked_after_a_reload(build_page: Page) -> None:
    fresh = build_page.open("build/one")
    assert fresh.event is None
    build_page.call("build.edit", {**FIELDS, "a1_target": "echo"})
    assert build_page.open("build/one").event == PageEvent("rb-stale", index=1)
    build_page.call("build.undo")
    assert build_page.open("build/one").event is None


def test_a_stop_lets_go_of_a_server_that_hangs_and_ends_the_question(build_page: Page) -> None:
    with hanging_model(build_page.workbench, "far") as server:
        message = {"action": "build.run", "window": "w", "data": {**FIELDS, "a1_target": "far"}}
        stream = build_page.act(message).stream
        assert server.until(lambda: bool(server.bodies), 10)
        build_page.stop({"action": "build.run", "window": "w"})
        patch = build_page.more({"stream": stream})
        assert patch.over and patch.html["one-status"] == "Stopped"
        assert "Stopped before there was an answer" in patch.html["build-result"]
        assert patch.event == PageEvent("rb-fresh"), "nothing is out of date"
        again = view_of(build_page, "build/one")
        assert "is running" not in again and texts(again).count("Stopped") == 2
        assert build_page.workbench.models.leases.wait(5)
    assert bench(build_page).running is None and bench(build_page).verdict_kind == ""


def test_the_answer_to_a_question_without_gold_is_not_marked_as_wrong() -> None:
    hits = (Hit(Passage("1", "It flows into the North Sea.", "Elbe", "1"), 1.0),)
    assert 'class="answer"' in _steps.passages(hits, Gold(("Baltic Sea",)), 1, "North Sea")
    assert 'class="answer"' not in _steps.passages(hits, Gold(), 1, "North Sea")


def test_an_edit_keeps_the_output_before_beside_the_new_one(build_page: Page) -> None:
    patch = build_page.call("build.run", {**FIELDS, "a1_target": "echo"})
    out = texts(patch.html["out-1"])
    assert out.startswith("Now") and "Before" in out and "Titan" in out
    assert 'class="dot"' in patch.chain
    assert json.loads(patch.store["rb-draft"])["chain"]["name"] == "read"


@pytest.fixture
def restarted_page(build_page: Page) -> tuple[Page, str]:
    """The page after a restart of the program, with the edited chain from the browser's storage."""
    draft = build_page.call("build.edit", {**FIELDS, "a0_k": "7"}).store["rb-draft"]
    return Page(build_page.workbench), draft


def test_edits_that_a_crash_left_behind_are_offered_and_restored(
    restarted_page: tuple[Page, str],
) -> None:
    page, draft = restarted_page
    address = {"set": "tiny-qa", "chain": "read"}
    patch = page.call("open", {"view": "build/one", "draft": draft}, **address)
    assert "Your unsaved edits of read are still here." in texts(patch.html["v-build-one"])
    assert not patch.store  # the browser keeps them until the user has decided
    assert bench(page).chain.actions[0].k == 2
    patch = page.call("build.restore_edits")
    assert bench(page).chain.actions[0].k == 7 and 'class="dot"' in patch.chain
    assert "still here" not in texts(page.call("open", {"view": "build/one"}).html["v-build-one"])


def test_edits_that_a_crash_left_behind_are_discarded_on_request(
    restarted_page: tuple[Page, str],
) -> None:
    page, draft = restarted_page
    page.call("open", {"view": "build/one", "draft": draft}, set="tiny-qa", chain="read")
    assert page.call("build.discard_edits") == Patch({"build-draft": ""}, store={"rb-draft": None})
    assert "still here" not in texts(page.call("open", {"view": "build/one"}).html["v-build-one"])


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"chain": 3}', '{"chain": {"name": 1}}'])
def test_a_damaged_draft_is_no_obstacle(page: Page, damaged: str) -> None:
    data = {"view": "build/one", "draft": damaged}
    patch = page.call("open", data, set="tiny-qa", chain="read")
    assert "still here" not in texts(patch.html["v-build-one"])


def test_a_window_without_edits_leaves_the_draft_of_another_window_alone(build_page: Page) -> None:
    build_page.call("build.edit", {**FIELDS, "a0_k": "7"})
    address = "build/one?set=tiny-qa&chain=read"
    assert not build_page.open(address, window="another").store


def test_undo_returns_to_the_chain_before(build_page: Page) -> None:
    build_page.call("build.edit", {**FIELDS, "a0_k": "7"})
    assert bench(build_page).chain.actions[0].k == 7
    build_page.call("build.undo")
    assert bench(build_page).chain.actions[0].k == 2
    for _ in range(3):
        bench(build_page).past.clear()
    assert "nothing to undo" in build_page.call("build.undo").say


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"a0_k": "0"}, "Action 1: k is 0; it must be a whole number from 1 to 10000."),
        ({"a0_k": "two"}, "Action 1: k is 'two'; it must be a number"),
        ({"a1_options": "[1]"}, "Action 2: the other settings must be a JSON object"),
        ({"a1_options": "{"}, "Action 2: the other settings are not valid JSON"),
        ({"a1_target": ""}, "Action 2 names no model; choose one."),
        ({"a1_template": "{nobody}"}, "nobody"),
        ({"count": "99"}, "reload the page"),
    ],
)
def test_a_chain_that_cannot_run_is_one_sentence(
    build_page: Page, changes: dict[str, str], sentence: str
) -> None:
    try:
        patch = build_page.call("build.run", {**FIELDS, **changes})
    except RalleError as error:
        assert sentence in str(error)
    else:
        assert sentence in texts(patch.html["build-result"])


@pytest.mark.parametrize("value", ["0", "99999", "", "2.5", "many"])
def test_an_impossible_k_names_its_field_when_it_is_typed_and_when_it_is_run(
    build_page: Page, value: str
) -> None:
    for action in ("build.edit", "build.run"):
        with pytest.raises(UsageError, match="k is") as refusal:
            build_page.call(action, {**FIELDS, "a0_k": value}, window="w")
        assert problem(refusal.value).at_field == "a0_k", action
    assert build_page.call("build.edit", {**FIELDS, "a0_k": "3"}, window="w").sound


def test_a_typed_question_is_asked_by_enter_and_its_button_comes_first(build_page: Page) -> None:
    body = build_page.call("build.filter_list", {"words": "Which sea?"}, window="w").html[
        "build-list"
    ]
    assert body.index("build.pick") < body.index("build-chips")
    assert 'data-enter="build.pick"' in view_of(build_page, "build/one")


def test_all_settings_of_a_model_survive_the_fields(build_page: Page) -> None:
    settings = {"a1_max_tokens": "9", "a1_temperature": "0.5", "a1_seed": "3"}
    settings |= {"a1_system": "Be short.", "a1_stop": "\\n\nEND", "a1_options": '{"top_p": 0.9}'}
    build_page.call("build.edit", {**FIELDS, **settings})
    texts_of = {"system": "Be short.", "stop": ["\n", "END"]}
    numbers = {"top_p": 0.9, "max_tokens": 9, "seed": 3, "temperature": 0.5}
    assert bench(build_page).chain.actions[1].generation == {**numbers, **texts_of}
    html = view_of(build_page, "build/one")
    assert "Be short." in html and "top_p" in html and ">\n\\n\nEND<" in html


def test_actions_are_added_moved_and_removed(build_page: Page) -> None:
    patch = build_page.call("build.add", {**FIELDS, "add": "identity"})
    assert [a.kind for a in bench(build_page).chain.actions] == ["retrieve", "generate", "identity"]
    assert "Pass on" in patch.html["chain-form"]
    build_page.call("build.undo")
    build_page.call("build.move", {**FIELDS, "index": "0", "by": "1"})
    assert [a.kind for a in bench(build_page).chain.actions] == ["generate", "retrieve"]
    build_page.call("build.undo")
    build_page.call("build.remove", {**FIELDS, "index": "1"})
    assert [a.kind for a in bench(build_page).chain.actions] == ["retrieve"]


def test_one_action_runs_on_what_the_earlier_ones_answered(build_page: Page) -> None:
    patch = build_page.call("build.run_action", {**FIELDS, "index": "1", "a1_target": "echo"})
    assert "Passages: Titan (moon), Titan is the largest moon" in texts(patch.html["out-1"])
    bench(build_page).steps.clear()
    refused(build_page, "build.run_action", {**FIELDS, "index": "1"}, "Action 1 has no output yet")


def test_a_prompt_is_shown_without_asking(build_page: Page) -> None:
    before = dict(bench(build_page).steps)
    patch = build_page.call("build.show_prompt", {**FIELDS, "index": "1"})
    assert (
        "Question: Which moon of Saturn" in patch.html["out-1"]
        and bench(build_page).steps == before
    )


def test_another_question_leaves_an_edited_chain_alone(build_page: Page) -> None:
    build_page.call("build.edit", {**FIELDS, "a0_k": "7"})
    build_page.call("build.pick", {"id": "q3"})
    build_page.call("build.choose_dataset", {"dataset": "tiny-qa"})
    assert bench(build_page).chain.actions[0].k == 7


def test_a_link_with_another_chain_asks_before_it_replaces_an_edited_one(build_page: Page) -> None:
    build_page.call("build.edit", {**FIELDS, "a0_k": "7"})
    patch = build_page.open("build/one?chain=title")
    assert "Replace the chain that you edited?" in patch.dialog
    assert bench(build_page).chain.actions[0].k == 7
    build_page.call("build.replace_chain", {"chain": "title"})
    assert bench(build_page).chain.name == "title"
    build_page.call("build.undo")
    assert bench(build_page).chain.actions[0].k == 7


def test_the_list_filters_by_words_and_verdict(build_page: Page) -> None:
    build_page.call("build.pick", {"id": "q2"})
    patch = build_page.call("build.filter_list", {"words": "danube"})
    assert (
        'data-total="2"' in patch.html["build-list"] and "Ask “danube”" in patch.html["build-list"]
    )
    build_page.call("build.filter_list", {"words": ""})
    patch = build_page.call("build.filter_list", {"only": "wrong"})
    assert 'data-total="1"' in patch.html["build-list"]
    key = {"dataset": "tiny-qa", "only": "wrong", "words": "", "window": "w"}
    message = {"list": "build-questions", "key": key, "start": 0, "count": 60, "window": "w"}
    rows = build_page.list_rows(message)
    assert [id for id, _ in rows.rows] == ["q2"] and "Titan" in rows.rows[0][1]


def test_a_question_of_ones_own_has_no_verdict(build_page: Page) -> None:
    patch = build_page.call("build.pick", {"words": "Is Titan a moon?"})
    assert "No verdict" in texts(patch.html["build-result"])
    assert "Your own question" in patch.html["v-build-one"]


def test_saving_keeps_the_version_before(build_page: Page) -> None:
    bench(build_page).history.clear()
    build_page.call("build.edit", {**FIELDS, "a0_k": "7"})
    patch = build_page.call("versions.save_as", {"as": "read"})
    assert patch.say == "Saved as read." and 'class="dot"' not in patch.chain
    assert build_page.workbench.workspace.chain("read").actions[0].k == 7
    drawer = build_page.call("versions.show", {**FIELDS, "a0_k": "7"}).drawer
    assert drawer.index("version 2, saved") < drawer.index("version 1, saved")
    assert drawer.count("<small>as it is now") == 1 and "<del>2</del> <ins>7</ins>" in drawer
    build_page.call("versions.restore", {"index": "1"})
    assert bench(build_page).chain.actions[0].k == 2


def test_a_version_gets_a_name_and_keeps_it(build_page: Page) -> None:
    build_page.call("build.edit", {**FIELDS, "a0_k": "5"})
    build_page.call("versions.save_as", {"as": "read", "over": "on"})
    build_page.call("versions.name", {"index": "1", "label": "k 2, as published"})
    assert 'value="k 2, as published"' in build_page.call("versions.show").drawer
    build_page.call("versions.name", {"index": "1", "label": ""})
    assert "as published" not in build_page.call("versions.show").drawer
    build_page.call("build.edit", {**FIELDS, "name": "new"})
    build_page.call("build.run", {**FIELDS, "name": "new"})
    refused(build_page, "versions.name", {"index": "0", "label": "x"}, "save it, then name")


def test_the_versions_show_the_id_of_a_question_as_text(build_page: Page) -> None:
    hostile = {"id": "q<img src=x onerror=alert(1)>", "input": "Which moon?", "output": []}
    path = build_page.workbench.workspace.path / "datasets" / "hostile.jsonl"
    path.write_text(json.dumps(hostile))
    build_page.open("build/one?set=hostile&chain=read")
    build_page.call("build.run", {**FIELDS, "a0_k": "7"})
    drawer = build_page.call("versions.show", {**FIELDS, "a0_k": "7"}).drawer
    assert "executed on q&lt;img" in drawer and "<img" not in drawer


def test_saving_over_what_another_window_saved_asks_first(build_page: Page) -> None:
    chain = {"set": "tiny-qa", "chain": "read"}
    build_page.call("open", {"view": "build/one"}, window="other", **chain)
    build_page.call("build.edit", {**FIELDS, "a0_k": "7"}, window="other")
    build_page.call("versions.save_as", {"as": "read"}, window="other")
    build_page.call("build.edit", {**FIELDS, "a0_k": "9"})
    asks = build_page.call("versions.save_as", {"as": "read"})
    assert "not from this window" in asks.dialog and not asks.say
    assert build_page.workbench.workspace.chain("read").actions[0].k == 7
    build_page.call("versions.save_as", {"as": "read", "over": "on"})
    assert build_page.workbench.workspace.chain("read").actions[0].k == 9
    build_page.call("build.edit", {**FIELDS, "a0_k": "3"})
    assert build_page.call("versions.save_as", {"as": "read"}).say == "Saved as read."


def test_a_question_that_the_dataset_lacks_is_not_sent_to_a_model(build_page: Page) -> None:
    patch = build_page.open("build/one?set=tiny-qa&q=q99")
    assert patch.go == "#/build/one" and "tiny-qa has no question 'q99'" in patch.say
    assert bench(build_page).question == "q1"
    own = build_page.open("build/one?set=tiny-qa&ask=Is Titan a moon?")
    assert "Your own question" in own.html["v-build-one"]


def test_a_failed_action_has_no_output_and_its_error_stands_once(build_page: Page) -> None:
    patch = build_page.call("build.run", {**FIELDS, "a1_template": "{nothing}"})
    assert "failed" in patch.html["gist-1"] and "nothing" in texts(patch.html["build-result"])
    assert texts(patch.html["out-1"]) == "No reply: see the error."
    assert "Prompt as sent" not in patch.html["out-1"]
    assert "failed" in view_of(build_page, "build/one")


def test_the_line_of_an_action_follows_its_fields(build_page: Page) -> None:
    patch = build_page.call("build.edit", {**FIELDS, "a0_k": "7"})
    assert patch.html["what-0"] == "tiny · k 7"


def test_a_name_that_is_no_file_name_is_refused(build_page: Page) -> None:
    refused(build_page, "versions.save_as", {"as": "../up"}, "cannot be a file name")


@pytest.mark.parametrize("form", ["json", "yaml", "ralle", "python", "command"])
def test_the_chain_is_taken_away_in_every_form(build_page: Page, form: str) -> None:
    drawer = build_page.call("code.show", {**FIELDS, "shape": form}).drawer
    assert "tiny" in drawer or "--chain read" in drawer
    if form != "command":
        file = build_page.call("code.download", {"shape": form}).download
        assert file.name.startswith("read") and "tiny" in file.text


def test_a_chain_is_brought_in_as_text_and_undone(build_page: Page, tmp_path: Path) -> None:
    text = build_page.call("code.download", {"shape": "yaml"}).download.text
    build_page.call("code.paste", {"text": text.replace("k: 2", "k: 4")})
    assert bench(build_page).chain.actions[0].k == 4
    build_page.call("build.undo")
    assert bench(build_page).chain.actions[0].k == 2
    file = tmp_path / "mine.json"
    file.write_text("{}")
    files = [{"path": str(file), "name": "mine.json"}]
    refused(build_page, "code.upload", {"files": files}, r"mine\.json")


def test_a_chain_that_names_what_is_not_here_says_in_which_action(build_page: Page) -> None:
    text = build_page.call("code.download", {"shape": "yaml"}).download.text
    said = build_page.call("code.paste", {"text": text.replace("titan", "gone")}).say
    assert said == "Not known here: action 2 names gone. Choose another."


def test_texts_of_models_and_files_never_become_html(build_page: Page) -> None:
    hostile = "<img src=x onerror=alert(1)> {question}"
    patch = build_page.call("build.run", {**FIELDS, "a1_target": "echo", "a1_template": hostile})
    whole = json.dumps(replace(patch, store={}).to_json())
    assert "<img" not in whole and "&lt;img" in whole


def test_two_windows_have_their_own_chain_and_question(build_page: Page) -> None:
    build_page.open("build/one?set=tiny-qa&chain=title&q=q5", window="other")
    assert bench(build_page).chain.name == "read" and bench(build_page).question == "q1"


def test_run_on_a_dataset_goes_to_runs_with_the_edited_chain(build_page: Page) -> None:
    patch = build_page.call("build.benchmark", {**FIELDS, "a0_k": "9"})
    assert "New run" in patch.dialog and bench(build_page).chain.actions[0].k == 9


# a few questions


def test_a_variant_that_is_a_saved_chain_has_its_name_everywhere(build_page: Page) -> None:
    build_page.open("build/few")
    names = [name for name in build_page.workbench.workspace.chain_paths() if name != "read"]
    closed = build_page.workbench.workspace.chain("closed")
    fields = {"count": "1", "name": "closed", "about": closed.about, "a0_kind": "generate"}
    action = closed.actions[0]
    fields |= {"a0_template": action.template, "a0_target": action.target}
    assert "closed" in names and len(closed.actions) == 1
    grid = texts(build_page.call("few.add", fields).html["v-build-few"])
    assert "instead of" not in grid and "without action" not in grid and " closed " in grid
    assert "closed" in texts(build_page.call("few.ask_all").dialog)
    changed = texts(
        build_page.call("few.add", {**fields, "a0_template": "Now: {question}"}).html["v-build-few"]
    )
    assert "closed · prompt changed" in changed
    build_page.call("few.drop", {"index": "1"})
    assert "closed" in build_page.call("few.use", {"index": "0"}).chain


def test_a_variant_is_compared_cell_by_cell_and_only_what_is_new_is_asked(build_page: Page) -> None:
    build_page.open("build/few")
    patch = build_page.call("few.add", {**FIELDS, "a1_target": "echo"})
    html = patch.html["v-build-few"]
    assert "All answered" in html and html.count('class="down"') == 1
    assert "8 questions are too few to show a difference" in html and "−12.5 points" in html
    head = re.search(r'id="few-head-0">.*?</th>', html, re.DOTALL)
    assert head and re.search(r"%</u><small>\(\d+\.\d–\d+\.\d\)</small>", head[0]), "its interval"
    assert "Few questions" in head[0] or "8 questions" in head[0]
    refused(build_page, "few.add", {**FIELDS, "a1_target": "echo"}, "Nothing is different")
    used = texts(build_page.call("few.use", {"index": "0"}).html["v-build-few"])
    assert (
        "echo, as edited in Build" in used and bench(build_page).chain.actions[1].target == "echo"
    )
    build_page.call("few.add", {**FIELDS, "a0_k": "1"})
    assert "few-head-2" not in build_page.call("few.drop", {"index": "0"}).html["v-build-few"]


def test_a_chain_stands_in_the_grid_once_whether_edited_or_added(build_page: Page) -> None:
    build_page.open("build/few")
    build_page.call("few.add", {**FIELDS, "a0_k": "1", "later": "on"})
    build_page.call("build.edit", {**FIELDS, "a0_k": "1"})
    grid = view_of(build_page, "build/few")
    heads = [texts(head) for head in re.findall(r'id="few-head-\d">.*?</th>', grid, re.DOTALL)]
    assert len(heads) == 2 and "k 1" in heads[1]
    build_page.call("build.edit", {**FIELDS, "a0_k": "4"})
    assert view_of(build_page, "build/few").count('id="few-head-') == 3, "the variant is back"


@pytest.mark.slow
def test_an_edited_chain_stands_beside_the_saved_one_and_all_run(build_page: Page) -> None:
    build_page.call("build.run", {**FIELDS, "a1_target": "echo"})
    grid = text_of(build_page, "build/few")
    assert "compared with this" in grid and "echo, as edited in Build" in grid
    offered = build_page.call("few.ask_variant").dialog
    assert "the chain in Build" in offered and "version 1, saved: titan" in offered
    ticked = re.findall(r'name="variant"[^>]*value="(\w+)"', build_page.call("few.ask_all").dialog)
    started = build_page.call("few.run_all", {"variant": ticked})
    assert (started.go, started.say) == ("#/runs/list", "2 runs have started.")
    runs = [ended(build_page, "run", job.name) for job in build_page.workbench.jobs.list("run")]
    assert [job.status for job in runs] == ["finished", "finished"]
    assert {row.title for row in run_list.rows(build_page.workbench.workspace)} == {
        "read",
        "read · echo",
    }


@pytest.mark.parametrize("cached", [False, True])
def test_grid_and_new_run_foresee_the_same_in_the_same_words(
    build_page: Page, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    if not cached:
        monkeypatch.setattr(Forecasts, "in_cache", lambda *_: None)
    build_page.open("build/few?set=tiny-qa")
    build_page.call("few.add", {**FIELDS, "a1_target": "echo"})
    for cell in build_page.session("w").state(VariantGrid).cells.values():
        object.__setattr__(cell, "seconds", 30.0)
    label = re.search(r"Run on all 8 · ([^<]+)<", view_of(build_page, "build/few"))
    dialog = str(build_page.call("few.ask_all").dialog)
    first = re.findall(r'name="variant"[^>]*value="(\w+)"', dialog)[0]
    both = texts(dialog)
    one = texts(str(build_page.call("few.count_all", {"variant": first}).html["few-all"]))
    new = texts(build_page.call("runs.check", {"dataset": "tiny-qa"}).html["new-plan"])
    if cached:
        words = "8 of 8 answers are in the cache, so it takes a few seconds"
        assert label and label[1].strip() == "a few seconds"
        assert "2 runs of 8 questions · 16 of 16 answers are in the cache" in both
    else:
        words = "3–6 min, as the answers so far"
        assert label and label[1].strip() == "5–15 min"
        assert "2 runs of 8 questions · 5–15 min, as the answers so far." in both
    assert one == f"1 run of 8 questions · {words}." and words in new
    none = build_page.call("few.count_all", {}).html["few-all"]
    assert none == "No variant is ticked."


def test_without_a_wrong_question_the_grid_says_what_to_do(build_page: Page) -> None:
    assert (
        "is known to be wrong"
        in build_page.call("few.choose", {"sample": "wrong"}).html["v-build-few"]
    )


def test_questions_are_picked_by_hand_in_the_address(build_page: Page) -> None:
    html = view_of(build_page, "build/few?q=q1,q3")
    assert "2 questions" in html and "Lamar County" in html


def test_a_variant_is_renamed_in_the_grid_and_in_its_run(build_page: Page) -> None:
    build_page.call("few.add", {**FIELDS, "a1_target": "echo"})
    renamed = build_page.call("few.rename", {"index": "0", "as": "parrot"}).html["v-build-few"]
    assert "parrot" in texts(renamed) and "More for parrot" in renamed
    refused(build_page, "few.rename", {"index": "0", "as": "a/b"}, "without slashes")
    dialog = build_page.call("few.ask_all").dialog or ""
    keys = re.findall(r'name="variant"[^>]*value="(\w+)"', dialog)
    assert len(keys) == 2 and "parrot" in dialog
    assert build_page.call("few.run_all", {"variant": keys[1:]}).say == "1 run has started."
    (job,) = build_page.workbench.jobs.list("run")
    titles = run_list.titles(build_page.workbench.workspace, [(job.name, job.identity)])
    assert titles == {job.name: "parrot"}
    refused(build_page, "few.run_all", {}, "No variant is ticked")


def test_a_variant_says_what_it_costs_and_may_be_asked_later(build_page: Page) -> None:
    build_page.open("build/few")
    dialog = texts(build_page.call("few.ask_variant").dialog or "")
    assert "Asking it 8 questions takes 8 calls of models" in dialog
    grid = build_page.call("few.add", {**FIELDS, "a1_target": "echo", "later": "on"})
    assert "Ask for 16 answers" in texts(grid.html["v-build-few"])


def test_a_column_scores_every_answer_and_has_a_mean(build_page: Page) -> None:
    build_page.call("few.run")
    html = build_page.call("few.add_column", {"kind": "contains", "value": "Titan"}).html
    assert "contains “Titan” 100.0 %" in texts(html["v-build-few"])
    grid = texts(
        build_page.call("few.add_column", {"kind": "metric", "value": "f1"}).html["v-build-few"]
    )
    assert "F1 1" in grid and "F1 0" in grid
    again = {"kind": "metric", "value": "f1"}
    refused(build_page, "few.add_column", again, "has this column already")
    refused(build_page, "few.add_column", {"kind": "matches", "value": "("}, "not a pattern")
    left = build_page.call("few.drop_column", {"column": "metric:f1"}).html["v-build-few"]
    assert "F1" not in texts(left) and "contains" in left
    assert "contains" in text_of(build_page, "build/few"), "a reload keeps the columns"


def test_questions_are_asked_until_every_variant_is_decided(build_page: Page) -> None:
    rows = [
        record(f"m{i:02}", f"Which moon is number {i:02}?", "Titan", f"m{i}") for i in range(80)
    ]
    write_lines(build_page.workspace.path / "datasets" / "moons.jsonl", rows)
    build_page.open("build/few?set=moons")
    build_page.call("few.add", {**FIELDS, "a1_target": "echo", "later": "on"})
    bar = texts(build_page.call("few.choose", {"sample": "decided"}).html["v-build-few"])
    assert "Ask until it is decided" in bar
    grid = texts(build_page.call("few.run").html["v-build-few"])
    say = re.search(r"decided after (\d+) of 80 questions: worse than read by more than", grid)
    assert say and 10 <= int(say[1]) < 60 and "All answered" in grid
    grid_state = build_page.session("w").state(VariantGrid)
    assert len(grid_state.cells) == 2 * int(say[1]), "no other question was asked"


def test_the_grid_is_saved_with_whole_answers_and_scores(build_page: Page) -> None:
    build_page.call("few.add", {**FIELDS, "a1_target": "echo", "a1_template": "Why? " * 99})
    build_page.call("few.add_column", {"kind": "contains", "value": "Titan"})
    saved = build_page.call("few.export").download
    assert saved is not None and saved.name == "tiny-qa-grid.csv"
    rows = list(csv.DictReader(io.StringIO(saved.text)))
    assert len(rows) == 8 and rows[0]["gold"] == "Titan" and rows[0]["gold pages"] == "p1"
    assert rows[0]["read: answer"] == "Titan" and rows[0]["read: verdict"] == "right"
    assert rows[0]["read: em"] == "1.0" and rows[0]["read: contains “Titan”"] == "1.0"
    cells = build_page.session("w").state(VariantGrid).cells.values()
    longest = max(len(cell.answer) for cell in cells)
    assert max(len(row["echo · prompt changed: answer"]) for row in rows) == longest > 300, (
        "none is cut"
    )


def test_a_link_to_the_grid_holds_a_variant_that_is_no_saved_chain(build_page: Page) -> None:
    edited = {**FIELDS, "a0_k": "1", "a1_template": "Now: {question}"}
    address = build_page.call("few.add", edited).address
    assert "v0=~" in address and len(address) < 1000
    variant = build_page.session("w").state(VariantGrid).variants[0]
    build_page.open(address, window="x")
    assert build_page.session("x").state(VariantGrid).variants == [variant]
    whole = dict(parse_qsl(address.partition("?")[2]))["v0"]
    for broken in (whole[:-9], "~", "~!!", "~eJwrzS3ISaxUKEgtKk7NSQUAKWQFXQ"):
        with pytest.raises(UsageError, match="copy the whole link again"):
            from_address(build_page.workspace, broken)


def test_a_judge_says_how_many_calls_it_costs_and_judges_what_is_new(build_page: Page) -> None:
    reply = '{"truthfulness": 4, "relevance": 5}'
    strict = LLMEntry(backend="scripted", settings={"default": reply})
    build_page.workbench.workspace.save_llm("strict", strict)
    build_page.call("few.run")
    chosen = {"kind": "judge", "judge": "truthfulness", "judge_model": "strict"}
    dialog = texts(build_page.call("few.ask_column", chosen).dialog or "")
    assert "It judges 8 answers here, each by at least one call of the judging model." in dialog
    grid = texts(build_page.call("few.add_column", chosen).html["v-build-few"])
    assert "truthfulness (strict) 4" in grid and "All answered" in grid
    more = build_page.call("few.add", {**FIELDS, "a1_target": "echo", "later": "on"})
    assert "Ask for 8 answers, judge 8" in texts(more.html["v-build-few"])


# agent

AGENT = {"workflow": "react", "env": "wikipedia", "llm": "titan", "env.retriever": "tiny"}


def test_an_episode_is_followed_edited_continued_and_kept(build_page: Page) -> None:
    patch = build_page.call("agent.run", {**AGENT, "question": "q1", "max_steps": "2"})
    assert "Reached the limit of steps." in texts(patch.html["agent-side"])
    assert "Thought 1" in texts(patch.html["agent-episode"])
    assert "gold Titan" in texts(patch.html["agent-side"])
    at = re.search(r'agent.edit" data-at="(\d+)"', patch.html["agent-episode"])
    assert at
    assert "Continue from here" in build_page.call("agent.edit", {"at": at[1]}).drawer
    patch = build_page.call("agent.continue", {"at": at[1], "text": "Finish[Titan]"})
    assert "Right" in texts(patch.html["agent-side"])
    kept = build_page.call("agent.keep")
    assert kept.go.startswith("#/runs/run?id=")


def test_a_model_that_only_copies_is_no_agent_until_another_is_chosen(build_page: Page) -> None:
    html = view_of(build_page, "build/agent")
    assert "cannot act as an agent" not in html and 'value="titan" selected' in html
    reader = {**AGENT, "llm": "extractive-reader"}
    words = texts(build_page.call("agent.choose", reader).html["agent-form"])
    assert "extractive-reader only copies words from a prompt, so it cannot act as" in words
    assert "smollm2-135m-gguf" in words
    html = build_page.call("agent.choose", {**AGENT, "llm": "echo"}).html["agent-form"]
    assert "cannot act" not in html


def test_an_agent_runs_on_a_dataset_as_a_job(build_page: Page) -> None:
    run_of(build_page.workbench, "of a chain")
    dialog = texts(build_page.call("agent.benchmark", AGENT).dialog)
    assert dialog.startswith("Run the agent on a dataset Dataset") and "Chain" not in dialog
    assert "time unknown: no run" in dialog and dialog.endswith("Run 8 questions")
    fields = {"agent": "on", "dataset": "tiny-qa", "limit": "2", "name": "agent"}
    assert build_page.call("runs.start", fields).go == "#/runs/run?id=agent"
    assert ended(build_page, "run", "agent").error is None
    plan = build_page.call("runs.check", {"agent": "on", "dataset": "tiny-qa"}).html["new-plan"]
    assert "as earlier runs" in plan
    metrics = view_of(build_page, "runs/run?id=agent&part=metrics")
    assert "The agent" in metrics and "2 questions" in texts(metrics)


def test_an_unanswerable_question_says_that_declining_is_right(page: Page) -> None:
    record = {"id": "n1", "input": "Which ring has air?", "unanswerable": True}
    write_lines(page.workspace.path / "datasets" / "air.jsonl", [record])
    shy = LLMEntry(backend="scripted", settings={"default": "No answer."})
    page.workbench.workspace.save_llm("shy", shy)
    asked = text_of(page, "build/one?set=air&chain=read")
    assert "gold declining is right" in asked
    wrong = texts(page.call("build.run", FIELDS).html["build-result"])
    assert "Wrong answer Titan gold declining is right" in wrong
    assert "Answered, though the question has no answer and declining is right." in wrong
    right = texts(page.call("build.run", {**FIELDS, "a1_target": "shy"}).html["build-result"])
    assert "Right answer No answer. gold declining is right" in right
    assert "The answer declines, which is right: the question has no answer." in right
    message = {
        "list": "data-dataset",
        "key": {"view": "dataset", "id": "air", "find": ""},
        "start": 0,
        "count": 9,
        "window": "w",
    }
    assert "declining is right" in page.list_rows(message).rows[0][1]
