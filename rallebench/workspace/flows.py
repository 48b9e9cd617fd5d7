"""Making runnable flows, for a benchmark or a single question, from the names of a workflow, an environment and a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from rallebench import sandbox
from rallebench.chains.chain import as_flow
from rallebench.chains.saved import chain_to_json
from rallebench.core.agent_identity import AgentIdentity, EnvironmentIdentity
from rallebench.core.backends import Backends, Tool
from rallebench.core.errors import Hint, NotFoundError, UsageError
from rallebench.core.json_values import JsonValue
from rallebench.core.prompts import find_wording, prompt_text, prompts_folder, read_prompt
from rallebench.core.registry import unknown
from rallebench.core.run_results import EndingSummary
from rallebench.core.runs import FlowSpec
from rallebench.core.settings import Setting, check_values
from rallebench.core.types import Chain, Episode, Flow, Generate, Json, Question, digest
from rallebench.environments import environment_entry, environment_names
from rallebench.workflows import WORKFLOWS, EpisodeLimits, Shot
from rallebench.workflows.prompts import read_shots
from rallebench.workspace.environments import Acting, make_environment
from rallebench.workspace.paths import WorkspaceFolder

FOLDER = "workflows"
_LIMITS = tuple(field.name for field in fields(EpisodeLimits))
_APART = (*_LIMITS, "shots", "pool")


@dataclass(frozen=True)
class Agent:
    """A workflow with everything it needs. ``settings``: the workflow's, checked; ``acting``: its environment, or None;
    ``prompts``: file name → text; ``shots``: its demonstrations; ``seed``: passed to the model."""

    workflow: str
    llm: str
    settings: Json
    acting: Acting | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    shots: tuple[Shot, ...] = ()
    seed: int | None = None
    python: bool = False

    def flows(self, backends: Backends) -> Callable[[Question], Flow]:
        """Return the function that makes a question's flow; ``backends`` holds the model, whose context length matters."""
        llm = backends.llms.get(self.llm)
        limits = EpisodeLimits(**{name: self.settings[name] for name in _LIMITS})
        if not limits.context:
            limits = replace(limits, context=getattr(llm, "context_window", None) or 0)
        entry = WORKFLOWS.entry(self.workflow)
        own = {name: value for name, value in self.settings.items() if name not in _APART}

        def make_flow(question: Question) -> Flow:
            env = {"env": self.acting.make()} if self.acting else {}
            # Deferred to the first question, because a server may have to be asked.
            native = {"native": self.calls_natively(llm)} if entry.traits.get("calls") else {}
            common = {"shots": self.shots, "prompts": self.prompts, "seed": self.seed}
            return entry.value(
                question, llm=self.llm, limits=limits, **common, **env, **own, **native
            )

        return make_flow

    @property
    def offers_tools(self) -> str:
        """Condition for offering the functions to the model as tools, see ``FlowSpec``."""
        traits = WORKFLOWS.entry(self.workflow).traits
        protocol = self.settings.get("protocol", "auto") if traits.get("calls") else "text"
        return {"auto": "auto", "native": "always", "text": ""}[protocol]

    def calls_natively(self, llm: Any) -> bool:
        """Return whether functions are offered natively, as ``protocol`` demands or the backend supports."""
        protocol = self.settings.get("protocol", "auto")
        able = protocol == "auto" and bool(getattr(llm, "calls_tools", False))
        return protocol == "native" or able

    @property
    def retrievers(self) -> tuple[str, ...]:
        return self.acting.retrievers if self.acting else ()

    @property
    def tools(self) -> dict[str, Tool]:
        """Tools that the environment and the model's programs use."""
        tools = dict(self.acting.tools) if self.acting else {}
        return {**tools, sandbox.TOOL: sandbox.PythonTool()} if self.python else tools

    @property
    def flow(self) -> FlowSpec:
        return FlowSpec(
            self.workflow,
            {"agent": self.identity.to_json()},
            self.flows,
            (self.llm,),
            self.retrievers,
            self.tools,
            offers_tools=self.offers_tools,
            agent=self.identity,
            name="-".join(filter(None, [self.workflow, self.acting.name if self.acting else ""])),
        )

    @property
    def identity(self) -> AgentIdentity:
        """Everything but model and retrievers that affects an answer; enough to recreate the agent."""
        acting = self.acting
        return AgentIdentity(
            self.workflow,
            self.llm,
            self.settings,
            digest(dict(self.prompts)),
            tuple(shot.question for shot in self.shots),
            digest(repr(self.shots)),
            EnvironmentIdentity(acting.name, acting.settings, acting.fingerprint, acting.digests)
            if acting
            else None,
            sandbox.PythonTool().fingerprint if self.python else "",
        )


def chain_flow(chain: Chain) -> FlowSpec:
    """Return a chain as a flow with its identity."""
    saved = {key: value for key, value in chain_to_json(chain).items() if key != "about"}

    def make(backends: Backends) -> Callable[[Question], Flow]:
        return partial(as_flow, chain)

    names = (chain.llms, chain.retrievers)
    return FlowSpec("chain", {"chain": saved}, make, *names, chain=chain, name=chain.name)


def prepare_agent(
    workspace: WorkspaceFolder,
    workflow: str,
    env: str,
    llm: str,
    settings_given: Json,
    *,
    seed: int | None = None,
    allow_python: bool = False,
    prompts: str = "",
    unbuilt: bool = False,
) -> Agent:
    """Find and check everything that an agent needs, without loading a model. Raises UsageError.

    ``settings_given``: settings of the workflow and of the environment; if both have a setting of that name, it is the
    workflow's, and ``env.name`` is the environment's. ``prompts``: a copy of R-Eval's repository, or ''. ``unbuilt``: see
    ``make_environment``.
    """
    entry = WORKFLOWS.entry(workflow)
    traits = entry.traits
    if "prompts" not in traits:
        raise UsageError(
            f"The workflow {workflow!r} is run by a suite of its own.", hint=Hint("list", "suites")
        )
    if not llm:
        raise UsageError(
            f"The workflow {workflow!r} needs a language model.", hint=Hint("choose", "llm")
        )
    workspace.llm(llm)
    if traits.get("needs_env") and not env:
        raise UsageError(
            f"The workflow {workflow!r} needs an environment: {', '.join(environment_names(workspace.mcp_servers.servers))}.",
            hint=Hint("choose", "environment"),
        )
    if traits.get("needs_python") and not allow_python:
        raise UsageError(
            f"The workflow {workflow!r} runs programs that the model writes. "
            + " ".join(sandbox.protection().sentences()),
            hint=Hint("allow-python"),
        )
    mine, theirs = _split_settings(
        workflow, entry.form, env if traits.get("needs_env") else "", settings_given
    )
    settings = check_values(f"workflow {workflow!r}", entry.form, mine)
    acting = None
    if traits.get("needs_env"):
        acting = make_environment(workspace, env, theirs, unbuilt=unbuilt)
    own = original_prompts(workflow, env)
    texts = {name: _text(name, own[name], prompts) for name in traits["prompts"]}
    shots = _shots(settings, env if acting else "wikipedia", acting, at_most="shots" not in mine)
    settings = {**settings, "shots": len(shots)}
    return Agent(
        workflow, llm, settings, acting, texts, shots, seed, bool(traits.get("needs_python"))
    )


def _split_settings(
    workflow: str, known: Mapping[str, Setting], env: str, settings: Json
) -> tuple[Json, Json]:
    """Split the given settings into the workflow's and the environment's."""
    theirs_known: Mapping[str, Setting] = environment_entry(env).form if env else {}
    mine: dict[str, JsonValue] = {}
    theirs: dict[str, JsonValue] = {}
    for name, value in settings.items():
        plain = name.removeprefix("env.")
        if plain == name and name in known:
            mine[name] = value
        elif plain in theirs_known:
            theirs[plain] = value
        else:
            have = list(known) + [n if n not in known else f"env.{n}" for n in theirs_known]
            place = f" on {env}" if env else ""
            raise UsageError(f"{workflow}{place}: {unknown('setting', name, have)}")
    return mine, theirs


def original_prompts(workflow: str, env: str) -> dict[str, str]:
    """Return prompt → name of the replacement text that is written for the environment."""
    return {
        name: f"{env}/{workflow}/{name}" for name in WORKFLOWS.entry(workflow).traits["prompts"]
    }


def _text(name: str, own: str, folder: str) -> str:
    """Return the shipped prompt, or the text ``own`` in a user's ``folder`` if it has one."""
    if folder and not find_wording(folder, [(FOLDER, own)], demanded=False).shipped:
        return prompt_text(FOLDER, own, folder)
    text = read_prompt(prompts_folder() / FOLDER / name, "install rallebench again")
    return text.removesuffix("\n")


def pools() -> dict[str, Path]:
    """Return environment → shipped demonstrations."""
    folder = prompts_folder() / FOLDER / "pools"
    return {path.stem: path for path in sorted(folder.glob("*.json"))}


def _shots(settings: Json, env: str, acting: Acting | None, *, at_most: bool) -> tuple[Shot, ...]:
    """Return the first demonstrations of the pool, as many as the settings ask for. Raises UsageError if they do not fit the
    environment, or if there are too few, unless ``at_most``."""
    count, own = settings["shots"], settings["pool"]
    if not count:
        return ()
    path = Path(own).expanduser() if own else pools().get(env)
    if path is None and at_most:
        return ()
    if path is None:
        raise NotFoundError(
            f"There are no demonstrations for the environment {env!r}; give a file of them with pool=FILE, or shots=0."
        )
    if not path.is_file():
        raise NotFoundError(f"There is no file of demonstrations {path}.")
    pool = read_shots(path)
    if len(pool) < count and not at_most:
        raise UsageError(f"shots={count}, but {path} holds {len(pool)} demonstrations.")
    if acting is not None:
        _check_verbs(pool[:count], acting, path)
    return pool[:count]


def _check_verbs(shots: Sequence[Shot], acting: Acting, path: Path) -> None:
    known = {tool.name for tool in acting.make().tools} | {"Finish"}
    for number, shot in enumerate(shots, 1):
        for step in shot.steps:
            if step.name not in known:
                raise UsageError(
                    f"{path}, demonstration {number}: its action {step.name!r} is none of the environment {acting.name!r}; "
                    f"they are {', '.join(sorted(known))}. Choose others with pool=FILE, or shots=0."
                )


def ending_summary(episodes: Iterable[Episode]) -> EndingSummary:
    """Count how episodes ended, their turns and the sizes of their batches."""
    reasons: Counter[str] = Counter()
    turns: list[int] = []
    batches = 0.0
    for episode in episodes:
        reasons[episode.outcome.stop_reason if episode.outcome else "error"] += 1
        batch_sizes = [step.batch for step in episode.steps if isinstance(step.request, Generate)]
        turns.append(len(batch_sizes))
        batches += sum(1 / batch for batch in batch_sizes)
    return EndingSummary(
        dict(reasons.most_common()),
        round(sum(turns) / len(turns), 2) if turns else None,
        round(sum(turns) / batches, 2) if batches else None,
    )
