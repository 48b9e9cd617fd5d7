"""Chat: turns, search queries, citations, branches, and the ways to Build and to a dataset."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import page_views
import pytest
from full_disk import no_file_grows_beyond
from page_views import hanging_model, refused, text_of, texts, view_of
from small_workspace import add_llm, make_workspace, read_lines, scripted

from rallebench.core.errors import Hint, UsageError
from rallebench.core.files import read_json, write_json
from rallebench.gui.frame import Page
from rallebench.gui.messages import ActMessage
from rallebench.gui.patches import Patch
from rallebench.gui.places._bench import Bench
from rallebench.services.workbench import Workbench

FIELDS = {**page_views.FIELDS, "a1_target": "writer"}
MOON, SECOND = "Which moon of Saturn has a thick atmosphere?", "Who discovered it?"
REWRITTEN = "Who discovered Titan?"
REPLIES = {
    f"Last question: {SECOND}": REWRITTEN,
    f"Question: {SECOND[:-1]} first": "Nobody",
    REWRITTEN: "Titan was discovered by Huygens in 1655. I like cheese.",
    "Saturn": "Titan",
}


@pytest.fixture
def chat_page(tmp_path: Path) -> Iterator[Page]:
    folder = make_workspace(tmp_path)
    models = {**read_json(folder / "llms.json"), **scripted({"writer": {"replies": REPLIES}})}
    write_json(folder / "llms.json", models)
    bench = Workbench(folder)
    page = Page(bench)
    page.open("build/one?set=tiny-qa&chain=read")
    page.call("build.edit", FIELDS)
    yield page
    bench.close()


def bench(page: Page) -> Bench:
    return page.session("w").state(Bench)


def test_a_mark_that_the_disk_does_not_take_is_told(chat_page: Page) -> None:
    window = "0" * 32  # the conversations of a real window are stored
    chat_page.open("build/one?set=tiny-qa&chain=read", window=window)
    chat_page.call("build.edit", FIELDS, window=window)
    chat_page.call("chat.send", {"text": MOON}, window=window)
    with no_file_grows_beyond(10):
        patch = chat_page.call("chat.right", {"index": "0"}, window=window)
    assert patch.say.startswith("The conversation was not saved: Could not write")
    assert "turn right" in patch.html["turns"], "it stays in the window"
    assert chat_page.call("chat.wrong", {"index": "0"}, window=window).say == ""


def send(page: Page, *questions: str) -> str:
    """The turns after these questions."""
    html = ""
    for text in questions:
        html = page.call("chat.send", {"text": text}).html["turns"]
    return html


def labels(html: str) -> list[str]:
    """Labels of the citation marks, for screen readers."""
    return re.findall(r'<button[^>]*class="cite[^>]*aria-label="([^"]*)"', html)


def test_a_follow_up_shows_what_was_searched_for_and_the_rewriting_is_a_step(
    chat_page: Page,
) -> None:
    first = send(chat_page, MOON)
    assert "Searched for" not in first and "Rewritten question" not in first
    html = send(chat_page, SECOND)
    assert f"Searched for: {REWRITTEN}" in texts(html)
    assert "1 Rewritten question" in texts(html) and "Last question: Who discovered it?" in html
    about = text_of(chat_page, "build/chat")
    assert "writer rewrites a follow-up question so that it stands alone." in about


def test_a_stopped_turn_lets_go_of_a_server_that_hangs(chat_page: Page) -> None:
    with hanging_model(chat_page.workbench, "far") as server:
        chat_page.call("build.edit", {**FIELDS, "a1_target": "far"})
        chat_page.act({"action": "chat.send", "window": "w", "data": {"text": MOON}})
        assert server.until(lambda: bool(server.bodies), 10)
        assert "Stopped by you" in chat_page.call("chat.stop").html["turns"]
        assert chat_page.workbench.models.leases.wait(5)
    assert "Stopped by you" in view_of(chat_page, "build/chat")


def test_marks_stand_beside_the_sentences_that_a_passage_supports(chat_page: Page) -> None:
    html = send(chat_page, MOON, SECOND)
    words = texts(html)
    assert "in 1655. [1] I like cheese." in words, "the second sentence has no support"
    assert "No passage holds the words of the sentences without a mark." in words
    assert "Source 1, Titan (moon): it holds the same words. Show the passage" in labels(html)
    assert "its words are the closest" in labels(html)[-1]


def test_a_mark_shows_its_passage_with_the_span(chat_page: Page) -> None:
    send(chat_page, MOON, SECOND)
    patch = chat_page.call("chat.sources", {"index": "0", "cite": "0"})
    side = patch.html["chat-side"]
    assert "<mark" in side and side.count('class="p cited"') == 1
    assert patch.event.name == "rb-cited"
    assert (
        'class="cited-passage"' in patch.drawer
        and '<mark class="cited">Titan</mark>' in patch.drawer
    )
    assert "Open in Data" in patch.drawer and "#/data/page?index=tiny&amp;q=1" in patch.drawer
    status = re.search(r'role="status"[^>]*>([^<]*)<', side)
    assert status and status[1].startswith("[1] ") and status[1].endswith(": “Titan”")
    whole = chat_page.call("chat.sources", {"index": "1"}).html["chat-side"]
    assert "p cited" not in whole and ">cited<" in whole and "<mark" in whole
    refused(chat_page, "chat.sources", {"index": "9"}, "no such turn")


def test_with_the_embedded_reader_chat_says_that_it_quotes(chat_page: Page) -> None:
    chat_page.call("build.edit", {**FIELDS, "a1_target": "extractive-reader"})
    words = text_of(chat_page, "build/chat")
    assert "extractive-reader quotes: it copies a few words from the passages or declines" in words
    assert "with the names of the questions before it" in words


def test_a_chain_that_reads_the_history_is_given_it(chat_page: Page) -> None:
    fields = {**FIELDS, "a1_target": "echo", "a1_template": "{history} {question}"}
    chat_page.call("build.edit", fields)
    html = send(chat_page, "Which moon?", "And whose?")
    assert "User: Which moon?" in html and "Searched for" not in html
    drawn = view_of(chat_page, "build/chat")
    assert "reads the earlier turns by {history}" in texts(drawn) and "2 turns" in drawn
    chat_page.call("chat.open_in_build", {"index": "1"})
    assert bench(chat_page).question == "And whose?"
    patch = chat_page.call("build.show_prompt", {**fields, "index": "1"})
    assert "User: Which moon?" in patch.html["out-1"], (
        "One question is given the earlier turns, too"
    )
    chat_page.call("build.pick", {"id": "q2"})
    assert bench(chat_page).earlier == ()


def test_conversations_are_listed_and_chosen(chat_page: Page) -> None:
    send(chat_page, MOON)
    chat_page.call("chat.new")
    assert "New conversation" in view_of(chat_page, "build/chat")
    assert MOON in chat_page.call("chat.choose", {"index": "1"}).html["v-build-chat"]


def test_conversations_outlive_the_program_until_they_are_deleted(chat_page: Page) -> None:
    window = "ab" * 16
    chat_page.call("build.edit", FIELDS, window=window)
    chat_page.call("chat.send", {"text": MOON}, window=window)
    with closing(Workbench(chat_page.workbench.workspace.path)) as bench:
        again = Page(bench)
        html = again.open("build/chat", window=window).html["v-build-chat"]
        assert MOON in html and "1 turn" in html
        assert MOON not in again.open("build/chat").html["v-build-chat"], "another window"
        assert MOON not in again.call("chat.delete", window=window).html["v-build-chat"]
        assert MOON not in Page(bench).open("build/chat", window=window).html["v-build-chat"]


def test_a_damaged_conversation_is_marked_with_its_mend(chat_page: Page) -> None:
    window = "cd" * 16
    chat_page.call("build.edit", FIELDS, window=window)
    chat_page.call("chat.send", {"text": MOON}, window=window)
    stored = chat_page.workbench.workspace.path / "conversations" / f"{window}.json"
    stored.write_text("{")
    again = Page(chat_page.workbench)
    shown = texts(again.open("build/chat", window=window).html["v-build-chat"])
    assert "A conversation was damaged by another program" in shown and window in shown
    stored.with_suffix(".damaged").unlink()
    assert "was damaged" not in texts(again.open("build/chat", window=window).html["v-build-chat"])


def test_a_regenerated_answer_is_a_branch_and_says_when_it_is_the_same(chat_page: Page) -> None:
    send(chat_page, MOON, SECOND)
    html = chat_page.call("chat.regenerate", {"index": "0"}).html["turns"]
    assert "This is the same answer as before." in html and "2 of 2" in html
    assert SECOND not in html, "what came after is in the other branch"
    html = chat_page.call("chat.branch", {"index": "0"}).html["turns"]
    assert "1 of 2" in html and SECOND in html and "same answer" not in html


def test_an_edited_question_is_asked_in_its_place(chat_page: Page) -> None:
    send(chat_page, MOON, SECOND)
    asks = chat_page.call("chat.edit", {"index": "1"}).dialog
    assert SECOND in asks and "stay as a branch" in asks
    patch = chat_page.call("chat.resend", {"index": "1", "edited": "Which moon has Saturn?"})
    assert patch.dialog == "" and "Which moon has Saturn?" in patch.html["turns"]
    assert SECOND not in patch.html["turns"] and "2 of 2" in patch.html["turns"]
    refused(chat_page, "chat.resend", {"index": "1", "edited": " "}, "no question")


def test_a_turn_opens_in_build_with_its_steps(chat_page: Page) -> None:
    send(chat_page, MOON, SECOND)
    mine = {**FIELDS, "a0_k": "1"}
    chat_page.call("build.edit", mine)
    patch = chat_page.call("chat.open_in_build", {"index": "1"})
    assert patch.go.startswith("#/build/one?set=tiny-qa&ask=Who%20discovered%20Titan")
    assert "Undo returns to yours" in patch.say
    asked = chat_page.workbench.models.backends.llms["writer"].calls  # type: ignore[attr-defined]
    view = view_of(chat_page, patch.go)
    assert REWRITTEN in view and "discovered by Huygens in 1655" in texts(view)
    assert chat_page.workbench.models.backends.llms["writer"].calls == asked  # type: ignore[attr-defined]
    assert bench(chat_page).chain.actions[0].k == 2 and len(bench(chat_page).steps) == 2
    assert bench(chat_page).stale_from is None
    chat_page.call("build.undo")
    assert bench(chat_page).chain.actions[0].k == 1


def test_a_question_is_saved_with_its_corrected_answer(chat_page: Page) -> None:
    send(chat_page, MOON, SECOND)
    asks = chat_page.call("chat.keep", {"index": "1"}).dialog
    assert REWRITTEN in asks and 'value="tiny-qa"' in asks
    assert re.search(r'value="p5" checked', asks), "the cited page is ticked"
    fields = {"index": "1", "dataset": "mine", "question": REWRITTEN, "page": ["p5"]}
    fields["answers"] = "Christiaan Huygens\nHuygens"
    patch = chat_page.call("chat.save", fields)
    assert patch.dialog == "" and patch.say == "Saved in mine, which holds 1 question now."
    (row,) = read_lines(chat_page.workbench.workspace.path / "datasets" / "mine.jsonl")
    assert row["input"] == REWRITTEN and row["id"] == "chat-1"
    assert row["output"][0]["provenance"] == [{"wikipedia_id": "p5", "title": "Christiaan Huygens"}]
    assert [answer["answer"] for answer in row["output"]] == ["Christiaan Huygens", "Huygens"]
    assert 'value="mine"' in chat_page.call("chat.keep", {"index": "0"}).dialog
    chat_page.call("chat.save", {**fields, "answers": "Huygens"})
    (row,) = read_lines(chat_page.workbench.workspace.path / "datasets" / "mine.jsonl")
    assert [x["answer"] for x in row["output"] if "answer" in x] == ["Huygens"], "changed there"
    refused(chat_page, "chat.save", {**fields, "index": "0"}, "already contains this question")


def stored_page(page: Page, window: str) -> str:
    """Chat after a restart of the program."""
    with closing(Workbench(page.workbench.workspace.path)) as again:
        return Page(again).open("build/chat", window=window).html["v-build-chat"]


def test_marks_are_stored_counted_and_removed(chat_page: Page) -> None:
    window = "ef" * 16
    chat_page.call("build.edit", FIELDS, window=window)
    for question in (MOON, SECOND):
        chat_page.call("chat.send", {"text": question}, window=window)
    patch = chat_page.call("chat.right", {"index": "0"}, window=window)
    assert patch.dialog is None and "✓ 1" in patch.html["chat-list"]
    patch = chat_page.call("chat.wrong", {"index": "1"}, window=window)
    assert "What is the right answer?" in patch.dialog and "✕ 1" in patch.html["chat-head"]
    again = stored_page(chat_page, window)
    assert "✓ 1" in texts(again) and "✕ 1" in texts(again)
    assert again.count('aria-pressed="true"') == 2
    chat_page.call("chat.wrong", {"index": "1"}, window=window)
    assert "✕ 1" not in texts(stored_page(chat_page, window)), "a second press removes the mark"


def test_a_wrong_answer_is_corrected_where_it_stands(chat_page: Page) -> None:
    send(chat_page, MOON)
    asks = chat_page.call("chat.wrong", {"index": "0"}).dialog
    assert re.search(r'<textarea[^>]*name="answers"[^>]*>\n?</textarea>', asks), (
        "not the wrong answer"
    )
    fields = {"index": "0", "question": MOON, "answers": "Mimas\n\n Rhea ", "pages": "triton\np5"}
    shown = chat_page.call("chat.correct", fields).html["turns"]
    assert "Right answer: Mimas · Rhea · Triton" in texts(shown)
    assert "Mimas" in chat_page.call("chat.keep", {"index": "0"}).dialog
    refused(chat_page, "chat.correct", {**fields, "pages": "Mars"}, "No page of tiny has the id or")


def test_the_marked_answers_of_a_conversation_become_a_dataset(chat_page: Page) -> None:
    refused(chat_page, "chat.to_dataset", {}, "mark one as right")
    send(chat_page, MOON, SECOND, "Which sea?")
    chat_page.call("chat.right", {"index": "0"})
    chat_page.call("chat.wrong", {"index": "1"})
    chat_page.call("chat.correct", {"index": "1", "question": REWRITTEN, "answers": "Huygens"})
    chat_page.call("chat.wrong", {"index": "2"})
    patch = chat_page.call("chat.to_dataset")
    assert "2 questions added to chat-" in patch.say
    assert "1 wrong answer without a correction left out" in patch.say
    (file,) = (chat_page.workbench.workspace.path / "datasets").glob("chat-*.jsonl")
    moon, second = read_lines(file)
    assert (moon["input"], moon["output"][0]["answer"]) == (MOON, "Titan")
    assert moon["output"][0]["provenance"][0]["wikipedia_id"] == "p1", "the cited page"
    assert (second["input"], second["output"]) == (REWRITTEN, [{"answer": "Huygens"}])
    assert "0 questions added" in chat_page.call("chat.to_dataset").say
    assert "2 there already" in chat_page.call("chat.to_dataset").say


def test_a_refusal_needs_no_passage(chat_page: Page) -> None:
    add_llm(chat_page.workbench.workspace.path, "shy", default="I do not know.")
    chat_page.call("build.edit", {**FIELDS, "a1_target": "shy"})
    words = texts(send(chat_page, MOON))
    assert "I do not know." in words and "No passage holds" not in words


def test_a_conversation_is_downloaded_with_its_marks(chat_page: Page) -> None:
    send(chat_page, MOON)
    chat_page.call("chat.right", {"index": "0"})
    words = chat_page.call("chat.export", {"shape": "markdown"}).download
    assert words.name.endswith(".md") and f"## {MOON}\n\nTitan" in words.text
    assert "Sources: Titan (moon)" in words.text and "Marked right." in words.text
    stored = json.loads(chat_page.call("chat.export", {"shape": "json"}).download.text)
    (turn,) = stored["conversations"][0]["turns"]
    assert (turn["question"], turn["mark"], len(turn["steps"])) == (MOON, "right", 2)


def test_the_chain_is_chosen_in_chat_and_gets_the_earlier_turns(chat_page: Page) -> None:
    view = chat_page.call("chat.choose_chain", {"chain": "closed"}).html["v-build-chat"]
    assert bench(chat_page).chain.name == "closed" and "titan rewrites a follow-up" in texts(view)
    patch = chat_page.call("chat.add_history")
    assert "reads the earlier turns by {history}" in texts(patch.html["v-build-chat"])
    assert bench(chat_page).chain.actions[0].template.startswith("{history}\n\n")
    chat_page.call("build.undo")
    assert bench(chat_page).chain.actions[0].template == "{question}"


def test_a_turn_that_fails_keeps_its_question(chat_page: Page) -> None:
    chat_page.call("build.edit", {**FIELDS, "a1_target": "mute"})
    html = send(chat_page, "Which moon of Saturn?")
    assert "Which moon of Saturn?" in html and 'class="problem"' in html
    chat_page.call("build.edit", FIELDS)
    html = chat_page.call("chat.regenerate", {"index": "0"}).html["turns"]
    assert "Titan" in html and "2 of 2" in html
    refused(chat_page, "chat.send", {"text": " "}, "no question")


def test_a_turn_that_fails_names_the_mend(chat_page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Iterator[Any]:
        raise UsageError("The index 'tiny' is not loaded", hint=Hint("load"))
        yield

    monkeypatch.setattr(chat_page.workbench.asking, "chat", refuse)
    words = texts(send(chat_page, "Which moon?"))
    assert "The index &#39;tiny&#39; is not loaded; load it in Models." in words


def test_the_answer_cannot_smuggle_marks_or_html(chat_page: Page) -> None:
    template = "{question} {response[0]}"
    chat_page.call("build.edit", {**FIELDS, "a1_target": "echo", "a1_template": template})
    html = send(chat_page, "Titan \ue0007\ue001 <b onclick=x>moon</b> [2].")
    said = html.partition('class="said md"')[2].partition("<details")[0]
    assert "&lt;b onclick=x&gt;" in said and "<b onclick" not in said
    assert "\ue000" not in said and "Titan 7" in said
    assert labels(said)[0].startswith("Source 2, "), "a mark that the model wrote"


def test_a_refused_question_leaves_the_running_answer_alone(chat_page: Page) -> None:
    begun = chat_page.handle(ActMessage(window="w", action="chat.send", data={"text": MOON}))
    assert isinstance(begun, Iterator) and MOON in next(begun).html["v-build-chat"]
    refused = chat_page.act({"action": "chat.send", "data": {"text": "Another?"}, "window": "w"})
    assert not refused.stream and "is still being answered" in refused.problem
    last = Patch()
    for patch in begun:
        last |= patch
    assert "Titan" in texts(last.html["turns"]) and "Send" in last.html["chat-buttons"]
