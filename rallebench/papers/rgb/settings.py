"""The settings of RGB's suites and of its record builder."""

from __future__ import annotations

from dataclasses import dataclass

from rallebench.core.settings import declare, declare_group, declare_list, declare_text
from rallebench.papers.common import declare_compat, declare_prompts

RATIOS = ("0", "0.2", "0.4", "0.6", "0.8")


@dataclass(frozen=True, slots=True)
class RgbSettings:
    """The settings of all four tests."""

    data: str = declare_text(
        "folder of RGB's files, one of them, or a dataset in that form", names="dataset file folder"
    )
    language: str = declare_text(
        "auto: as a file is named or reads; of a folder, en", "auto", "en", "zh"
    )
    set: str = declare_text(
        "a set of the folder, as en_fact; default: the set that the test is made for, and no other"
    )
    passages: int = declare(int, 5, 0, 1000, about="documents per question; 0 asks without any")
    temperature: float = declare(float, 0.7, 0, 2, advanced=True)
    top_p: float = declare(float, 0.0, 0, 1, about="default: 0.8, behind an API 1", advanced=True)
    max_tokens: int = declare(int, 256, 1, 100_000, advanced=True)
    system: str = declare_text(
        "merged: for servers whose model has no system role", "role", "merged", advanced=True
    )
    compat: str = declare_compat()
    prompts: str = declare_prompts("suites/rgb", "chen700564/RGB")
    reuse: str = declare_text(
        "folder with RGB's result-en, result-zh: answers there are not asked again",
        names="folder",
        advanced=True,
    )

    @property
    def original(self) -> bool:
        """True if the test counts like RGB's code."""
        return self.compat == "original"


@dataclass(frozen=True, slots=True)
class RgbJudgeSettings:
    """The model used to judge answers."""

    judge: str = declare_text("a language model that judges the answers as well", names="llm")
    judge_form: str = declare_text(
        "choice: by the probabilities of Yes and No, so that a small model judges; text: the published sentence",
        "text",
        "choice",
        advanced=True,
    )


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """The file of errors with categories assigned by a person."""

    labels: str = declare_text(
        "errors named by hand, CSV or JSON lines: qid, category, and part if they differ by part",
        names="file",
    )


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """The settings of ``rgb-noise``."""

    test: RgbSettings = declare_group(RgbSettings)
    errors: LabelSettings = declare_group(LabelSettings)
    noise: str = declare_list("shares of noise", *RATIOS, default=",".join(RATIOS))


@dataclass(frozen=True, slots=True)
class IntegrationSettings:
    """The settings of ``rgb-integration``."""

    test: RgbSettings = declare_group(RgbSettings)
    errors: LabelSettings = declare_group(LabelSettings)
    noise: str = declare_list("shares of noise", *RATIOS, default="0,0.2,0.4")


@dataclass(frozen=True, slots=True)
class RejectionSettings:
    """The settings of ``rgb-rejection``."""

    test: RgbSettings = declare_group(RgbSettings)
    errors: LabelSettings = declare_group(LabelSettings)
    judging: RgbJudgeSettings = declare_group(RgbJudgeSettings)


@dataclass(frozen=True, slots=True)
class CounterfactualSettings:
    """The settings of ``rgb-counterfactual``."""

    test: RgbSettings = declare_group(RgbSettings)
    judging: RgbJudgeSettings = declare_group(RgbJudgeSettings)
    noise: float = declare(float, 0.0, 0, 1, about="share of noise beside the false documents")
    correct: float = declare(
        float, 0.0, 0, 1, about="share of true documents beside the false ones"
    )


@dataclass(frozen=True, slots=True)
class RecordSettings:
    """The settings of ``rgb-testbed``, which builds records."""

    data: str = declare_text(
        "dataset: a name, a file in KILT's form, or in RGB's", names="dataset file"
    )
    articles: str = declare_text(
        "instead: a corpus, of whose articles a language model writes a question each",
        names="corpus file folder",
    )
    parts: int = declare(
        int, 1, 1, 5, about="with articles: parts of a question, each with an answer of its own"
    )
    prompts: str = declare_text(
        "with articles: a folder with prompts of your own, named as in prompts/suites/rgb",
        names="folder",
        advanced=True,
    )
    index: str = declare_text("the retriever whose passages become documents", names="retriever")
    k: int = declare(int, 30, 1, 1000, about="passages per question")
    positives: int = declare(
        int,
        1,
        1,
        1000,
        about="fewest positives of a record; with fewer than documents, shares of noise mean little",
    )
    language: str = declare_text("how the files are named", "en", "zh")
    known: str = declare_text(
        "run 'without documents': false copies only of what it answered right", names="run"
    )
