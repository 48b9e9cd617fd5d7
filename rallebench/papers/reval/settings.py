"""The settings of R-Eval's suites."""

from __future__ import annotations

from dataclasses import dataclass

from rallebench.core.settings import declare, declare_list, declare_text
from rallebench.datasets.tasks import TASKS
from rallebench.papers.common import declare_compat


@dataclass(frozen=True, slots=True)
class RevalSettings:
    """The settings of the systems, their tasks and their behaviour."""

    workflows: str = declare_list(
        "react, pal, function-calling, dfsdt …, several with commas",
        default="react",
        names="workflow",
    )
    models: str = declare_list(
        "models, several with commas; default: the one named for the suite", names="llm"
    )
    tasks: str = declare_list(
        "of R-Eval's twelve by name or number, or datasets; default: those that are there",
        *(task.name for task in TASKS),
        names="dataset",
    )
    data: str = declare_text(
        "folder with R-Eval's files (1-1_high_freq_ent.jsonl …), or with the public sets of its tasks",
        names="folder",
    )
    env: str = declare_list("environments to act in; default: each task's own", names="environment")
    retriever: str = declare_text(
        "the index behind the environment; default: the starter's", names="retriever"
    )
    corpus: str = declare_text(
        "imported corpus whose pages are opened; default: the index's own", names="corpus"
    )
    table: str = declare_text("scholar table; default: the starter's", names="table")
    shots: int = declare(
        int, -1, -1, 50, about="demonstrations; -1: as many as each workflow has", advanced=True
    )
    steps: int = declare(
        int, 0, 0, 1000, about="steps at most; 0: as each workflow has", advanced=True
    )
    protocol: str = declare_text(
        "how functions are called", "auto", "native", "text", advanced=True
    )
    more: str = declare_text(
        "further settings of workflows and environments: max_tokens=64;env.similar=5", advanced=True
    )
    instances: int = declare(
        int, 0, 0, 1_000_000, about="questions drawn of each task as R-Eval draws its 100; 0: all"
    )
    demonstrations: int = declare(
        int,
        0,
        0,
        50,
        about="shown questions, drawn by the seed from those that are not asked; 0: the workflow's own",
    )
    tokenizer: str = declare_text(
        "folder with the tokenizer whose tokens position match compares (the paper: GPT-2's)",
        names="folder",
        advanced=True,
    )
    prompts: str = declare_text(
        "your copy of THU-KEG/R-Eval, whose prompts are sent", names="folder", advanced=True
    )
    compat: str = declare_compat()

    @property
    def original(self) -> bool:
        """True if systems act and count like R-Eval's code."""
        return self.compat == "original"
