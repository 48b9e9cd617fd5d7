"""A testbed of one's own: RGB's records from a question set and an index (section 2.2 of arXiv:2309.01431).

The index's passages are the documents; RGB cut its pages into at most 300 tokens and kept the 30 best. The questions are
those of a set, or a language model writes one from each of some articles, as RGB had them written from the news.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.runs import Values
from rallebench.core.settings import Setting
from rallebench.core.sources import Source
from rallebench.core.types import Episode, Example, Flow, Gold, Outcome, Question, Retrieve
from rallebench.datasets.reading import read_questions
from rallebench.engine.store import RunFolder
from rallebench.experiments.papers import SUITES
from rallebench.experiments.papers.rgb import scoring, testbed, writing
from rallebench.experiments.papers.rgb.records import read_records, required_of
from rallebench.experiments.papers.rgb.testbed import Row, Sorted
from rallebench.experiments.runs import scored_run

WORKFLOW = "rgb-testbed"
METRICS = {
    "positives": "documents that hold a required answer, at word boundaries; over all questions",
    "negatives": "documents that hold none; over all questions",
}


@SUITES.register(
    "rgb-testbed",
    needs_llm=False,
    named_by=("articles",),
    form={
        "data": Setting(str, "", about="question set: a name, a file in KILT's form, or in RGB's"),
        "articles": Setting(
            str, "", about="instead: a corpus, of whose articles --llm writes a question each"
        ),
        "parts": Setting(
            int, 1, 1, 5, about="with articles: parts of a question, each with an answer of its own"
        ),
        "prompts": Setting(
            str,
            "",
            about="with articles: a folder with prompts of your own, named as in prompts/suites/rgb",
        ),
        "index": Setting(str, "", about="the retriever whose passages become documents"),
        "k": Setting(int, 30, 1, 1000, about="passages per question"),
        "positives": Setting(
            int,
            1,
            1,
            1000,
            about="fewest positives of a record; with fewer than documents, shares of noise mean little",
        ),
        "language": Setting(str, "en", choices=("en", "zh"), about="how the files are named"),
        "known": Setting(
            str, "", about="run 'without documents': false copies only of what it answered right"
        ),
    },
)
def testbed_of_ones_own(asked: ExperimentRequest) -> Experiment:
    """RGB's records from a question set and an index: positives, negatives, false copies by the answer."""
    s = asked.settings
    if bool(s["data"]) == bool(s["articles"]) or not s["index"]:
        raise UsageError(
            "A testbed needs a question set and an index: --set data=FILE (or articles=CORPUS) --set index=NAME."
        )
    if s["prompts"] and not s["articles"]:
        raise UsageError(
            "--set prompts goes with --set articles=CORPUS, whose questions a model writes; leave it out."
        )
    if s["index"] not in asked.workspace.retrievers():
        asked.workspace.retriever(
            s["index"]
        )  # a combination written out, or the sentence that says it is none
    written: dict[str, str] = {}
    counted: dict[str, int] = {}
    if s["articles"]:
        made_up = yield from writing.questions_of(asked)
        name, questions, written, counted, unanswered = (
            made_up.name,
            made_up.questions,
            made_up.files,
            made_up.counts,
            0,
        )
    else:
        name, path = asked.workspace.dataset(s["data"])
        found_there = _questions(path)
        answerable = [question for question in found_there if question.required]
        unanswered, questions = len(found_there) - len(answerable), answerable[: asked.limit]
        if not questions:
            raise UsageError(
                f"No question of {path} has an answer, so no document can be told from another."
            )
    known = _known(asked, questions)
    examples = tuple(_example(question) for question in questions)
    required = {question.id: question.required for question in questions}
    kept: dict[str, Sorted] = {}

    def sorted_of(qid: str, episode: Episode) -> Sorted:
        if qid not in kept:
            kept[qid] = testbed.sort_out(required[qid], [hit.passage.text for hit in episode.hits])
        return kept[qid]

    def score(example: Example, episode: Episode) -> Values:
        found = sorted_of(example.question.qid, episode)
        return {
            "positives": float(sum(map(len, found.groups))),
            "negatives": float(len(found.negative)),
        }

    def flow(question: Question) -> Flow:
        yield Retrieve(s["index"], question.text, s["k"])
        return Outcome("")

    answered = yield scored_run(
        "documents",
        WORKFLOW,
        name,
        examples,
        flow,
        {"k": s["k"]},
        score,
        METRICS,
        retrievers=(s["index"],),
    )
    fakes = testbed.fakes_of(questions)
    sets: dict[str, list[Row]] = {"": [], "_int": [], "_fact": []}
    counts = dict.fromkeys(
        (
            "without_positives",
            "too_few_positives",
            "without_negatives",
            "without_false_answer",
            "not_known",
        ),
        0,
    )
    for question in questions:
        if question.id not in answered.episodes:
            continue
        found = sorted_of(question.id, answered.episodes[question.id])
        counts["without_negatives"] += not found.negative
        enough = sum(map(len, found.groups)) >= s["positives"]
        if not found.complete or not enough:
            counts["too_few_positives" if found.complete else "without_positives"] += 1
            continue
        several = len(question.required) > 1
        sets["_int" if several else ""].append(testbed.row_of(question, found))
        if several:
            continue
        if known is not None and question.id not in known:
            counts["not_known"] += 1
        elif question.id in fakes:
            sets["_fact"].append(testbed.false_row(question, found, fakes[question.id]))
        else:
            counts["without_false_answer"] += 1
    written |= {f"{s['language']}{kind}.jsonl": _lines(rows) for kind, rows in sets.items() if rows}
    made = {f"{s['language']}{kind}": len(rows) for kind, rows in sets.items()}
    notes = (*writing.notes_of(counted), *_notes(counts, unanswered))
    return Report(
        {
            "questions": len(questions),
            "unanswered": unanswered,
            "records": made,
            **counted,
            **counts,
        },
        notes,
        written,
    )


def _questions(path: Path) -> Sequence[testbed.Asked]:
    _, first = next(iter(Source(path).objects()), (0, {}))
    if "query" in first:
        return [
            testbed.Asked(r.id, r.query, r.required, r.fake) for r in read_records(path).records
        ]
    found = []
    for example in read_questions(path):
        # A KILT record may carry RGB's own answer, in which several are required.
        own = required_of(example.record["answer"]) if "answer" in example.record else ()
        required = own or ((example.gold.answers,) if example.gold.answers else ())
        fake = str(example.record.get("fakeanswer") or "")
        found.append(testbed.Asked(example.question.qid, example.question.text, required, fake))
    return found


def _example(question: testbed.Asked) -> Example:
    aliases = tuple(dict.fromkeys(alias.strip() for group in question.required for alias in group))
    row = {
        "id": question.id,
        "input": question.query,
        "output": [{"answer": alias} for alias in aliases],
    }
    return Example(Question(question.id, question.query), Gold(aliases, question.required), row)


def _known(asked: ExperimentRequest, questions: Sequence[testbed.Asked]) -> frozenset[str] | None:
    """The questions that a run answered right; None if no run was named. Raises UsageError."""
    if not asked.settings["known"]:
        return None
    episodes = RunFolder.open(asked.workspace.runs, asked.settings["known"]).episodes()
    right = {
        q.id
        for q in questions
        if q.id in episodes
        and not episodes[q.id].error
        and scoring.is_right(
            scoring.labels_of(
                scoring.as_scored(episodes[q.id].answer, asked.settings["language"]), q.required
            )
        )
    }
    if not right:
        raise UsageError(
            f"The run {asked.settings['known']!r} answered none of these questions right, so nothing is known."
        )
    return frozenset(right)


def _lines(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


SENTENCES: Mapping[str, str] = {
    "unanswered": "have no answer and were left out",
    "without_positives": "have no document for an answer and were left out",
    "too_few_positives": "have fewer positives than were asked for and were left out",
    "without_negatives": "have no document without the answer",
    "without_false_answer": "have no false copies: no other answer looks like theirs",
    "not_known": "have no false copies: the model does not know them",
}


def _notes(counts: Mapping[str, Any], unanswered: int) -> tuple[str, ...]:
    return tuple(
        f"{n} questions {SENTENCES[what]}."
        for what, n in {**counts, "unanswered": unanswered}.items()
        if n
    )
