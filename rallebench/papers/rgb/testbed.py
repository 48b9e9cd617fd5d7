"""An RGB test as a run, with its documents, prompt, flow, rates and files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rallebench.core.errors import BadFileError, Hint, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import json_lines, sha256_file
from rallebench.core.json_values import as_json
from rallebench.core.letters import CODES, main_script
from rallebench.core.prompts import SHIPPED, Wording, fill_template, find_wording, prompt_text
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.scoring import Scorer, Values
from rallebench.core.types import (
    Episode,
    Evidence,
    Example,
    Flow,
    Generate,
    Message,
    Outcome,
    Passage,
    Question,
)
from rallebench.experiments.common import scored_run
from rallebench.experiments.languages import LANGUAGES
from rallebench.metrics import METRICS
from rallebench.papers.common import behind_api, flow_spec, plain_name, replay
from rallebench.papers.rgb.predictions import (
    PredictionRow,
    count_result,
    fits,
    prediction_row,
    read_rows,
)
from rallebench.papers.rgb.records import (
    Documents,
    RgbRecord,
    RgbRecords,
    bare_example,
    base_documents,
    counterfactual_documents,
    find_file,
    integration_documents,
    read_records,
    share,
)
from rallebench.papers.rgb.scoring import Assessment, assess, metric_definitions
from rallebench.papers.rgb.settings import RgbSettings
from rallebench.workspace.paths import WorkspaceFolder

FOLDER = "suites/rgb"
WORKFLOW = "rgb"


@dataclass(frozen=True, slots=True)
class TestKind:
    """A test of RGB. ``ends``: suffixes of the sets' file names, with the corrected set first and the set of the printed
    figures last; ``build``: (record, number, share of noise, for ``facts`` also the share of correct documents; ``original=``)
    → documents; ``judge``: the judge's name, or ''."""

    ends: tuple[str, ...]
    build: Callable[..., Documents]
    metrics: tuple[str, ...] = ("all_rate", "rejection_rate")
    judge: str = ""
    facts: bool = False


LUCKY = ("rejection_rate", "lucky_rate", "all_rate")
FACTS = ("all_rate", "rejection_rate", "fact_check_rate", "correct_rate")
TEST_KINDS: Mapping[str, TestKind] = {
    "noise": TestKind(("_refine", ""), base_documents),
    "integration": TestKind(("_int",), integration_documents),
    "rejection": TestKind(("_refine", ""), base_documents, LUCKY, "rgb-rejection"),
    "counterfactual": TestKind(
        ("_fact",), counterfactual_documents, FACTS, "rgb-errors", facts=True
    ),
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt; ``user`` contains ``{DOCS}`` and ``{QUERY}``. ``merged``: put the system text before the user text, separated
    by a blank line, for models without a system role."""

    system: str
    user: str
    merged: bool = False


def read_prompt(language: str, folder: str = "", merged: bool = False) -> Prompt:
    """The prompt of a language. Raises BadFileError."""
    system = prompt_text(FOLDER, f"system-{language}.txt", folder)
    user = prompt_text(FOLDER, f"user-{language}.txt", folder, ("DOCS", "QUERY"))
    return Prompt(system, user, merged)


def messages(prompt: Prompt, question: Question) -> tuple[Message, ...]:
    """The messages of a question, with one line per document. Without documents, the system text is omitted."""
    documents = "\n".join(passage.text for passage in question.passages)
    user = fill_template(prompt.user, {"DOCS": documents, "QUERY": question.text})
    if not question.passages:
        return (Message("user", user),)
    if prompt.merged:
        return (Message("user", f"{prompt.system}\n\n{user}"),)
    return (Message("system", prompt.system), Message("user", user))


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings of a model. ``top_p``: 0 uses the value in the model's entry."""

    temperature: float
    top_p: float
    max_tokens: int
    seed: int


def answering(question: Question, llm: str, prompt: Prompt, decoding: Sampling) -> Flow:
    """Ask one question with its documents; the reply is the answer, unchanged."""
    reply = yield Generate(
        llm,
        messages(prompt, question),
        max_tokens=decoding.max_tokens,
        temperature=decoding.temperature,
        seed=decoding.seed,
        options={"top_p": decoding.top_p} if decoding.top_p else {},
        evidence=Evidence(question.text, question.passages),
    )
    return Outcome(reply.text)


@dataclass(frozen=True, slots=True)
class Testbed:
    """Common parts of an experiment's runs. ``name``: the test's name in TEST_KINDS."""

    request: ExperimentRequest[WorkspaceFolder]
    settings: RgbSettings
    name: str
    records: RgbRecords
    prompt: Prompt
    decoding: Sampling
    wording: Wording = SHIPPED

    @property
    def kind(self) -> TestKind:
        return TEST_KINDS[self.name]

    @property
    def original(self) -> bool:
        """True if answers are counted like in RGB's code."""
        return self.settings.original

    @property
    def usable(self) -> list[RgbRecord]:
        """The records with required answers."""
        return [record for record in self.records.records if record.required]


@dataclass(frozen=True, slots=True)
class Test:
    """A run of a test. ``documents``: record id → its documents; ``left_out``: records without any document; ``earlier``:
    existing rows, reused without asking again."""

    testbed: Testbed
    noise: float
    correct: float
    number: int
    records: tuple[RgbRecord, ...]
    documents: Mapping[str, Documents]
    left_out: tuple[str, ...]
    earlier: Mapping[str, PredictionRow] = field(default_factory=dict)
    earlier_sha256: str = ""

    @property
    def short(self) -> int:
        """Number of records with fewer documents than requested; 0 if none were requested."""
        return sum(documents.short for documents in self.documents.values()) if self.number else 0

    @property
    def other_noise(self) -> int:
        """Number of records with more or fewer negatives than requested because a kind ran short. At noise 1, missing
        negatives are not replaced."""
        if self.noise == 1:
            return 0
        negatives = share(self.number, self.noise, self.testbed.original)
        return sum(documents.negatives != negatives for documents in self.documents.values())

    @property
    def noisy(self) -> float:
        """The share of negatives among all documents."""
        total = sum(len(documents.items) for documents in self.documents.values())
        return sum(documents.negatives for documents in self.documents.values()) / (total or 1)

    def file(self, part: str = "") -> str:
        """The path of RGB's prediction file for this test; with ``part`` = ``_result``, the path of its result file."""
        records = self.testbed.records
        name = f"prediction_{records.name}_{plain_name(self.testbed.request.llm)}"
        temperature = float(self.testbed.decoding.temperature)
        rates = f"temp{temperature}_noise{float(self.noise)}_passage{self.number}_correct{float(self.correct)}"
        return f"result-{records.language}/{name}_{rates}{part}.json"

    def assess(self, example: Example, answer: str) -> Assessment:
        return assess(answer, example.gold.required, self.testbed.records.language)

    def assessments(self, result: RunResult) -> Iterator[tuple[Example, Assessment]]:
        """All answered examples with their assessments, in order."""
        for example in result.request.examples:
            if (episode := result.episodes.get(example.question.qid)) is not None:
                yield example, self.assess(example, episode.answer)


Answered = Mapping[str, "tuple[Test, RunResult]"]
"""Run label → the test and its answers."""


def read_testbed(
    request: ExperimentRequest[WorkspaceFolder], name: str, settings: RgbSettings, judge: str = ""
) -> Testbed:
    """Read the data and prompts of the test ``name``. ``judge``: the judging model, or ''. Raises UsageError."""
    s = settings
    language = "" if s.language == "auto" else s.language
    data = request.workspace.data(s.data, "the folder or file of RGB's records")
    sets = tuple(f"{language or 'en'}{end}" for end in TEST_KINDS[name].ends)
    path = find_file(data, s.set, sets)
    records = read_records(path, language)
    if not language:
        _check_language(records)
    top_p = (s.top_p or (1.0 if behind_api(request) else 0.8)) if s.temperature else 0.0
    decoding = Sampling(s.temperature, top_p, s.max_tokens, request.seed)
    judging = METRICS.entry(TEST_KINDS[name].judge).traits["judge"].prompts if judge else ()
    own = [f"{role}-{records.language}.txt" for role in ("system", "user")]
    wording = find_wording(s.prompts, [(FOLDER, file) for file in (*own, *judging)])
    prompt = read_prompt(records.language, s.prompts, s.system == "merged")
    testbed = Testbed(request, settings, name, records, prompt, decoding, wording)
    if not testbed.usable:
        raise UsageError(f"No record of {path} has an answer, so nothing can be scored.")
    return testbed


def _check_language(records: RgbRecords) -> None:
    """Raise BadFileError for a file whose name and questions differ in language."""
    letters = main_script(record.query for record in records.records)
    other = next(
        (code for code, name in CODES.items() if LANGUAGES[name] == letters), records.language
    )
    if other != records.language:
        raise BadFileError(
            f"{records.path} is named as a set in {CODES[records.language]}, and its questions are in {letters}; take another file, or "
            "say which prompts are to be sent.",
            hint=Hint("set", f"language={other}"),
        )


def make_test(
    testbed: Testbed, noise: float, correct: float = 0.0, number: int | None = None
) -> Test:
    """A test with each record's documents and reusable earlier rows. Raises UsageError."""
    number = testbed.settings.passages if number is None else number
    shares = (noise, correct) if testbed.kind.facts else (noise,)
    built = {
        record.id: testbed.kind.build(record, number, *shares, original=testbed.original)
        for record in testbed.usable
    }
    # The original asks these questions without documents and therefore without the system text, which is a different test.
    drop = bool(number) and not testbed.original
    empty = tuple(qid for qid, documents in built.items() if drop and not documents.items)
    records = [record for record in testbed.usable if record.id not in empty]
    records = records[: testbed.request.limit]
    if not records:
        raise UsageError(
            f"No record of {testbed.records.path} has documents for noise {noise:g}; choose another set."
        )
    lists = {record.id: built[record.id] for record in records}
    test = Test(testbed, noise, correct, number, tuple(records), lists, empty)
    reuse = testbed.settings.reuse
    if not reuse:
        return test
    folder = Path(reuse).expanduser()
    if not folder.is_dir():
        raise UsageError(f"reuse={reuse}: there is no such folder.")
    file = folder / test.file()
    rows = read_rows(file)
    earlier = {
        record.id: rows[record.id]
        for record in records
        if fits(rows.get(record.id), record, lists[record.id], testbed.original)
    }
    return replace(test, earlier=earlier, earlier_sha256=sha256_file(file) if rows else "")


def rgb_run(test: Test, label: str, judges: tuple[Scorer, ...] = ()) -> RunRequest:
    """The test as a run; earlier answers in RGB's own files are reused."""
    testbed = test.testbed
    llm, prompt = testbed.request.llm, testbed.prompt

    def flow(question: Question) -> Flow:
        if question.qid in test.earlier:
            return replay(str(test.earlier[question.qid]["prediction"]))
        return answering(question, llm, prompt, testbed.decoding)

    def score(example: Example, episode: Episode) -> Values:
        return test.assess(example, episode.answer).rates(test.noise, testbed.original)

    settings = {
        "noise": test.noise,
        "correct": test.correct,
        "passages": test.number,
        "language": testbed.records.language,
        "system": prompt.system if test.number else "",
        "user": prompt.user,
        "merged": prompt.merged,
        "decoding": as_json(testbed.decoding),
        "compat": testbed.settings.compat,
        "reuse": test.earlier_sha256,
        **testbed.wording.run_settings,
    }
    examples = tuple(make_example(record, test.documents[record.id]) for record in test.records)
    asking, ref = flow_spec(WORKFLOW, flow, settings, (llm,)), DatasetRef(testbed.records.name)
    columns = metric_definitions(*testbed.kind.metrics)
    return scored_run(label, asking, ref, examples, score, columns, judges=judges)


def make_example(record: RgbRecord, documents: Documents) -> Example:
    """A question with its documents; neither their texts nor their ids reveal the gold."""
    bare = bare_example(record)
    passages = tuple(Passage(f"document {n}", text) for n, text in enumerate(documents.texts, 1))
    kinds = [{"kind": kind, "text": text} for kind, text in documents.items]
    row = {**bare.record, "rgb": {"answer": record.answer, "docs": kinds}}
    return replace(bare, question=replace(bare.question, passages=passages), record=row)


def result_files(test: Test, result: RunResult) -> dict[str, str | Iterable[str]]:
    """The two files that RGB writes for this test; failed questions have no row."""
    records = {record.id: record for record in test.records}
    rows = []
    for example, assessment in test.assessments(result):
        record = records[example.question.qid]
        rows.append(prediction_row(record, test.documents[record.id], test.noise, assessment))
    value = count_result(rows, test.noise, test.testbed.kind.facts)
    text = json.dumps(value, ensure_ascii=False, indent=4)
    return {test.file(): json_lines(rows), test.file("_result"): text}
