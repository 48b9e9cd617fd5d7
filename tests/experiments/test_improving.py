"""Improving a chain: a better variant is found and proved, an equal one is not, and no prompt knows an unseen article."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest
from small_workspace import (
    CommandLine,
    add_llm,
    chain,
    generate,
    make_workspace,
    record,
    retrieve,
    write_lines,
)

from rallebench import RalleError, Workspace
from rallebench.analysis import paired
from rallebench.chains.saved import chain_from_json
from rallebench.core.errors import UsageError
from rallebench.core.events import Operation, complete
from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.experiments import Report
from rallebench.core.improvements import Improvement, find_improvement
from rallebench.core.runs import RunRequest, RunResult
from rallebench.core.types import Chain, Episode, Example, Gold, Outcome, Passage, Question
from rallebench.engine.clusters import find_clusters
from rallebench.engine.driver import drive
from rallebench.experiments.improving import candidates
from rallebench.experiments.improving.guard import CopyGuard
from rallebench.experiments.improving.parts import list_questions, split_articles
from rallebench.experiments.improving.rounds import plan_rounds
from rallebench.experiments.improving.running import improve
from rallebench.experiments.improving.writing import proposed_variants
from rallebench.services.workbench import Workbench
from rallebench.views.experiment_requests import improve_request
from rallebench.workspace.paths import WorkspaceFolder

COUNTRIES = 150
"""Questions of the dataset ``lands``, each about an article of its own."""
PROMPT = "Name the capital. {question}"


def land(number: int) -> dict[str, Any]:
    return record(f"q{number}", f"Which town rules land{number}?", f"Town{number}", f"page{number}")


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_workspace(tmp_path_factory.mktemp("improving") / "made")
    write_lines(folder / "datasets" / "lands.jsonl", map(land, range(COUNTRIES)))
    write_lines(folder / "datasets" / "few.jsonl", map(land, range(20)))
    bare = [{"id": f"b{i}", "input": f"Why {i}?"} for i in range(60)]
    write_lines(folder / "datasets" / "bare.jsonl", bare)
    capital = chain("capital", generate(PROMPT))
    (folder / "chains" / "capital.json").write_text(json.dumps(capital))
    return folder


# the articles


def examples(number: int, group: int = 1) -> list[Example]:
    """Questions, ``group`` of them about one article."""
    return [
        Example(
            Question(f"q{i}", f"Which town rules the far land{i} of old days and seas?"),
            Gold((f"Town{i}",), provenance=(frozenset({f"page{i // group}"}),)),
        )
        for i in range(number)
    ]


def test_the_parts_share_no_article_and_are_drawn_by_the_seed() -> None:
    every = examples(120, group=3)
    parts = split_articles(every, 7)
    pages = [
        {page for e in list_questions(part) for page in e.gold.pages}
        for part in (parts.train, parts.choose, parts.confirm)
    ]
    assert [len(part) for part in pages] == [8, 16, 16]
    assert len(set.union(*pages)) == 40 == len(set(find_clusters(every).of.values()))
    assert split_articles(every, 7) == parts != split_articles(every, 8)


@pytest.mark.parametrize(
    ("articles", "train", "confirm", "sentence"),
    [
        (
            21,
            0.2,
            0.4,
            r"about 21 articles; it takes at least 22: 2 to learn from, 10 to choose with",
        ),
        (30, 0.5, 0.4, r"15 to learn from and 12 for the proof leave fewer than 10"),
    ],
)
def test_too_few_articles_for_three_parts_are_refused(
    articles: int, train: float, confirm: float, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        split_articles(examples(articles), 0, train, confirm)


# the rounds


@pytest.mark.parametrize("variants", [1, 2, 5, 12, 64])
@pytest.mark.parametrize("articles", [10, 23, 400])
def test_rounds_halve_the_variants_and_share_no_article(variants: int, articles: int) -> None:
    choose = [(example,) for example in examples(articles)]
    rounds = plan_rounds(variants, choose)
    assert [a for each in rounds for a in each.articles] == choose
    sizes = [each.contenders for each in rounds]
    assert sizes[0] == variants and sizes == sorted(sizes, reverse=True)
    assert all(len(each.articles) >= 5 for each in rounds)
    if articles == 400 and variants > 2:
        assert sizes[-1] == 2
        costs = [each.cost for each in rounds]
        assert max(costs) - min(costs) <= 2 * (variants + 1), "each round costs about the same"


def test_a_budget_leaves_out_articles_and_too_small_a_one_is_refused() -> None:
    choose = [(example,) for example in examples(100)]
    rounds = plan_rounds(8, choose, 300)
    cost = sum((each.contenders + 1) * len(each.articles) for each in rounds)
    assert 280 < cost <= 300
    with pytest.raises(
        UsageError, match=r"choose among 8 variants takes at least \d+ questions, and .* leaves 40"
    ):
        plan_rounds(8, choose, 40)


# the copy guard


def guard(*, passages: tuple[Passage, ...] = (), own: str = PROMPT) -> tuple[CopyGuard, Example]:
    parts = split_articles(examples(60), 0)
    saved = chain_from_json(chain("c", generate(own)))
    return CopyGuard(parts, saved, passages), list_questions(parts.confirm)[0]


def test_a_prompt_with_a_gold_answer_or_a_long_quotation_is_refused() -> None:
    own, unseen = guard(
        passages=(Passage("p", "Snow fell slowly upon seven silent northern harbours."),)
    )
    answer, text = unseen.gold.answers[0], unseen.question.text
    assert f"the gold answer of the question {unseen.question.qid}" in own.refuse(
        [f"It is {answer}."]
    )
    assert "quotes the question" in own.refuse([f"Remember: {text.lower().rstrip('?')}!"])
    assert "quotes the gold passage p" in own.refuse(
        ["snow FELL slowly upon seven silent northern towns"]
    )
    assert own.refuse(["Answer in a few words, from the passages alone, please: {question}"]) == ""
    assert own.refuse([f"{answer}s"]) == "", "a longer word is another"


def test_a_prompt_may_use_the_words_of_the_chain_and_of_usual_answers() -> None:
    _, unseen = guard()
    own, _ = guard(own=f"Never answer {unseen.gold.answers[0]}. {{question}}")
    assert own.refuse([f"Be brief. Never answer {unseen.gold.answers[0]}."]) == ""
    every = [
        Example(Question(f"q{i}", f"Is {i} even?"), Gold(("yes" if i % 2 else "no",)))
        for i in range(60)
    ]
    labels = CopyGuard(split_articles(every, 0), chain_from_json(chain("c", generate(PROMPT))))
    assert labels.refuse(["Answer yes or no."]) == ""


def test_worked_examples_come_from_the_articles_to_learn_from_alone() -> None:
    parts = split_articles(examples(60), 0)
    saved = chain_from_json(chain("c", generate("{{json}} {question}")))
    own = CopyGuard(parts, saved)
    (change,) = candidates.worked_examples(saved, parts.train, [3], own)
    template = change.apply(saved).actions[0].template
    quoted = {e.question.qid for e in examples(60) if e.question.text in template}
    assert len(quoted) == 3 and quoted <= {e.question.qid for e in list_questions(parts.train)}
    assert template.endswith("{{json}} {question}")
    assert own.refuse([template]) == ""


# whole improvements, played without a model

World = Callable[[Chain, str], bool]
"""Returns True if a chain answers a question right."""


class WorldPlayer:
    """Answers runs as a world says, and keeps them."""

    def __init__(self, world: World, replies: Mapping[str, str] = {}) -> None:
        self._world, self._replies = world, replies
        self.runs: dict[str, RunRequest] = {}
        self.right: dict[str, dict[str, bool]] = {}

    def play(self, step: Any) -> Operation[Any]:
        yield from ()
        if not isinstance(step, RunRequest):
            return None
        self.runs[step.label], own = step, step.flow.chain
        assert own is not None
        right = {q.qid: self._world(own, q.qid) for q in step.questions}
        self.right[step.label] = right
        episodes = {e.question.qid: self._episode(e, right[e.question.qid]) for e in step.examples}
        return RunResult(step, "", episodes, {}, {}, len(episodes), 0)

    def _episode(self, example: Example, right: bool) -> Episode:
        qid = example.question.qid
        answer = example.gold.answers[0] if right and example.gold.answers else "nowhere"
        return Episode(qid, "chain", (), Outcome(self._replies.get(qid, answer)))


def chance(world: int, chain: Chain, qid: str) -> float:
    """A number from 0 to 1 for a question's answer by a chain, independent of those of other chains."""
    template = chain.actions[-1].template
    return random.Random(f"{world} {template} {qid}").random()


def is_lucky(world: int, chain: Chain, qid: str) -> bool:
    return chance(world, chain, qid) < 0.5


def play(
    folder: Path, world: World, settings: Mapping[str, Any] = {}, seed: int = 0, **more: Any
) -> tuple[Report, WorldPlayer]:
    workspace = WorkspaceFolder(folder)
    request = improve_request(
        workspace, "x", workspace.chain("capital"), {"dataset": "lands", **settings}, seed=seed
    )
    player = WorldPlayer(world, **more)
    return complete(drive(improve(request), player)), player


def outcome(report: Report) -> Improvement:
    value = find_improvement(SuiteReport(data=report.data))
    assert value is not None
    return value


def test_a_planted_better_prompt_is_found_and_confirmed(template_workspace: Path) -> None:
    def world(chain: Chain, qid: str) -> bool:
        better = "as few words as possible" in chain.actions[0].template
        return chance(1, chain, qid) < (0.9 if better else 0.5)

    report, player = play(template_workspace, world)
    found = outcome(report)
    assert "prompt brief" in found.variant
    (table,) = report.tables
    assert table.percent, "scores are shares, so in percent as everywhere"
    assert "Intervals are not corrected" in table.note
    assert report.chain is not None and "as few words" in report.chain.actions[0].template
    own, new = player.right["proof, the chain"], player.right["proof, the variant"]
    wins, losses = sum(new[q] > own[q] for q in own), sum(new[q] < own[q] for q in own)
    assert found.articles == len(own) == 60
    assert found.difference == pytest.approx((wins - losses) / 60)
    assert found.confirmed and binomtest(wins, wins + losses).pvalue < 0.05
    assert str(found).startswith(
        f"Confirmed on 60 unseen articles: +{100 * (wins - losses) / 60:.1f} points ("
    )
    assert report.notes[0] == str(found)
    unseen = set(own)
    assert all(
        unseen.isdisjoint(player.right[label]) for label in player.right if "proof" not in label
    )


def test_a_variant_that_mends_every_question_is_confirmed(template_workspace: Path) -> None:
    report, _ = play(
        template_workspace, lambda chain, qid: "few words" in chain.actions[0].template
    )
    found = outcome(report)
    assert found.confirmed and found.low is None
    assert (
        str(found) == "Confirmed on 60 unseen articles: +100.0 points (all are equal: no interval)."
    )


@pytest.mark.parametrize("tries", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_in_a_world_without_a_better_variant_few_are_confirmed(
    template_workspace: Path, monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    """The winner on the articles to choose with looks better than it is; the proof is wrong in 2.5 % at most."""
    monkeypatch.setattr(paired, "questions_needed", lambda pair, n: None)  # slow, and not used here
    confirmed = flattered = 0
    for number in range(tries):
        report, _ = play(
            template_workspace,
            partial(is_lucky, number),
            {"variants": 4, "examples": ""},
            seed=number,
        )
        confirmed += outcome(report).confirmed
        _, _, _, own, new, _ = report.tables[0].rows[0]
        assert isinstance(own, float) and isinstance(new, float)
        flattered += new > own
        if not outcome(report).confirmed:
            assert str(outcome(report)).startswith("Not confirmed")
    assert binomtest(confirmed, tries, 0.025, "greater").pvalue > 0.01, confirmed
    assert flattered > tries / 2


def test_a_chain_that_no_variant_beats_is_not_asked_for_a_proof(template_workspace: Path) -> None:
    report, player = play(
        template_workspace, lambda chain, qid: chain.actions[0].template == PROMPT
    )
    assert (
        str(outcome(report))
        == "Not confirmed: no variant was better than the chain on the 60 articles on which they competed."
    )
    assert report.chain is None and not [label for label in player.runs if "proof" in label]


def test_a_less_is_better_metric_is_confirmed_below_zero() -> None:
    found = Improvement(
        "x", "X", False, False, "k 5", difference=-2.0, low=-3.0, high=-1.0, articles=30
    )
    assert found.confirmed and str(found) == "Confirmed on 30 unseen articles: −2 X (−3 to −1)."
    assert not Improvement(
        "x", "X", False, False, "k 5", difference=2.0, low=1.0, high=3.0
    ).confirmed


# prompts of a writer


def test_prompts_of_a_writer_compete_and_invalid_ones_are_named(template_workspace: Path) -> None:
    unseen = list_questions(
        split_articles([*WorkspaceFolder(template_workspace).questions("lands")], 0).choose
    )[0]
    replies = {
        "prompt 1": "Sure!\n<prompt>\nBest of prompts: {question}\n</prompt>",
        "prompt 2": "<prompt>Use {passages} for {question}</prompt>",
        "prompt 3": "<prompt>Answer well.</prompt>",
        "prompt 4": f"<prompt>It is {unseen.gold.answers[0]}. {{question}}</prompt>",
    }

    def world(chain: Chain, qid: str) -> bool:
        return chance(3, chain, qid) < (0.95 if "Best of" in chain.actions[0].template else 0.4)

    report, player = play(template_workspace, world, {"writer": "titan"}, replies=replies)
    found = outcome(report)
    assert found.variant == "prompt written 1" and found.confirmed
    reasons = found.refused
    assert "not valid" in reasons["prompt written 2"] and "passages" in reasons["prompt written 2"]
    assert reasons["prompt written 3"] == "the written prompt leaves out {question}"
    assert f"gold answer of the question {unseen.question.qid}" in reasons["prompt written 4"]
    asked = player.runs["write prompts"].questions[0].text
    learned = {e.question.qid for e in player.runs["learning, the chain"].examples}
    quoted = {f"q{i}" for i in range(COUNTRIES) if f"land{i}?" in asked}
    assert quoted and quoted <= learned and "{question}" in asked
    assert found.cost == sum(len(run.examples) for run in player.runs.values())


def test_a_writer_that_fails_writes_no_variant() -> None:
    saved = chain_from_json(chain("c", generate(PROMPT)))
    question = Example(Question("prompt 1", "?"), Gold())
    request = RunRequest(None, None, (question,))  # type: ignore[arg-type]
    written = RunResult(request, "", {}, {}, {}, 1, 1)
    assert proposed_variants(saved, written) == ([], {"prompt written 1": "the writer failed"})


# the command line


def test_improve_runs_is_planned_resumed_and_saves_the_variant(
    cli: CommandLine, bench: Workbench
) -> None:
    replies = {rf"(?s)few words.*land{i}\?": f"Town{i}" for i in range(COUNTRIES) if i % 10}
    replies |= {rf"land{i}\?": f"Town{i}" for i in range(0, COUNTRIES, 3)}
    add_llm(cli.workspace, "towns", replies=replies, default="nowhere")
    words = (
        "improve capital --dataset lands --model towns --name better --no-mlflow",
        "--budget",
        500,
    )
    plan = cli.json(*words, "--plan", "--probe", "0")
    labels = [part["label"] for part in plan["plan"]]
    assert labels[-2:] == ["proof, the chain", "proof, the variant"]
    assert plan["total"]["questions"] <= 500 and not (cli.workspace / "runs").exists()
    value = cli.json(*words)
    found = value["improvement"]
    assert found["confirmed"] and found["sentence"].startswith("Confirmed on 60 unseen articles: +")
    assert found["cost"] <= plan["total"]["questions"]
    saved = json.loads((cli.workspace / "chains" / "better.json").read_text())
    assert "few words" in saved["actions"][0]["template"] and found["sentence"] in saved["about"]
    unchanged = json.loads((cli.workspace / "chains" / "capital.json").read_text())
    assert unchanged["actions"][0]["template"] == PROMPT, "nothing is adopted by itself"
    assert cli.json(*words)["improvement"] == found
    assert cli.json(*words, "--plan", "--probe", "0")["total"]["left"] == 0
    other = cli(*words[:1], "--budget", 400)
    assert other.code == 2 and "exists already with another content" in other.err
    out = cli(*words).out
    assert found["sentence"] in out and "better.json" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("title --dataset lands", "no action of a language model"),
        ("capital --dataset few", "about 20 articles; it takes at least 22"),
        ("capital --dataset bare", "no accepted answers to choose by"),
        ("capital --dataset lands --budget 100", "too small: the proof takes 120"),
        ("capital --dataset lands --budget 130", "takes at least"),
        ("capital --dataset lands --metric bem", "bem"),
        ("capital --dataset lands --metric truthfulness:titan", "A judge cannot choose"),
        ("capital --dataset lands --set examples=0", "from 1 to 20"),
        ("capital --dataset lands --set variants=1", "from 2 to 64"),
        ("capital --dataset lands --vary index.chunk_size=64", "build these indexes"),
        ("capital --dataset lands --vary temperature=0 --vary temperature=1", "varied twice"),
        ("capital --dataset lands --vary 1.template=nowhere.txt", "no template file"),
        ("capital --dataset lands --writer ghost", "ghost"),
        ("capital --dataset lands --set rewordings=false --set examples=", "no variant to try"),
        ("capital --dataset lands --limit 0", "at least 1"),
        ("nothing --dataset lands", "nothing"),
    ],
)
def test_wrong_requests_are_refused_in_a_sentence(
    cli: CommandLine, words: str, sentence: str
) -> None:
    ran = cli(f"improve {words} --name x --no-mlflow")
    assert ran.code == 2 and sentence in ran.err, ran.err
    assert not (cli.workspace / "runs").exists()


def test_a_template_with_unseen_gold_is_refused_and_another_invalid_one_is_named(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "leaking.txt").write_text("Town1 Town2 Town3 Town4 Town5 Town6 {question}")
    (tmp_path / "broken.txt").write_text("{questions}")
    vary = f"--vary 1.template={tmp_path}/leaking.txt,{tmp_path}/broken.txt"
    ran = cli(f"improve capital --dataset lands --name x --no-mlflow --set examples= {vary}")
    assert ran.code == 2 and "No variant can be used" in ran.err
    assert "prompt leaking: its prompt holds the gold answer of the question" in ran.err


def test_a_chain_of_that_name_is_not_replaced(cli: CommandLine) -> None:
    ran = cli("improve capital --dataset lands --name read --no-mlflow")
    assert ran.code == 2 and "read.json exists already and was not made here" in ran.err


def test_the_reader_is_not_given_instructions(template_workspace: Path) -> None:
    workspace = WorkspaceFolder(template_workspace)
    saved = chain_from_json(chain("c", retrieve(k=4), generate(target="extractive-reader")))
    request = improve_request(workspace, "x", saved, {"dataset": "lands"})
    player = WorldPlayer(lambda chain, qid: chain.actions[0].k == 8)
    report = complete(drive(improve(request), player))
    assert {run.flow.chain.actions[0].k for run in player.runs.values() if run.flow.chain} == {
        2,
        4,
        8,
        16,
    }
    assert outcome(report).variant == "k 8"


def test_python_has_the_outcome_and_the_chain(workspace: Path) -> None:
    replies = {rf"(?s)few words.*land{i}\?": f"Town{i}" for i in range(COUNTRIES)}
    add_llm(workspace, "towns", replies=replies, default="nowhere")
    with Workspace(workspace, track=False, progress=False) as ws:
        done = ws.improve("capital", "lands", name="p", llm="towns", examples="", limit=60)
        assert done.outcome.confirmed and repr(done.outcome).startswith("Confirmed on 24 unseen")
        assert done.chain is not None and ws.chain("p").actions == done.chain.actions
        assert len(done.runs) > 5 and "prompt brief" in repr(done)
        with pytest.raises(RalleError, match="has no setting 'budgets'"):
            ws.improve("capital", "lands", name="q", budgets=3)
