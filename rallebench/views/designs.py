"""The fields that an experiment may vary, the values on offer, and the request made from the user's choices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Union

from rallebench.chains.ralle import load_chain_file
from rallebench.chains.saved import chain_from_json
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.experiment_reports import IMPROVE
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import write_text
from rallebench.core.settings import Setting, parse_settings
from rallebench.core.starter import STARTER_INDEXES
from rallebench.core.types import Chain, Json, digest
from rallebench.corpora.chunking import PRESETS
from rallebench.encoders.references import encoders
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.experiments import EXPERIMENTS, SUITES
from rallebench.experiments.benchmarks import benchmarks
from rallebench.experiments.sweeps import GENERATION, factor
from rallebench.experiments.tradeoff.running import search_settings as search_settings
from rallebench.retrievers import kinds, search_form
from rallebench.views import chain_versions
from rallebench.views.lists import line
from rallebench.workspace.paths import WorkspaceFolder

PROMPTS = "prompts/variants"
"""Folder of a workspace with the prompts that sweeps vary, one file each, so that a sweep can be continued."""
Choice = tuple[str, str]
"""(value, its label)."""


TypedValue = Union[str, "Sequence[str]"]
"""The value of a field of a form, or the values of a field that takes several."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A field that a sweep may vary. ``name``: its name in the sweep; ``choices``: values on offer; ``current``: the
    chain's own value, "" if none; ``kind``: choice, number, prompt or text. All kinds except choice accept typed
    (``own``) values.
    """

    name: str
    label: str
    choices: tuple[Choice, ...]
    current: str = ""
    kind: str = "choice"

    @property
    def own(self) -> bool:
        """True if the user may type values."""
        return self.kind != "choice"


def variables(workspace: WorkspaceFolder, chain: Chain) -> dict[str, Variable]:
    """Return all fields of a chain that a sweep may vary, the most common first."""
    return {variable.name: variable for variable in _variables(workspace, chain)}


def _variables(workspace: WorkspaceFolder, chain: Chain) -> Iterator[Variable]:
    searches = [(i, a) for i, a in enumerate(chain.actions, 1) if a.kind == "retrieve"]
    models = [(i, a) for i, a in enumerate(chain.actions, 1) if a.kind == "generate"]
    retrievers = tuple((name, name) for name in workspace.retrievers())
    llms = tuple((name, name) for name in workspace.llms())
    if searches:
        yield _numbers("k", "k", (1, 3, 5, 10, 20), searches[0][1].k)
        yield Variable("retriever", "Index", retrievers, searches[0][1].target)
    if models:
        yield Variable("llm", "Model", llms, models[0][1].target)
    for i, _ in models:
        of = f" of action {i}" if len(models) > 1 else ""
        names = tuple((name, name) for name in prompts(workspace, chain, i))
        yield Variable(f"{i}.template", f"Prompt{of}", names, names[0][0], "prompt")
    if searches:
        yield from _of_index(workspace)
    for i, action in searches if len(searches) > 1 else ():
        yield _numbers(f"{i}.k", f"k of action {i}", (1, 3, 5, 10, 20), action.k)
        yield Variable(f"{i}.target", f"Index of action {i}", retrievers, action.target)
    for i, action in models if len(models) > 1 else ():
        yield Variable(f"{i}.target", f"Model of action {i}", llms, action.target)
    for i, _ in searches:
        of = f" of action {i}" if len(searches) > 1 else ""
        names = tuple((name, name) for name in prompts(workspace, chain, i))
        yield Variable(f"{i}.template", f"Query{of}", names, names[0][0], "prompt")
    if models:
        own = models[0][1].generation
        offered = {"temperature": (0, 0.3, 0.7, 1), "max_tokens": (16, 64, 256), "seed": (0, 1, 2)}
        for name in (*offered, *(n for n in (*GENERATION, *own) if n not in offered)):
            label = name.replace("_", " ").capitalize()
            yield _numbers(name, label, offered.get(name, ()), own.get(name), "text")


def _of_index(workspace: WorkspaceFolder) -> Iterator[Variable]:
    yield _numbers("index.chunk_size", "Chunk size", ("whole", 64, 128, 256, 512), None, "text")
    yield _numbers("index.chunk_overlap", "Chunk overlap", (0, "10%", "30%", "50%"), None, "text")
    for name, label, values in (
        ("index.encoder", "Encoder", encoders()),
        ("index.kind", "Index kind", kinds()),
        ("index.chunk_preset", "Chunking of a paper", PRESETS.names()),
        ("index.corpus", "Corpus", workspace.corpus_cards()),
    ):
        if choices := tuple((value, value) for value in values):
            yield Variable(name, label, choices)


def _numbers(
    name: str, label: str, offered: Sequence[Any], current: Any, kind: str = "number"
) -> Variable:
    values = [*offered, *([current] if current is not None and current not in offered else [])]
    if all(isinstance(value, (int, float)) for value in values):
        values.sort()
    own = "" if current is None else str(current)
    return Variable(name, label, tuple((str(v), str(v)) for v in values), own, kind)


def prompts(workspace: WorkspaceFolder, chain: Chain, action: int) -> dict[str, str]:
    """Name → template for action number ``action``, from the chain itself, its earlier versions and other chains.
    Each text appears once.
    """
    own = chain.actions[action - 1]
    texts = {"as it is": own.template}
    versions = chain_versions.versions(workspace, chain.name)[:9]
    named = [(f"version {version.number}", version.chain) for version in versions]
    for name, path in workspace.chain_paths().items():
        try:
            named.append((name, load_chain_file(path)))
        except RalleError:
            continue  # Build reports the error of a damaged chain
    for name, other in named:
        if action <= len(other.actions) and other.actions[action - 1].kind == own.kind:
            template = other.actions[action - 1].template
            if template and template not in texts.values():
                texts[name] = template
    return texts


def factors(
    workspace: WorkspaceFolder,
    chain: Chain,
    chosen: Mapping[str, Sequence[str]],
    typed: Mapping[str, str],
) -> list[str]:
    """Return the ``field=value,value`` texts of a sweep. ``chosen``: field → values, or names of prompts; ``typed``:
    name → prompt written for the sweep. Raises UsageError if a field has no value.
    """
    known = variables(workspace, chain)
    texts = []
    for name, values in chosen.items():
        variable = known.get(name)
        if variable is None:
            raise UsageError(f"The chain {chain.name} has no field {name}; remove it.")
        if not values:
            raise UsageError(f"{variable.label}: choose at least one value, or remove it.")
        if variable.kind == "prompt":
            offered = {**prompts(workspace, chain, int(name.partition(".")[0])), **typed}
            values = [_prompt_file(workspace, value, offered) for value in values]
        texts.append(f"{name}={','.join(map(_wrap, values))}")
    return texts


def _wrap(value: str) -> str:
    """Put a value in brackets if it contains a comma."""
    return f"({value})" if "," in value and not set(value) & set("()") else value


def _prompt_file(workspace: WorkspaceFolder, name: str, offered: Mapping[str, str]) -> str:
    """Return the file of a prompt. An identical file is reused; a different file of that name is not overwritten."""
    if name not in offered:
        raise UsageError(f"There is no prompt {name!r} any more; choose another.")
    folder = workspace.path.resolve() / PROMPTS
    stem = re.sub(r"[^\w\- .]+", "-", name)[:40].strip(" .-") or "prompt"
    path = folder / f"{stem}.txt"
    if path.is_file() and path.read_text(encoding="utf-8") != offered[name]:
        path = folder / f"{stem} {digest(offered[name])[:4]}.txt"
    if not path.is_file():
        write_text(path, offered[name])
    return str(path)


# published benchmarks


def suites() -> dict[str, list[str]]:
    """Benchmark → names of its suites. A suite that names no benchmark is listed under the first word of its own
    name.
    """
    groups: dict[str, list[str]] = {name: [] for name in benchmarks()}
    for name in SUITES.names():
        groups.setdefault(benchmark_name(name), []).append(name)
    return {benchmark: names for benchmark, names in groups.items() if names}


def benchmark_name(suite: str) -> str:
    """Return the name of a suite's benchmark.

    >>> benchmark_name("beir"), benchmark_name("mine-first")
    ('beir', 'mine')
    """
    traits = SUITES.entry(suite).traits if suite in SUITES else {}
    return str(traits.get("benchmark") or suite.partition("-")[0])


def benchmark_title(name: str) -> str:
    """Return the title of a benchmark, or its name if a plug-in registers only suites.

    >>> benchmark_title("beir"), benchmark_title("mine")
    ('BEIR', 'mine')
    """
    known = benchmarks().get(name)
    return known.title if known else name


def suite_part(suite: str) -> str:
    """Describe the part of the benchmark that a suite covers; '' for the whole benchmark.

    >>> suite_part("beir"), suite_part("mine-all-moons")
    ('', 'all moons')
    """
    return suite.removeprefix(benchmark_name(suite)).lstrip("-").replace("-", " ")


def first_suite(benchmark: str = "") -> str:
    """Return the suite to offer first, for one benchmark or all; if a benchmark declares none, its first suite."""
    known, names = benchmarks(), suites()
    name = benchmark if benchmark in names else next(iter(names))
    declared = known[name].first_suite if name in known else ""
    return declared if declared in names[name] else names[name][0]


def first_table(benchmark: str) -> str:
    """Return the published table to show beside a benchmark's results; '' if it declares none."""
    known = benchmarks().get(benchmark)
    return known.first_table if known else ""


def suite_about(name: str) -> tuple[str, bool, Mapping[str, Setting]]:
    """Return (description, whether it uses a model, settings) of a published benchmark. Raises NotFoundError."""
    entry = SUITES.entry(name)
    return line(entry.listing), bool(entry.traits.get("asks", True)), entry.form


def settings_form(name: str) -> Mapping[str, Setting]:
    """Return the settings of a published benchmark, or of an improvement those without a field of their own. Raises
    NotFoundError.
    """
    if name != IMPROVE:
        return SUITES.entry(name).form
    form = EXPERIMENTS.entry(IMPROVE).form
    return {key: setting for key, setting in form.items() if key not in ("dataset", "metric")}


def suite_sets(workspace: WorkspaceFolder, suite: str, data: str) -> list[str]:
    """Return the sets that a published benchmark finds in a folder; none if ``data`` is not a folder."""
    inside = SUITES.entry(suite).traits.get("sets")
    with suppress(RalleError, OSError):
        folder = workspace.data(data, "a folder")
        return sorted(inside(folder)) if inside and folder.is_dir() else []
    return []


def advanced_settings(form: Mapping[str, Setting]) -> list[str]:
    """Return the settings of a published benchmark that can stay at their defaults in a first run."""
    return [name for name, setting in form.items() if setting.advanced]


# index trade-offs


def search_knobs(
    workspace: WorkspaceFolder, indexes: Sequence[str]
) -> dict[str, tuple[Setting, list[str]]]:
    """Search setting of these indexes → (its declaration, the values that are tried by default)."""
    kind_of = {**STARTER_INDEXES, **{n: m.kind for n, m in workspace.manifests().items()}}
    knobs: dict[str, tuple[Setting, list[str]]] = {}
    for kind in dict.fromkeys(kind_of[name] for name in indexes if name in kind_of):
        tried = search_settings(kind)
        for name, setting in search_form(kind).items():
            values = [str(point[name]) for point in tried if name in point]
            if values:
                knobs.setdefault(name, (setting, values))
    return knobs


# continuing experiments


def stored_request(
    workspace: WorkspaceFolder, name: str, *, allow_python: bool = False
) -> ExperimentRequest[WorkspaceFolder]:
    """Return the request of a started experiment; running it again continues the experiment. Raises UsageError."""
    stored = ExperimentStore(workspace.path).open(name)
    request, resume = stored.request, {"resume": True} if stored.kind == "batch" else {}
    return ExperimentRequest(
        workspace,
        request.llm,
        {**request.settings, **resume},
        request.limit,
        request.seed,
        allow_python,
        stored.kind,
        name,
    )


def base_chain(settings: Json) -> Chain:
    """Return the chain that a sweep varies, without its description."""
    return replace(chain_from_json(settings["chain"]), about="")


@dataclass(frozen=True, slots=True)
class Variation:
    """The fields and values varied by a stored sweep. ``values``: field → values, or names of prompts; ``prompts``:
    name → text.
    """

    chain: Chain
    values: Mapping[str, Sequence[str]]
    prompts: Mapping[str, str]


def stored_variation(settings: Json) -> Variation:
    """Return the variation of a stored sweep, in the form that ``factors`` accepts."""
    values: dict[str, Sequence[str]] = {}
    texts: dict[str, str] = {}
    for text in settings["vary"]:
        known = factor(text, parse_settings)
        values[known.field] = known.labels
        if known.field.endswith("template"):
            texts |= {label: str(value) for label, value in zip(known.labels, known.values)}
    return Variation(base_chain(settings), values, texts)


def form_values(suite: str, settings: Json) -> dict[str, TypedValue]:
    """Return the settings of a stored benchmark or improvement as form values."""
    known = settings_form(suite)
    return {
        name: ("on" if value else "") if known[name].kind is bool else str(value)
        for name, value in settings.items()
        if name in known and value is not None
    }
