"""The three steps of a new experiment: varied settings, questions, models. Every field has its own control."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial

from markupsafe import Markup

from rallebench.core.experiments import TRADEOFF_QUESTIONS
from rallebench.core.settings import Setting
from rallebench.core.types import Chain
from rallebench.gui import form, html
from rallebench.gui.addresses import ExperimentsAddress, PaperTableAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.places._bench import window_bench
from rallebench.services.experiments import WorkspaceRequest
from rallebench.views import catalog, designs, experiment_design
from rallebench.views import experiment_groups as groups
from rallebench.views.designs import TypedValue, Variable
from rallebench.views.experiment_design import Design

KINDS = {
    "sweep": ("Sweep", "Vary k, the index, the model or a prompt, and see which setting wins."),
    "suite": (
        "Published benchmark",
        "Run the benchmark of a paper, beside the table that it prints.",
    ),
    "improve": (
        "Improve a chain",
        "Find a better prompt, k or index, and prove it on articles that no variant has seen.",
    ),
    "tradeoff": ("Index trade-off", "Compare indexes by recall, speed, memory and disk."),
    "baselines": (
        "Baselines",
        "Run a chain with no, random and gold passages, or whole pages, to see the gain from retrieval.",
    ),
    "batch": ("Folder of chains", "Run every chain of a folder on its questions, and rank them."),
}
"""Kind of experiment → its card."""
FEW_SHOWN = 12
"""Maximum choices shown as boxes; more are shown as a list."""
DATA = frozenset(
    {"retriever", "index", "dataset", "corpus", "table", "environment", "run", "file", "folder"}
)
"""Kinds of settings that select the data of a published benchmark."""
PARTS = ("set", "datasets", "tasks", "split", "language", "instances")
"""Settings that select a subset of the questions."""


def window_design(page: Page, event: Event) -> Design:
    """Return the design of the event's window; a new one sweeps k."""
    design = event.session.get(Design)
    if design is None:
        design = event.session.state(Design)
        bench, copies = window_bench(page, event), page.workbench.asking.copies
        design.dataset = bench.dataset
        design.writer = next((name for name in reversed(bench.chain.llms) if not copies(name)), "")
        fields = designs.variables(page.workspace, varied_chain(page, event, design))
        first = next((name for name in ("k", "llm") if name in fields), next(iter(fields), ""))
        if first:
            design.vary[first] = ["3", "5", "10"] if first == "k" else [fields[first].current]
    return design


def varied_chain(page: Page, event: Event, design: Design) -> Chain:
    """Return the chain to vary: the chain in Build, or a saved one. Raises NotFoundError."""
    if design.chain:
        return page.workspace.chain(design.chain)
    return window_bench(page, event).chain


# reading


def typed_value(event: Event, key: str) -> TypedValue:
    """The text of a field, or its values if there are several."""
    values = event.many(key)
    return values if len(values) > 1 else event.text(key)


def read(page: Page, event: Event) -> Design:
    """Return the window's design, updated from the form."""
    design = window_design(page, event)
    design.name, design.seed = event.text("name", design.name), event.text("seed", design.seed)
    design.limit = event.text("limit") if event.has("limit") else design.limit
    design.track = event.flag("track") if event.has("name") else design.track
    for key in (
        "chain",
        "dataset",
        "metric",
        "strategy",
        "suite",
        "llm",
        "k",
        "run",
        "folder",
        "max_usd",
        "repeats",
    ):
        if event.has(key):
            setattr(design, key, event.text(key))
    if design.kind == "sweep":
        design.vary = {name: event.many(f"v:{name}") for name in design.vary}
        for name in design.vary:
            if value := event.text(f"own:{name}"):
                design.own.setdefault(name, []).append(value)
                design.vary[name].append(value)
    elif design.kind in ("suite", "improve"):
        own = {key[2:]: typed_value(event, key) for key in event.data if key.startswith("s:")}
        if own and event.text("shown") == design.form_name:
            known = designs.settings_form(design.form_name)
            boxes = {n: "on" if n in own else "" for n, s in known.items() if s.kind is bool}
            lists = {n: own.get(n, "") for n, s in known.items() if s.many}
            design.settings[design.form_name] = {**own, **boxes, **lists}
    elif design.kind == "tradeoff":
        design.indexes = event.many("indexes")
        design.knobs = {
            name: [*event.many(f"knob:{name}"), *event.many(f"knob-own:{name}")]
            for name in designs.search_knobs(page.workspace, design.indexes)
        }
    elif design.kind == "baselines" and event.has("run"):
        design.long_context = event.flag("long_context")
    elif design.kind == "batch":
        design.chains = event.many("chains")
    return design


def design_request(page: Page, event: Event, design: Design) -> WorkspaceRequest:
    """Return the chosen settings as a request. Raises UsageError, NotFoundError."""
    return experiment_design.build_request(
        page.workspace,
        design,
        varied_chain(page, event, design),
        allow_python=page.workbench.allow_python,
    )


# drawing


def cards(chosen: str) -> Markup:
    drawn = Markup()
    for kind, about in KINDS.items():
        address = ExperimentsAddress(kind=kind).href
        drawn += html.choice(address, *about, kind == chosen, "card")
    return Markup(
        '<div class="x-cards" role="group" aria-label="Kind of experiment">{}</div>'
    ).format(drawn)


def steps(page: Page, event: Event, design: Design) -> Markup:
    drawn, searched = Markup(), tuple(design.indexes) if design.kind == "tradeoff" else ()
    if design.kind in ("sweep", "improve"):
        searched = varied_chain(page, event, design).retrievers
    experiment_design.fit_dataset(page.workspace, design, searched)
    parts = [step for step in _STEPS[design.kind](page, event, design) if step[1]]
    for number, (title, part) in enumerate(parts, 1):
        drawn += Markup(
            '<section class="x-step"><h2 class="part"><b>{}</b>{}</h2><div class="x-fields">{}</div></section>'
        ).format(number, title, part)
    return drawn + naming(design)


def naming(design: Design) -> Markup:
    """Draw name, seed, spending limit and MLflow in a collapsed section."""
    auto = f"{design.kind}-{design.auto}"
    if design.kind in ("suite", "baselines"):
        auto = "made of its settings"
    fields = form.text("name", "Name", design.name, auto, more=Markup(' maxlength="60"'))
    if design.kind not in ("tradeoff", "baselines"):
        fields += form.number("seed", "Seed", design.seed, 0)
    if design.kind != "tradeoff":
        fields += form.repeats_field(design.repeats)
        fields += form.spending_limit_field(design.max_usd)
        fields += form.check("track", "Log to MLflow", design.track)
    title, gist = "Name, spending limit and logging", design.name or auto
    return html.fold(title, form.fields(fields), gist=gist, id="x-naming")


ticks = partial(form.checks, id="x")
"""Check boxes, each with an id so that it keeps the focus."""


def three(*fields: str) -> Markup:
    """Draw fields side by side, three per row."""
    return Markup('<div class="fields x-three">{}</div>').format(Markup().join(fields))


def vary(title: str, about: str, values: str, more: str = "", drop: str = "") -> Markup:
    """Draw the varied fields, each with check boxes for its values and a field to add more."""
    return Markup(
        '<fieldset class="x-vary"><legend>Vary <b>{}</b><small>{}</small>{}</legend><div class="row">{}{}</div></fieldset>'
    ).format(title, about, drop, values, more)


def own_value(name: str, title: str, kind: str, more: Markup = html.NOTHING) -> Markup:
    return Markup(
        '<input class="x-own" type="{}" name="{}" placeholder="other" aria-label="Another value of {}" data-whole{}>'
    ).format(kind, name, title, more)


Steps = tuple[tuple[str, str], ...]
"""(title, fields) of each step, both as HTML."""


def _sweep(page: Page, event: Event, design: Design) -> Steps:
    known = designs.variables(page.workspace, varied_chain(page, event, design))
    rows = Markup().join(vary_row(known[name], design) for name in design.vary if name in known)
    rest, do = [v for name, v in known.items() if name not in design.vary], "experiments.add_field"
    adds = Markup().join(
        html.button(f"+ {v.label}", do, kind="x-add", field=v.name) for v in rest[:6]
    )
    others, blank = [(v.name, v.label) for v in rest[6:]], "+ Any other field"
    more = Markup(' class="x-more" aria-label="Any other field"{}').format(form.on_change(do))
    adds += form.select("field", others, "", blank=blank, more=more)
    return (
        (
            Markup("What to vary <small>of the chain</small> {}").format(
                _chains(page, event, design)
            ),
            Markup('{}<div class="row">{}</div>').format(rows, adds),
        ),
        ("On which questions", questions(page, design, metric=True)),
        ("How", ticks("strategy", STRATEGIES, [design.strategy], kind="radio")),
    )


def _chains(page: Page, event: Event, design: Design) -> Markup:
    """Draw the choice of the chain to vary: the chain in Build, or a saved one."""
    more = Markup(' aria-label="Chain" class="x-chain"')
    as_is = f"{window_bench(page, event).chain.name}, as in Build"
    chains = list(page.workspace.chain_paths())
    return form.select("chain", chains, design.chain, blank=as_is, more=more)


def _improve(page: Page, event: Event, design: Design) -> Steps:
    known = designs.settings_form("improve")
    llms = list(page.workspace.llms())
    model = form.chooser("Model", "llm", llms, design.llm, blank="the chain's own")
    about = html.note(
        "The chain stays as it is: the best variant is saved as another chain, with the sentence that proves it or does not."
    )
    return (
        (
            Markup("Which chain {}").format(_chains(page, event, design)),
            Markup("{}{}{}").format(three(model), about, form.hidden_fields(shown="improve")),
        ),
        ("On which questions", questions(page, design, metric=True)),
        ("How", _settings(page, design, known, known.keys())),
    )


STRATEGIES = (("grid", "All combinations"), ("one-factor", "One field at a time"))


def vary_row(variable: Variable, design: Design) -> Markup:
    """Draw one field with its values: "Vary k over 1, 3, 5"."""
    name, label, chosen = variable.name, variable.label, design.vary[variable.name]
    is_prompt, about, more = variable.kind == "prompt", "", Markup()
    choices = list(variable.choices)
    typed = [*design.own.get(name, []), *(design.prompts if is_prompt else ())]
    choices += [(value, value) for value in typed if value not in dict(choices)]
    boxed = choices
    if len(choices) > FEW_SHOWN:
        boxed = [c for i, c in enumerate(choices) if i < FEW_SHOWN or c[0] in chosen]
    if is_prompt:
        more = html.button("Write a prompt", "experiments.ask_prompt", kind="quiet", field=name)
    elif variable.own:
        more = own_value(f"own:{name}", label, "number" if variable.kind == "number" else "text")
    if rest := [c for c in choices if c not in boxed]:
        names = Markup(' class="x-own" aria-label="More values of {}"').format(label)
        more += form.select(f"own:{name}", rest, "", blank=f"{len(rest)} more", more=names)
    if variable.current and not is_prompt:
        about = f"(the chain has {variable.current})"
    remove = f"Remove {label}"
    data = attributes(do="experiments.drop_field", field=name)
    drop = Markup(
        '<button type="button" class="quiet x-drop" title="{}" aria-label="{}"{}>✕</button>'
    ).format(remove, remove, data)
    return vary(label, about, ticks(f"v:{name}", boxed, chosen), more, drop)


def questions(
    page: Page, design: Design, *, metric: bool = False, most: str = "all", more: str = ""
) -> Markup:
    """Draw the dataset, the number of questions, and the deciding metric."""
    datasets = list(page.workspace.dataset_paths())
    fields = form.chooser("Dataset", "dataset", datasets, design.dataset)
    fields += form.questions(design.limit, most=most)
    if metric:
        blank, names = "the usual metric (EM)", filter(groups.decides, catalog.names("metrics"))
        decides = [(name, groups.metric_label(name)) for name in names]
        fields += form.chooser("Decided by", "metric", decides, design.metric, blank=blank)
    return three(fields, more)


def _suite(page: Page, event: Event, design: Design) -> Steps:
    about, asks, known = designs.suite_about(design.suite)
    paper, suites, tabs = designs.benchmark_name(design.suite), designs.suites(), Markup()
    for name in suites:
        label, on = designs.benchmark_title(name), "on" if name == paper else ""
        tabs += html.button(label, "experiments.choose_paper", kind=on, paper=name)
    parts = [(name, designs.suite_part(name).capitalize() or "All of it") for name in suites[paper]]
    what = form.chooser("Benchmark", "suite", parts, design.suite)
    if asks and "models" not in known:
        llms = list(page.workspace.llms())
        what += form.chooser("Model", "llm", llms, design.llm, blank="none")
    printed = designs.first_table(paper)
    tables = html.link("The paper's tables", PaperTableAddress(printed).href) if printed else ""
    which = Markup(
        '<div class="seg" role="group" aria-label="Paper">{}</div>{}<p class="note">{} {}</p>{}'
    ).format(tabs, three(what), about, tables, form.hidden_fields(shown=design.suite))
    over = {n for n, s in known.items() if n in PARTS or not DATA.isdisjoint(s.kinds_named)}
    over.difference_update(designs.advanced_settings(known))
    size = form.fields(form.questions(design.limit))
    return (
        ("Which benchmark", which),
        ("Over what", _settings(page, design, known, over) + size),
        ("How", _settings(page, design, known, known.keys() - over)),
    )


def _settings(page: Page, design: Design, known: Mapping[str, Setting], names: Set[str]) -> Markup:
    """Draw some settings of a benchmark: lists first, then datasets and paths with suggestions from the workspace,
    then the rest by type.
    """
    own = design.llm or design.writer
    values = {"models": [own], **experiment_design.typed_settings(design)}
    choices, folded = (
        catalog.choices(page.workspace, known),
        designs.advanced_settings(known),
    )
    if sets := designs.suite_sets(page.workspace, design.suite, str(values.get("data") or "")):
        choices["set"] = sets

    def rank(name: str) -> int:
        setting = known[name]
        return 1 if setting.is_path else 0 if setting.many and name in choices else 2

    fields = {name: known[name] for name in sorted((n for n in known if n in names), key=rank)}
    current = {n: values.get(n, "" if s.kind is bool else s.default) for n, s in fields.items()}
    rare = [name for name in folded if name in fields]
    return form.draw(fields, current, choices, prefix="s:", folded=rare)


def _tradeoff(page: Page, event: Event, design: Design) -> Steps:
    about = page.workspace.retrievers()
    k = form.number("k", "k, passages a query", design.k, 1, more=Markup(' max="1000"'))
    over = questions(page, design, most=str(TRADEOFF_QUESTIONS), more=k)
    knobs = Markup()
    for name, (setting, values) in designs.search_knobs(page.workspace, design.indexes).items():
        chosen = design.knobs.get(name) or values
        offered, own = dict.fromkeys([*values, *chosen]), Markup()
        if setting.kind in (int, float):
            limits = Markup(' step="any"{}').format(form.limits(setting))
            own = own_value(f"knob-own:{name}", name, "number", limits)
        knobs += vary(name, setting.about, ticks(f"knob:{name}", offered, chosen), own)
    none = "The search of these indexes has no setting to vary."
    none = none if design.indexes else "Choose indexes first."
    return (
        ("Which indexes", ticks("indexes", about, design.indexes, abouts=about)),
        ("On which questions", over),
        ("Which settings of their search", knobs or html.note(none)),
    )


def _baselines(page: Page, event: Event, design: Design) -> Steps:
    names = [run.name for run in page.workbench.runs.list()[:100]]
    which = "The same chain with no passages, with random passages, and, where the questions name gold pages, with those."
    long = form.check("long_context", "Whole pages, too (long prompts)", design.long_context)
    run = form.chooser("Run", "run", names, design.run, blank="Choose a run")
    return (
        ("Of which run", three(run)),
        ("Over what", html.note("The questions, metrics and seed of that run.")),
        ("Which", html.note(which) + long),
    )


def _batch(page: Page, event: Event, design: Design) -> Steps:
    names = page.workspace.chain_paths()
    hint = "path of a folder with chains, JSON or YAML"
    folder = form.text("folder", "Or a folder", design.folder, hint)
    llms = list(page.workspace.llms())
    model = form.chooser("Model", "llm", llms, design.llm, blank="each chain's own")
    return (
        ("Which chains", ticks("chains", names, design.chains) + folder),
        ("On which questions", questions(page, design)),
        ("How", three(model)),
    )


_STEPS = {
    "sweep": _sweep,
    "suite": _suite,
    "improve": _improve,
    "tradeoff": _tradeoff,
    "baselines": _baselines,
    "batch": _batch,
}
