"""The model card: what the weights' file and a benchmark report say, as Markdown for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.reader.sources import DEVELOPMENT_SHARE, TEST_SHARE

_HEAD = """\
# The built-in reader

Built-in mini reader (22M parameters, English): copies a short span from the retrieved passages or declines.
It does not write, reason or know facts. Use a real LLM for anything you publish.

The training program (`python -m tools.reader.train`) wrote this card; with `--card-only` it writes it again.

| | |
|---|---|
| Base model | all-MiniLM-L6-v2 (Apache-2.0), sha256 `{base}` |
| What is shipped | the difference to its six layers in 5 bits a weight (groups of {group}), a span head in float32 |
| Size | {megabytes:.2f} MB; the embedding table is the base model's own |
| Licence of the difference | CC BY-SA 4.0, with the table of sources as attribution |
| Trained | {stages} |
"""

_LIMITS = """\
## Limits

* English only: the vocabulary serves no other language.
* It copies. It can not rewrite, summarise, translate, judge, count, compare dates or join facts of two passages.
* Questions that were written to look answerable and are not fool it often: where the prompt asked for it, it declined
  9 in 20 of the starter's 51 when it came out, and 1 in 6 where it did not.
* Claims (SUPPORTS or REFUTES) and questions for yes or no are not read by this network: rules compare numbers,
  names and negations with the nearest sentence.
* Sets of the same kind as those above (Wikipedia paragraphs, questions of one sentence) are read best; the
  figures say nothing about forums, reviews, contracts or papers.
* What the texts say is repeated, true or not, with the biases of Wikipedia's editors and of crowd workers.
"""


def card(
    about: Mapping[str, Any],
    base_sha256: str,
    size: int,
    group: int,
    reports: Sequence[Mapping[str, Any]],
) -> str:
    """The card. ``about``: what the weights say of themselves. ``reports``: JSON documents of the benchmark."""
    stages = "; ".join(
        f"{s['name']} (seed {s['seed']}): {s['steps']} steps, {s['tokens'] / 1e6:.1f}M tokens, rate {s['rate']:g}"
        for s in about["stages"]
    )
    head = _HEAD.format(base=base_sha256, group=group, megabytes=size / 1e6, stages=stages)
    parts = [head, _sources(about), _recipe(about), _quality(reports), _confidence(about), _LIMITS]
    return "\n".join(part for part in parts if part)


def _sources(about: Mapping[str, Any]) -> str:
    rows = [
        f"| [{s['name']}]({s['url']}) | {s['about']} | {s['licence']} | {s['paragraphs']} | {s['questions']} | "
        f"{s['questions'] - s['answered']} |"
        for s in about["sources"]
    ]
    left_out = sum(s["left_out"] for s in about["sources"])
    return "\n".join(
        [
            "## Sources",
            "",
            "| set | what it is | licence | paragraphs | questions | of them unanswerable |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            "The split is by article. Never seen in training: "
            + ", ".join(sorted(about["test_articles"]))
            + ".",
            "For the confidence and for choices only: "
            + ", ".join(sorted(about["development_articles"]))
            + ".",
            f"Of qed_nq's many articles the hash of the name says which are for testing ({TEST_SHARE:.0%}) and for the",
            f"confidence ({DEVELOPMENT_SHARE:.0%}); the weights' file names every article it learned from, and the benchmark asks",
            f"about none of those. {left_out} paragraphs were left out because they share a sentence with an article kept back, with",
            "the starter corpus or with a corpus that results are reported on ("
            + ", ".join(about["excluded"])
            + ").",
            "",
        ]
    )


def _recipe(about: Mapping[str, Any]) -> str:
    lines = [
        "## Recipe",
        "",
        "All layers but the embeddings are tuned, with a linear head for start and end; `[CLS]` stands for no answer.",
        "A question is read with one window of its paragraph, with one of another paragraph that looks like it (BM25), or",
        "with its own beside one to three others under one normalisation. Of several annotators' answers the original one is",
        "learned. AdamW, rate rising over 60 steps and falling in straight lines to zero, gradient norm cut at 1, no",
        "dropout, a fifth of the questions without their question mark. Four trainings begin at the base model: one with up to",
        "four windows side by side, three (short) with one window. Their mean is made step by step: each of the three joins it, and",
        "after each the mean goes on (mixed) and is kept as the mean of before and after. The weights are the mean of the last two",
        "of these means (Wortsman et al. 2022, arXiv:2203.05482 and arXiv:2109.01903). The same data, seed and machine give the",
        "same weights.",
        "",
        f"Made by one command: `{about['command']}`",
        "",
    ]
    return "\n".join(lines)


def _quality(reports: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    declining = [
        f"* {note}" for report in reports for note in report.get("notes", []) if "AUROC" in note
    ]
    for report in reports:
        rows += [f"| {note} |" for note in report.get("notes", []) if note.count("|") == 3]
    if not rows:
        return ""
    return "\n".join(
        [
            "## Quality",
            "",
            f"Measured with `benchmarks/reader.py` in {reports[0]['settings']['numeric type']}; no article of these questions was trained on.",
            "± is the standard error.",
            "",
            "| what | n | exact match, % | token F1, % |",
            "|---|---|---|---|",
            *rows,
            "",
            *declining,
            "",
        ]
    )


def _confidence(about: Mapping[str, Any]) -> str:
    calibration = about["calibration"]
    rows = [
        f"| {row['below']:.2f} | {row['right_kept']:.0%} | {row['absent_declined']:.0%} | {row['given_right']:.0%} |"
        for row in about["trade_off"]
    ]
    return "\n".join(
        [
            "## Confidence and declining",
            "",
            "The confidence is the chance that the best span is right (token F1 of one half or more): a logistic of the",
            "span's margin, its probability, its lead over the next, the score of no answer, and how much of the question",
            f"stands near it. Fitted on {calibration['prompts']} five-passage prompts of the development articles, half of them",
            f"without the answer: AUROC {calibration['auroc_present']:.2f} for answer there or not, {calibration['auroc_right']:.2f} for right or not,",
            f"mean difference between confidence and share of right answers {calibration['calibration_error']:.3f}.",
            "",
            f"An answer below {about['refuse_below']['short']:.2f} is withheld where the prompt says what to do without an answer, and",
            f"below {about['refuse_below']['plain']:.2f} elsewhere. What other borders would do on the same prompts:",
            "",
            "| withheld below | right answers kept | prompts without an answer declined | answers given that are right |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
