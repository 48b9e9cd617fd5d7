"""The study's prompts, and its judge's: files of one's own, or the shipped ones."""

from __future__ import annotations

from rallebench.core.prompts import prompt_text
from rallebench.metrics.judges import JUDGES
from rallebench.metrics.judges.truthfulness import JudgePrompt
from rallebench.workflows.barag import Prompts

AGENTS = "suites/barag"
OF_AGENTS = ("naive-system.txt", "basic-system.txt", "basic-decide.txt", "advanced-decide.txt")


def agent_prompts(own: str = "") -> Prompts:
    """What the agents send. Raises BadFileError."""
    return Prompts(*(prompt_text(AGENTS, name, own) for name in OF_AGENTS))


def names_of(*, agents: bool, judge: bool) -> list[str]:
    """The files that are read for the agents, for the judge, or for both."""
    judging = JUDGES.entry("truthfulness").traits["prompts"] if judge else ()
    return [*(OF_AGENTS if agents else ()), *judging]


def judge_prompt(own: str = "") -> JudgePrompt:
    """What the judge of truthfulness and relevance is sent. Raises BadFileError."""
    traits = JUDGES.entry("truthfulness").traits
    return JudgePrompt(
        *(
            prompt_text(traits["folder"], name, own, fields)
            for name, fields in traits["prompts"].items()
        )
    )
