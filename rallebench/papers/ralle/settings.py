"""The settings of KILT's suites."""

from __future__ import annotations

from dataclasses import dataclass

from rallebench.core.settings import declare, declare_group, declare_list, declare_text
from rallebench.papers.common import declare_compat
from rallebench.papers.ralle.sets import MODES, SETS


@dataclass(frozen=True, slots=True)
class KiltDataSettings:
    """The folder of KILT's files."""

    data: str = declare_text(
        "folder with KILT's files, named as KILT names them: nq-dev-kilt.jsonl …; of one set also a file or a dataset",
        names="dataset file folder",
    )


@dataclass(frozen=True, slots=True)
class KiltAskingSettings:
    """The settings for answering."""

    split: str = declare_text("", "dev", "train")
    mode: str = declare_list(
        "read, closed-book, retrieve, retrieve-plain (entity linking by the whole text), three-action; several with commas",
        *MODES,
        default="read",
    )
    retriever: str = declare_text("the index that is asked", names="retriever")
    k: int = declare(
        int, 5, 1, 1000, about="passages per question (RaLLe's file of three-action AY2 has 1)"
    )
    rewrite: bool = declare(
        bool,
        True,
        about="REWRITE-EL: entity linking asks 'What is \"mention\" ?'; false: the whole text",
    )
    compat: str = declare_compat()
    prompts: str = declare_text(
        "your copy of yhoshi3/RaLLe, whose chains are run", names="folder", advanced=True
    )

    @property
    def original(self) -> bool:
        """True if chains answer and count like RaLLe's code."""
        return self.compat == "original"


@dataclass(frozen=True, slots=True)
class SetSettings:
    """The settings of a suite of one set."""

    folder: KiltDataSettings = declare_group(KiltDataSettings)
    file: str = declare_text("a file in KILT's form, or a dataset, instead", names="dataset file")
    asking: KiltAskingSettings = declare_group(KiltAskingSettings)


@dataclass(frozen=True, slots=True)
class KiltSettings:
    """The settings of ``kilt``."""

    datasets: str = declare_list(
        f"of {', '.join(SETS)}; default: those whose files are there", *SETS
    )
    folder: KiltDataSettings = declare_group(KiltDataSettings)
    file: str = declare_text(
        "files in KILT's form instead: nq=FILE,hopo=FILE", names="file", many=True
    )
    asking: KiltAskingSettings = declare_group(KiltAskingSettings)
