"""The three steps of a new experiment: what, over what, how. Every field has a control of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rallebench.core.experiments import ExperimentRequest
from rallebench.core.settings import Setting
from rallebench.core.types import Chain
from rallebench.gui import form
from rallebench.gui.form import labelled, select
from rallebench.gui.frame import Event, Page
from rallebench.gui.html import attributes, button, e, link
from rallebench.gui.places._bench import bench_of
from rallebench.services import catalog, designs, experiment_design
from rallebench.services.designs import Choice, Variable
from rallebench.services.experiment_design import Design

KINDS = {
    "sweep": ("Sweep", "Vary k, the index, the model or a prompt, and see which setting wins."),
    "suite": (
        "Published benchmark",
        "Run RGB, CRUD-RAG, BARAG, KILT or R-Eval as its paper did, beside its table.",
    ),
    "tradeoff": ("Index trade-off", "Compare indexes by recall, speed, memory and disk."),
    "baselines": (
        "Baselines",
        "Run a chain with no, random and gold passages: what retrieval gains.",
    ),
    "batch": ("Folder of chains", "Run every chain of a folder on its questions, and rank them."),
}
"""Kind of experiment → its card."""
SIZES = (("", "all"), *((str(n), f"first {n}") for n in (10, 30, 50, 100, 200, 500)))
FEW_SHOWN = 12
"""Choices that are shown as boxes; more are chosen from a list."""
DATA = frozenset(
    [
        "data",
        "set",
        "file",
        "datasets",
        "tasks",
        "split",
        "language",
        "index",
        "retriever",
        "corpus",
        "articles",
        "runs",
        "reference",
        "env",
        "table",
        "gold",
        "instances",
        "labels",
    ]
)
"""Settings of published benchmarks that say over what they run."""


def design_of(page: Page, event: Event) -> Design:
    """The design of the window of an event; a sweep of k in a new one."""
    design = event.session.get("design")
    if not isinstance(design, Design):
        design = event.session["design"] = Design()
        fields = designs.variables(page.workbench, chain_of(page, event, design))
        first = next((name for name in ("k", "llm") if name in fields), next(iter(fields), ""))
        if first:
            design.vary[first] = ["3", "5", "10"] if first == "k" else [fields[first].current]
    return design


def chain_of(page: Page, event: Event, design: Design) -> Chain:
    """The chain that is varied: that of Build, or a saved one. Raises NotFoundError."""
    if design.chain:
        return page.workbench.workspace.chain(design.chain)
    return bench_of(page, event).chain


# reading


def read(page: Page, event: Event, design: Design) -> None:
    """Put the fields of the form into the design."""
    design.name, design.seed = event.text("name", design.name), event.text("seed", design.seed)
    design.limit = event.text("limit") if "limit" in event.data else design.limit
    design.track = event.flag("track") if "name" in event.data else design.track
    for key in ("chain", "dataset", "metric", "strategy", "suite", "llm", "k", "run", "folder"):
        if key in event.data:
            setattr(design, key, event.text(key))
    if design.kind == "sweep":
        design.vary = {name: event.many(f"v:{name}") for name in design.vary}
        for name in design.vary:
            if value := event.text(f"own:{name}"):
                design.own.setdefault(name, []).append(value)
                design.vary[name].append(value)
    elif design.kind == "suite":
        own = {key[2:]: value for key, value in event.data.items() if key.startswith("s:")}
        if own and event.text("shown") == design.suite:
            _, _, known = designs.suite_about(design.suite)
            boxes = {n: "on" if n in own else "" for n, s in known.items() if s.kind is bool}
            lists = {n: own.get(n, []) for n in designs.several(page.workbench, known)}
            design.settings[design.suite] = {**own, **boxes, **lists}
    elif design.kind == "tradeoff":
        design.indexes = event.many("indexes")
        design.knobs = {
            name: [*event.many(f"knob:{name}"), *event.many(f"knob-own:{name}")]
            for name in designs.search_knobs(page.workbench, design.indexes)
        }
    elif design.kind == "batch":
        design.chains = event.many("chains")


def request_of(page: Page, event: Event, design: Design) -> ExperimentRequest:
    """What was chosen as a request. Raises UsageError, NotFoundError."""
    return experiment_design.request_of(page.workbench, design, chain_of(page, event, design))


# drawing


def cards(chosen: str) -> str:
    """The kinds of experiment."""
    return (
        '<div class="x-cards" role="group" aria-label="Kind of experiment">'
        + "".join(
            f'<a class="card{" on" if kind == chosen else ""}" href="#/experiments/list?kind={kind}"{" aria-current=true" if kind == chosen else ""}><b>{e(title)}</b><small>{e(about)}</small></a>'
            for kind, (title, about) in KINDS.items()
        )
        + "</div>"
    )


def steps(page: Page, event: Event, design: Design) -> str:
    """The three steps of a kind."""
    titles, parts = _STEPS[design.kind](page, event, design)
    drawn = "".join(
        f'<section class="x-step"><h3><b>{i}</b>{title}</h3><div class="x-fields">{part}</div></section>'
        for i, (title, part) in enumerate(zip(titles, parts), 1)
    )
    return drawn + naming(design)


def naming(design: Design) -> str:
    """Name, seed and MLflow, folded."""
    auto = (
        "made of its settings"
        if design.kind in ("suite", "baselines")
        else f"{design.kind}-{design.auto}"
    )
    fields = labelled(
        "Name",
        f'<input name="name" value="{e(design.name)}" placeholder="{e(auto)}" maxlength="60">',
    )
    if design.kind not in ("tradeoff", "baselines"):
        fields += labelled(
            "Seed", f'<input type="number" name="seed" value="{e(design.seed)}" min="0" step="1">'
        )
    if design.kind != "tradeoff":
        ticked = " checked" if design.track else ""
        fields += f'<label class="check"><input type="checkbox" name="track"{ticked}> Log to MLflow</label>'
    return f'<details class="fold" id="x-naming"><summary>Name and logging<em>{e(design.name or auto)}</em></summary><div class="fields">{fields}</div></details>'


def ticks(
    name: str,
    choices: Iterable[Choice],
    chosen: Sequence[str],
    about: Mapping[str, str] | None = None,
) -> str:
    """Boxes to tick, each with an id so that the focus stays."""
    boxes = "".join(
        f'<label class="check" title="{e((about or {}).get(value, ""))}"><input type="checkbox" name="{e(name)}" id="x-{e(name)}-{e(value)}" value="{e(value)}"{" checked" if value in chosen else ""}> {e(label)}</label>'
        for value, label in choices
    )
    return f'<div class="checks">{boxes}</div>'


def _sweep(page: Page, event: Event, design: Design) -> tuple[list[str], list[str]]:
    chain = chain_of(page, event, design)
    known = designs.variables(page.workbench, chain)
    rows = "".join(vary_row(known[name], design) for name in design.vary if name in known)
    rest = [v for name, v in known.items() if name not in design.vary]
    first = "".join(
        button(f"+ {v.label}", "experiments.vary", kind="x-add", field=v.name) for v in rest[:6]
    )
    more = select(
        "field",
        [(v.name, v.label) for v in rest[6:]],
        "",
        blank="+ Any other field",
        more=' class="x-more" aria-label="Any other field" data-do="experiments.vary" data-on="change"',
    )
    chains = [(n, n) for n in page.workbench.workspace.chain_paths()]
    bench = bench_of(page, event).chain.name
    source = select(
        "chain",
        chains,
        design.chain,
        blank=f"{bench}, as in Build",
        more=' aria-label="Chain" class="x-chain"',
    )
    ways = (("grid", "All combinations"), ("one-factor", "One field at a time"))
    how = "".join(
        f'<label class="check"><input type="radio" name="strategy" id="x-way-{value}" value="{value}"{" checked" if value == design.strategy else ""}> {label}</label>'
        for value, label in ways
    )
    return (
        [f"What to vary <small>of the chain</small> {source}", "On which questions", "How"],
        [
            f'{rows}<div class="row">{first}{more}</div>',
            questions(page, design, metric=True),
            f'<div class="checks">{how}</div>',
        ],
    )


def vary_row(variable: Variable, design: Design) -> str:
    """One field with its values: "Vary k over 1, 3, 5"."""
    typed = design.own.get(variable.name, [])
    choices = [*variable.choices, *((v, v) for v in typed if v not in dict(variable.choices))]
    if variable.kind == "prompt":
        choices += [(name, name) for name in design.prompts if name not in dict(choices)]
    chosen = design.vary[variable.name]
    boxed = (
        choices
        if len(choices) <= FEW_SHOWN
        else [c for i, c in enumerate(choices) if i < FEW_SHOWN or c[0] in chosen]
    )
    boxes = ticks(f"v:{variable.name}", boxed, chosen)
    rest = [c for c in choices if c not in boxed]
    more = ""
    if variable.kind == "prompt":
        more = button("Write a prompt", "experiments.prompt", kind="quiet", field=variable.name)
    elif variable.own:
        type_ = "number" if variable.kind == "number" else "text"
        more = f'<input class="x-own" type="{type_}" name="own:{e(variable.name)}" placeholder="other" aria-label="Another value of {e(variable.label)}">'
    if rest:
        more += select(
            f"own:{variable.name}",
            rest,
            "",
            blank=f"{len(rest)} more",
            more=f' class="x-own" aria-label="More values of {e(variable.label)}"',
        )
    current = (
        f"the chain has {variable.current}"
        if variable.current and variable.kind != "prompt"
        else ""
    )
    return (
        f'<fieldset class="x-vary"><legend>Vary <b>{e(variable.label)}</b> over<small>{e(current)}</small>'
        f'<button type="button" class="quiet x-drop" title="Remove {e(variable.label)}" aria-label="Remove {e(variable.label)}"{attributes(do="experiments.drop", field=variable.name)}>✕</button></legend>'
        f'<div class="row">{boxes}{more}</div></fieldset>'
    )


def questions(
    page: Page,
    design: Design,
    *,
    metric: bool = False,
    sizes: Sequence[Choice] = SIZES,
    more: str = "",
) -> str:
    """Dataset, number of questions, and what decides."""
    names = [(n, n) for n in page.workbench.workspace.dataset_paths()]
    fields = labelled("Dataset", select("dataset", names, design.dataset))
    fields += labelled("How many", select("limit", sizes, design.limit))
    if metric:
        decides = [
            (n, catalog.entry("metrics", n).traits.get("label", n))
            for n in catalog.names("metrics")
            if catalog.entry("metrics", n).traits.get("higher_is_better", True) is not None
        ]
        fields += labelled(
            "Decided by", select("metric", decides, design.metric, blank="EM, else the first")
        )
    return f'<div class="fields x-three">{fields}{more}</div>'


def _suite(page: Page, event: Event, design: Design) -> tuple[list[str], list[str]]:
    about, asks, known = designs.suite_about(design.suite)
    paper = design.suite.partition("-")[0]
    papers = [(name, designs.PAPERS.get(name, name)) for name in designs.papers()]
    tabs = "".join(
        button(label, "experiments.paper", kind="on" if name == paper else "", paper=name)
        for name, label in papers
    )
    parts = [
        (name, name.partition("-")[2].replace("-", " ").capitalize() or "All of it")
        for name in designs.papers()[paper]
    ]
    tables = link(
        "The paper's tables",
        f"#/experiments/published?table={'ralle' if paper == 'kilt' else paper}:1",
        "link",
    )
    what = labelled("Benchmark", select("suite", parts, design.suite))
    if asks:
        what += labelled(
            "Model", select("llm", list(page.workbench.workspace.llms()), design.llm, blank="none")
        )
    values = experiment_design.typed(design)
    several = designs.several(page.workbench, known)
    choices = {n: c for n, c in designs.suite_choices(page.workbench, known).items() if c}
    folded = designs.advanced(known)
    groups = [
        {n: s for n, s in known.items() if n in DATA and n not in folded},
        {n: s for n, s in known.items() if n not in DATA or n in folded},
    ]
    drawn = [_settings(page, g, values, choices, several, folded) for g in groups]
    hidden = f'<input type="hidden" name="shown" value="{e(design.suite)}">'
    size = f'<div class="fields">{labelled("How many", select("limit", SIZES, design.limit))}</div>'
    return (
        ["Which benchmark", "Over what", "How"],
        [
            f'<div class="seg" role="group" aria-label="Paper">{tabs}</div><div class="fields x-three">{what}</div><p class="note">{e(about)} {tables}</p>{hidden}',
            drawn[0] + size,
            drawn[1],
        ],
    )


def _settings(
    page: Page,
    known: Mapping[str, Setting],
    values: Mapping[str, Any],
    choices: Mapping[str, Sequence[str]],
    several: Mapping[str, Sequence[str]],
    folded: Sequence[str],
) -> str:
    """Settings of a benchmark: lists as boxes, a dataset or path with what the workspace has, the rest by its kind."""
    lists = ""
    for name in known:
        if name in several and name not in folded:
            setting = known[name]
            chosen = values.get(name, str(setting.default or "").split(","))
            chosen = chosen if isinstance(chosen, list) else [chosen]
            lists += f'<fieldset class="x-vary" title="{e(setting.about)}"><legend>{e(name.replace("_", " ").capitalize())}</legend>{ticks(f"s:{name}", [(v, v) for v in several[name]], chosen)}</fieldset>'
    plain = {n: s for n, s in known.items() if n not in several or n in folded}
    fields = {n: s for n, s in plain.items() if n not in ("data", "corpus") or n in choices}
    paths = "".join(
        labelled(
            n.capitalize(),
            f'<input name="s:{n}" list="x-datasets" value="{e(values.get(n, ""))}" placeholder="a dataset, or a path">',
            s.about,
        )
        for n, s in plain.items()
        if n not in fields
    )
    if paths:
        names = "".join(
            f'<option value="{e(n)}">' for n in page.workbench.workspace.dataset_paths()
        )
        paths = f'<datalist id="x-datasets">{names}</datalist>{paths}'
    current = {
        n: s.default if n not in values and s.kind is not bool else values.get(n, "")
        for n, s in fields.items()
    }
    return (
        lists
        + paths
        + form.draw(
            fields, current, choices, prefix="s:", folded=[n for n in folded if n in fields]
        )
    )


def _tradeoff(page: Page, event: Event, design: Design) -> tuple[list[str], list[str]]:
    about = page.workbench.workspace.retrievers()
    boxes = ticks("indexes", [(n, n) for n in about], design.indexes, about)
    k = f'<input type="number" name="k" min="1" max="1000" value="{e(design.k)}">'
    sizes = (("", "first 200"), *SIZES[1:])
    over = questions(page, design, sizes=sizes, more=labelled("k, passages a query", k))
    knobs = ""
    for name, (setting, values) in designs.search_knobs(page.workbench, design.indexes).items():
        chosen = design.knobs.get(name) or values
        offered = [(v, v) for v in dict.fromkeys([*values, *chosen])]
        limits = "".join(
            f' {w}="{x:g}"'
            for w, x in (("min", setting.low), ("max", setting.high))
            if x is not None
        )
        own = (
            f'<input class="x-own" type="number" step="any" name="knob-own:{e(name)}" placeholder="other" aria-label="Another value of {e(name)}"{limits}>'
            if setting.kind in (int, float)
            else ""
        )
        knobs += f'<fieldset class="x-vary"><legend>Vary <b>{e(name)}</b> over<small>{e(setting.about)}</small></legend><div class="row">{ticks(f"knob:{name}", offered, chosen)}{own}</div></fieldset>'
    none = (
        '<p class="note">The search of these indexes has no setting to vary.</p>'
        if design.indexes
        else '<p class="note">Choose indexes first.</p>'
    )
    return ["Which indexes", "On which questions", "Which settings of their search"], [
        boxes,
        over,
        knobs or none,
    ]


def _baselines(page: Page, event: Event, design: Design) -> tuple[list[str], list[str]]:
    names = [(run.name, run.name) for run in page.workbench.runs.list()[:100]]
    chooser = labelled("Run", select("run", names, design.run, blank="Choose a run"))
    return (
        ["Of which run", "Over what", "Which"],
        [
            f'<div class="fields x-three">{chooser}</div>',
            '<p class="note">The questions, metrics and seed of that run.</p>',
            '<p class="note">The same chain with no passages, with random passages, and, where the questions name gold pages, with those.</p>',
        ],
    )


def _batch(page: Page, event: Event, design: Design) -> tuple[list[str], list[str]]:
    names = [(n, n) for n in page.workbench.workspace.chain_paths()]
    what = ticks("chains", names, design.chains)
    what += labelled(
        "Or a folder",
        f'<input name="folder" value="{e(design.folder)}" placeholder="path of a folder with chains, JSON or YAML">',
    )
    models = select(
        "llm", list(page.workbench.workspace.llms()), design.llm, blank="each chain's own"
    )
    return (
        ["Which chains", "On which questions", "How"],
        [
            what,
            questions(page, design),
            f'<div class="fields x-three">{labelled("Model", models)}</div>',
        ],
    )


_STEPS = {
    "sweep": _sweep,
    "suite": _suite,
    "tradeoff": _tradeoff,
    "baselines": _baselines,
    "batch": _batch,
}
