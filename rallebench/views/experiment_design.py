"""A new experiment as designed in one window, and its request."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rallebench.chains.saved import chain_from_json
from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import IMPROVE
from rallebench.core.experiments import TRADEOFF_QUESTIONS, ExperimentRequest
from rallebench.core.repeats import ONCE, RepeatOptions, repeat_options
from rallebench.core.settings import Setting, check_values
from rallebench.core.starter import DEFAULT_DATASET, STARTER_INDEXES
from rallebench.core.types import Chain, Json
from rallebench.experiments import SUITES
from rallebench.views import designs, experiment_requests, run_requests
from rallebench.views.designs import TypedValue
from rallebench.views.gold_coverage import corpus_of_index, coverage
from rallebench.views.library import fitting_dataset
from rallebench.workspace.paths import WorkspaceFolder


@dataclass
class Design:
    """The choices of one window. ``vary``: field → values; ``own``: field → typed values; ``prompts``: name → text
    of a prompt written here; ``settings``: benchmark → setting → typed value; ``auto``: the name used if none is
    typed; ``knobs``: search setting → values; ``searched``: the indexes when the dataset was last chosen
    automatically. ``writer``: the model of the chain in Build if it writes, the default of a benchmark. ``max_usd``:
    the spending limit as typed; ``repeats``: of each question, as typed.
    """

    kind: str = "sweep"
    chain: str = ""
    vary: dict[str, list[str]] = field(default_factory=dict)
    own: dict[str, list[str]] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    strategy: str = "grid"
    dataset: str = DEFAULT_DATASET
    limit: str = ""
    metric: str = ""
    seed: str = "0"
    name: str = ""
    track: bool = True
    max_usd: str = ""
    repeats: str = ""
    suite: str = field(default_factory=designs.first_suite)
    llm: str = ""
    writer: str = ""
    settings: dict[str, Mapping[str, TypedValue]] = field(default_factory=dict)
    indexes: list[str] = field(default_factory=list)
    k: str = "10"
    knobs: dict[str, list[str]] = field(default_factory=dict)
    run: str = ""
    long_context: bool = False
    chains: list[str] = field(default_factory=list)
    folder: str = ""
    auto: str = field(default_factory=lambda: time.strftime("%Y%m%d-%H%M%S"))
    searched: tuple[str, ...] = ()

    @property
    def repeat_options(self) -> RepeatOptions:
        """The typed repeats of each question. Raises UsageError."""
        number = _whole(self.repeats, "The number of repeats", 1)
        return repeat_options(number or 1) if self.kind != "tradeoff" else ONCE

    @property
    def form_name(self) -> str:
        """The key of the typed settings: the benchmark, or the kind of an improvement."""
        return IMPROVE if self.kind == IMPROVE else self.suite

    @property
    def shape(self) -> str:
        """Key that changes when the form needs other fields."""
        return repr(
            (
                self.kind,
                self.chain,
                list(self.vary),
                self.own,
                self.suite,
                self.settings.get(self.suite, {}).get("data", ""),
                self.indexes if self.kind == "tradeoff" else 0,
            )
        )


def build_request(
    workspace: WorkspaceFolder, design: Design, chain: Chain, *, allow_python: bool = False
) -> ExperimentRequest[WorkspaceFolder]:
    """Turn the choices into a request. Raises UsageError, NotFoundError."""
    limit, seed = (
        _whole(design.limit, "The number of questions", 1),
        _whole(design.seed, "The seed", 0) or 0,
    )
    name = design.name or f"{design.kind}-{design.auto}"
    if design.kind == "sweep":
        if not design.vary:
            raise UsageError("Nothing is varied; add a field.")
        texts = designs.factors(workspace, chain, design.vary, design.prompts)
        return experiment_requests.sweep_request(
            workspace,
            name,
            chain,
            texts,
            design.dataset,
            limit=limit,
            seed=seed,
            strategy=design.strategy,
            metric=design.metric,
        )[0]
    if design.kind == "suite":
        _, asks, known = designs.suite_about(design.suite)
        values = check_values(
            f"benchmark {design.suite!r}", known, _parse_values(known, typed_settings(design))
        )
        changed = {
            key: str(value) if not isinstance(value, bool) else value
            for key, value in values.items()
            if value != known[key].default
        }
        llms = [design.llm] if design.llm and asks and not values.get("models") else []
        return experiment_requests.suite_request(
            workspace,
            design.suite,
            llms,
            changed,
            limit=limit,
            name=design.name,
            seed=seed,
            allow_python=allow_python,
        )
    if design.kind == IMPROVE:
        known = designs.settings_form(IMPROVE)
        own = {"dataset": design.dataset, "metric": design.metric}
        values = _parse_values(known, typed_settings(design))
        return experiment_requests.improve_request(
            workspace, name, chain, {**values, **own}, llm=design.llm, limit=limit, seed=seed
        )
    if design.kind == "tradeoff":
        if not design.indexes:
            raise UsageError("Choose at least one index.")
        knobs = [f"{key}={','.join(values)}" for key, values in design.knobs.items() if values]
        k = _whole(design.k, "k", 1) or 10
        return experiment_requests.tradeoff_request(
            workspace,
            name,
            design.indexes,
            design.dataset,
            k=k,
            limit=limit or TRADEOFF_QUESTIONS,
            knobs=knobs,
        )
    if design.kind == "baselines":
        if not design.run:
            raise UsageError("Choose the run whose baselines are wanted.")
        return experiment_requests.baselines_request(workspace, design.run, design.long_context)
    options = run_requests.BenchmarkOptions(
        design.dataset or None, limit, seed=seed, llm=design.llm or None
    )
    return run_requests.batch_request(
        workspace, _files(workspace, design), options, title=name, run=name
    )


def take(workspace: WorkspaceFolder, design: Design, name: str) -> None:
    """Copy the settings of an earlier experiment into a design. Choices unrelated to its kind are kept. Raises
    NotFoundError.
    """
    stored = designs.stored_request(workspace, name)
    settings = stored.settings
    design.kind = "suite" if stored.kind in SUITES else stored.kind
    design.limit = "" if stored.limit is None else str(stored.limit)
    design.seed, design.llm, design.name = str(stored.seed), stored.llm, ""
    design.dataset = str(settings.get("dataset") or design.dataset)
    if "metric" in settings:
        design.metric = str(settings["metric"])
    if design.kind == "sweep":
        varied = designs.stored_variation(settings)
        design.prompts = dict(varied.prompts)
        design.vary = {field: list(values) for field, values in varied.values.items()}
        typed = [field for field in design.vary if not field.endswith("template")]
        design.own = {field: list(design.vary[field]) for field in typed}
        design.strategy = str(settings["strategy"])
        saved = varied.chain.name in workspace.chain_paths()
        design.chain = varied.chain.name if saved else ""
        design.searched = varied.chain.retrievers
    elif design.kind == "suite":
        design.suite = stored.kind
        design.settings[stored.kind] = designs.form_values(stored.kind, settings)
    elif design.kind == IMPROVE:
        chain = designs.base_chain(settings)
        design.chain = chain.name if chain.name in workspace.chain_paths() else ""
        design.settings[IMPROVE] = designs.form_values(IMPROVE, settings)
    elif design.kind == "tradeoff":
        design.indexes, design.k = list(settings["indexes"]), str(settings["k"])
        design.searched = tuple(design.indexes)
        design.knobs = {key: [str(v) for v in values] for key, values in settings["sweep"].items()}
    elif design.kind == "baselines":
        design.run = str(settings["run"])
        design.long_context = bool(settings.get("long_context"))


def fit_dataset(workspace: WorkspaceFolder, design: Design, indexes: Iterable[str]) -> None:
    """If the chosen dataset has no gold page in the corpus of newly chosen indexes, choose the dataset that fits
    best. This happens once per choice of indexes, so a later choice by the user stays.
    """
    searched = tuple(indexes)
    known = {**STARTER_INDEXES, **workspace.manifests()}
    if searched == design.searched or not searched or searched[0] not in known:
        return
    design.searched = searched
    corpus = corpus_of_index(searched[0], workspace.manifests())
    chosen = coverage(workspace, design.dataset, corpus)
    if chosen is not None and chosen.total and not chosen.held:
        design.dataset = fitting_dataset(workspace, corpus, design.dataset)


def _files(workspace: WorkspaceFolder, design: Design) -> list[Any]:
    paths = workspace.chain_paths()
    files = [(name, paths[name]) for name in design.chains if name in paths]
    if design.folder:
        inside = workspace.chain_folder(design.folder)
        if inside is None:
            raise UsageError(
                f"There is no folder {design.folder}; give the path of one with chains."
            )
        files += inside
    if not files:
        raise UsageError("Choose at least one chain, or name a folder.")
    return files


def typed_settings(design: Design) -> Mapping[str, TypedValue]:
    """Return the settings as typed; for a new design, only its ticked boxes."""
    known = designs.settings_form(design.form_name)
    boxes = {n: "on" for n, s in known.items() if s.kind is bool and s.default}
    return design.settings.get(design.form_name, boxes)


def _parse_values(
    known: Mapping[str, Setting], values: Mapping[str, TypedValue]
) -> dict[str, str | bool]:
    """Convert typed settings for ``check_values``; empty ones take their defaults."""
    written: dict[str, str | bool] = {}
    for name, setting in known.items():
        value = values.get(name)
        if setting.kind is bool:
            written[name] = value == "on"
        elif (
            value := ",".join(value)
            if isinstance(value, (list, tuple))
            else str(value or "").strip()
        ):
            written[name] = value
    return written


def _whole(text: str, label: str, least: int) -> int | None:
    """Parse a whole number; None for empty text. Raises UsageError."""
    if not text:
        return None
    try:
        number = int(text)
    except ValueError:
        raise UsageError(f"{label} is {text[:60]}; it must be a whole number.") from None
    if number < least:
        raise UsageError(f"{label} is {number}; it must be at least {least}, or empty.")
    return number


def command(
    request: ExperimentRequest[WorkspaceFolder], max_usd: str = "", repeats: str = ""
) -> str:
    """Return the equivalent command; '' for a folder of chains, and for a chain not saved under its name.

    ``max_usd``: the spending limit; ``repeats``: of each question.
    """
    settings, kind = request.settings, request.kind
    verb = "suite" if kind in SUITES else kind
    own = _WORDS[verb](request) if verb in _WORDS else []
    if not own:
        return ""
    words = [verb, *own, "--workspace", str(request.workspace.path)]
    words += ["--name", request.name] if verb != "baselines" else []
    part = "--sample" if settings.get("sampled") else "--limit"
    words += [part, str(request.limit)] if request.limit and verb != "baselines" else []
    if verb != "tradeoff":
        words += ["--max-usd", max_usd] if max_usd else []
        words += ["--repeats", repeats] if repeats not in ("", "1") else []
    return shlex.join(["python", "-m", "rallebench", *words])


Request = ExperimentRequest[WorkspaceFolder]


def _of_baselines(request: Request) -> list[str]:
    long = ["--long-context"] if request.settings.get("long_context") else []
    return [str(request.settings["run"]), *long]


def _of_chain(request: Request) -> tuple[str, list[str]]:
    """Return the chain and the words on its questions; ('', []) for a chain not saved under its name."""
    settings, known = request.settings, request.workspace.chain_paths()
    chain = chain_from_json(settings["chain"])
    if chain.name not in known or request.workspace.chain(chain.name).actions != chain.actions:
        return "", []
    words = ["--dataset", settings["dataset"], "--seed", str(request.seed)]
    return chain.name, words + (["--metric", settings["metric"]] if settings["metric"] else [])


def _of_sweep(request: Request) -> list[str]:
    chain, words = _of_chain(request)
    if not chain:
        return []
    words = ["--chain", chain, *words, "--strategy", request.settings["strategy"]]
    return words + [word for text in request.settings["vary"] for word in ("--vary", text)]


def _of_improvement(request: Request) -> list[str]:
    chain, words = _of_chain(request)
    if not chain:
        return []
    words = [chain, *words, *(["--model", request.llm] if request.llm else [])]
    return words + _changed_settings(designs.settings_form(IMPROVE), request.settings)


def _of_tradeoff(request: Request) -> list[str]:
    settings = request.settings
    names = (f"({name})" if "," in name else name for name in settings["indexes"])
    words = ["--index", ",".join(names), "--dataset", settings["dataset"], "-k", str(settings["k"])]
    for name, values in settings["sweep"].items():
        words += ["--knob", f"{name}={','.join(values)}"]
    return words


def _of_suite(request: Request) -> list[str]:
    llm = ["--llm", request.llm] if request.llm else []
    known = designs.settings_form(request.kind)
    return [request.kind, *llm, *_changed_settings(known, request.settings)]


def _changed_settings(known: Mapping[str, Setting], settings: Json) -> list[str]:
    """Return ``--set`` for every setting that is not the default."""
    words = []
    for name, value in settings.items():
        if name in known and value != known[name].default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"{name}={text}"]
    return words


_WORDS: Mapping[str, Callable[[Request], list[str]]] = {
    "baselines": _of_baselines,
    "sweep": _of_sweep,
    "suite": _of_suite,
    "tradeoff": _of_tradeoff,
    IMPROVE: _of_improvement,
}
"""Verb → the words of its own; [] if there is no equivalent command."""
