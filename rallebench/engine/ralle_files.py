"""RaLLe's own result files: ``output.jsonl``, ``output_reduced.jsonl``, ``results.json``, ``config.json``, ``prompt.txt``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rallebench.chains.chain import request_prompt
from rallebench.core.files import json_lines, write_json, write_text
from rallebench.core.json_values import JsonObject, JsonValue
from rallebench.core.report import RunReport
from rallebench.core.types import Chain, Episode, Json, Passage, Retrieve, Step

_DOWNSTREAM = ("accuracy", "em", "f1", "rougel", "has_answer")


def output_row(record: Json, episode: Episode) -> dict[str, JsonValue]:
    """A line of RaLLe's ``output.jsonl``: per action its prompt and provenance or answer."""
    row: dict[str, JsonValue] = {
        "id": record.get("id"),
        "input": record.get("input"),
        "output": [_action_row(s) for s in episode.steps],
    }
    return {**row, "error": episode.error} if episode.error else row


def _action_row(step: Step) -> dict[str, JsonValue]:
    prompt = request_prompt(step.request)
    if isinstance(step.request, Retrieve):
        return {
            "prompt": prompt,
            "provenance": [_provenance(hit.passage, full=True) for hit in step.reply.hits],
        }
    return {"prompt": prompt, "answer": step.reply.text}


def _provenance(passage: Passage, *, full: bool) -> dict[str, str]:
    item = {"wikipedia_id": passage.page_id, "doc_id": passage.doc_id}
    return {**item, "wikipedia_title": passage.title, "text": passage.text} if full else item


def reduced_row(record: Json, episode: Episode) -> dict[str, JsonValue]:
    """A line of RaLLe's ``output_reduced.jsonl``: all provenance in order, the last answer."""
    provenance = [_provenance(hit.passage, full=False) for hit in episode.hits]
    return {
        "id": record.get("id"),
        "output": [{"provenance": provenance, "answer": episode.answer}],
    }


def results(report: RunReport) -> dict[str, JsonValue]:
    """RaLLe's ``results.json`` from a report, with the counts behind its means."""
    value = {name: mean.value for name, mean in report.metrics.items()}
    return {
        "kilt": {f"KILT-{m}": value[f"KILT-{m}"] for m in _DOWNSTREAM if f"KILT-{m}" in value},
        "downstream": {m: value[m] for m in _DOWNSTREAM if m in value},
        "retrieval": {
            key: value[name]
            for key, name in (("Rprec", "Rprec"), ("recall_at_5", "recall@5"))
            if name in value
        },
        "n": report.n,
        "n_errors": report.n_errors,
        "sec per query": report.seconds_per_question,
    }


def prompts_text(chain: Chain) -> str:
    """The templates of a chain, action by action."""
    parts = []
    for number, action in enumerate(chain.actions, 1):
        who = f" {action.target}" if action.target else ""
        k = f", k = {action.k}" if action.kind == "retrieve" else ""
        parts.append(
            f"## Action {number}: {action.kind}{who}{k} ({action.dialect})\n{action.template}\n"
        )
    return "\n".join(parts)


def write_ralle_files(
    folder: Path,
    records: Sequence[Json],
    episodes: Mapping[str, Episode],
    report: RunReport,
    chain: Chain | None,
    config: JsonObject | None,
) -> None:
    """Write RaLLe's files into a run folder, each whole. A failed question is in ``output.jsonl`` with its error.
    ``output_reduced.jsonl`` leaves it out, because it is not an empty answer."""
    pairs = [
        (record, episodes[str(record["id"]).strip()])
        for record in records
        if str(record["id"]).strip() in episodes
    ]
    write_text(folder / "output.jsonl", json_lines(output_row(r, e) for r, e in pairs))
    write_text(
        folder / "output_reduced.jsonl",
        json_lines(reduced_row(r, e) for r, e in pairs if not e.error),
    )
    write_json(folder / "results.json", results(report), indent=4)
    if chain is not None:
        write_text(folder / "prompt.txt", prompts_text(chain))
    if config is not None:
        write_json(folder / "config.json", config, indent=4, sort_keys=True)
