"""The settings of CRUD-RAG's suites."""

from __future__ import annotations

from dataclasses import dataclass

from rallebench.core.settings import declare, declare_group, declare_list, declare_text
from rallebench.papers.common import declare_compat, declare_prompts
from rallebench.papers.crud.factors import ENCODER, FACTORS, RERANKER, WORDS
from rallebench.papers.crud.records import declare_tasks
from rallebench.papers.crud.retrieval import RETRIEVERS

METRICS = (
    "auto",
    "rouge-L",
    "bleu-avg",
    "similarity",
    "QA_avg_F1",
    "QA_recall",
    "mrr",
    "gold_found",
)


def declare_data() -> str:
    return declare_text(
        "CRUD-RAG's split_merged.json or merged.json, one task's JSON or JSON lines, a folder of these, or a dataset",
        names="dataset file folder",
    )


def declare_corpus(about: str) -> str:
    return declare_text(about, names="corpus index file folder")


def declare_form() -> str:
    return declare_text("form of the documents' file, if it is not recognised")


@dataclass(frozen=True, slots=True)
class SearchedDocuments:
    """The documents searched by a suite. ``kind``: of the vector indexes; ``original``: chunks follow CRUD-RAG's code."""

    corpus: str
    form: str
    original: bool
    kind: str = "flat"


@dataclass(frozen=True, slots=True)
class AnsweringSettings:
    """The settings for answering and scoring."""

    join: str = declare_text(
        "separator of documents; auto: a line end for BM25, else a blank line",
        "auto",
        "line",
        "blank",
        advanced=True,
    )
    temperature: float = declare(float, 0.1, 0, 2, advanced=True)
    top_p: float = declare(float, 0.9, 0, 1, about="0: the model's own", advanced=True)
    top_k: int = declare(
        int, 0, 0, 100_000, about="default: 5, behind an API the model's own", advanced=True
    )
    max_tokens: int = declare(int, 1280, 1, 100_000, advanced=True)
    compat: str = declare_compat()
    prompts: str = declare_prompts("suites/crud", "IAAR-Shanghai/CRUD_RAG")
    similarity: str = declare_text(
        "encoder for the similarity of answer and reference; default: not measured",
        names="encoder",
    )
    quest: str = declare_text(
        "a language model for RAGQuestEval; default: not measured", names="llm"
    )
    quest_precision: str = declare_text(
        "over the questions that the text answers, or all that the reference answers",
        "code",
        "paper",
        advanced=True,
    )
    gold: str = declare_text(
        "folder or file of CRUD-RAG's own gold questions, for RAGQuestEval", names="file folder"
    )

    @property
    def original(self) -> bool:
        """True if the suite reproduces CRUD-RAG's own code."""
        return self.compat == "original"


@dataclass(frozen=True, slots=True)
class CrudSettings:
    """The settings of each single-task suite."""

    data: str = declare_data()
    corpus: str = declare_corpus(
        "the documents: BM25 over chunks of 128 tokens of them is the retriever, unless index names one"
    )
    form: str = declare_form()
    index: str = declare_text(
        "another retriever: an index, or a combination such as rrf:words,vectors", names="retriever"
    )
    k: int = declare(
        int, 8, 0, 1000, about="passages per question; 0 asks without any", sweep=(2, 4, 6, 8, 10)
    )
    answering: AnsweringSettings = declare_group(AnsweringSettings)
    reuse: str = declare_text(
        "CRUD-RAG's result file, or a folder of them: its answers are not requested again",
        names="file folder",
        advanced=True,
    )

    @property
    def documents(self) -> SearchedDocuments:
        return SearchedDocuments(self.corpus, self.form, self.answering.original)


@dataclass(frozen=True, slots=True)
class CrudTasksSettings:
    """The settings of the suite with several tasks."""

    suite: CrudSettings = declare_group(CrudSettings)
    tasks: str = declare_tasks()


def _papers(name: str, about: str = "", names: str = "") -> str:
    """A field for the values of a factor; the default is the paper's values."""
    values = tuple(map(str, FACTORS[name].papers))
    text = "; ".join(filter(None, [f"default {','.join(values)}", about]))
    return declare_list(text, *values, names=names)


@dataclass(frozen=True, slots=True)
class CrudGridSettings:
    """The settings of CRUD-RAG's grid."""

    data: str = declare_data()
    corpus: str = declare_corpus(
        "the documents: a file or folder, an imported corpus, or an index of whole articles"
    )
    tasks: str = declare_tasks()
    factors: str = declare_list(
        "the factors to vary, as in chunk,topk", *FACTORS, default=",".join(FACTORS)
    )
    chunk: int = declare(int, 128, 1, 1_000_000, about="the base's chunk size in tokens")
    overlap: int = declare(int, 0, 0, 95, about="the base's overlap in %")
    embedding: str = declare_text(
        f"the encoder of the base and of dense and hybrid cells; default {ENCODER} if it is on this machine",
        names="encoder",
    )
    retriever: str = declare(
        str, WORDS, about="the base's; the paper's is dense", choices=RETRIEVERS
    )
    k: int = declare(int, 8, 1, 1000, about="the base's passages per question")
    chunks: str = _papers("chunk", "top-k changes so that equally many tokens are read")
    overlaps: str = _papers("overlap")
    embeddings: str = _papers("embedding", names="encoder")
    retrievers: str = _papers("retriever")
    ks: str = _papers("topk")
    llms: str = declare_list(
        f"besides --llm; default: those in the workspace of {','.join(map(str, FACTORS['llm'].papers))}",
        names="llm",
    )
    kind: str = declare(str, "flat", about="kind of vector index")
    reranker: str = declare_text(
        f"folder or hub id of the cross-encoder of hybrid-rerank; default {RERANKER} if it is on this machine",
        names="checkpoint",
    )
    by: str = declare_text("the metric that decides; auto: rouge-L, without a model mrr", *METRICS)
    form: str = declare_form()
    answering: AnsweringSettings = declare_group(AnsweringSettings)

    @property
    def documents(self) -> SearchedDocuments:
        return SearchedDocuments(self.corpus, self.form, self.answering.original, self.kind)

    def values(self, setting: str) -> str:
        """The value list for a factor, by the name of its setting."""
        text: str = getattr(self, setting)
        return text.strip()
