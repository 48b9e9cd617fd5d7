"""Ask single questions: of actions and chains under development, of models to test them, and of agents."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rallebench.chains import chain as chains
from rallebench.chains.conversation import Rewriter, as_conversation, rewriting
from rallebench.chains.saved import chain_from_json, chain_to_json, name_version, save_version
from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError, Hint, RalleError, UsageError
from rallebench.core.events import Operation, Progress, Warned, complete
from rallebench.core.live import Event, StepStarted, heading
from rallebench.core.prompts import prompt_text
from rallebench.core.scoring import Pair, Scorer
from rallebench.core.types import (
    Chain,
    Episode,
    Example,
    Generate,
    Gold,
    Hit,
    Json,
    Message,
    Question,
    Reply,
    Retrieve,
    Step,
)
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.single import answer_one, resume_from, run_one
from rallebench.environments import environment_entry
from rallebench.llms import copies
from rallebench.services.episodes import EpisodeJob, EpisodeRequest, EpisodeState, Trace
from rallebench.services.jobs import JobManager
from rallebench.services.leases import Lease
from rallebench.services.models import ModelManager
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.checking import check_flow
from rallebench.workspace.flows import Agent, chain_flow, prepare_agent
from rallebench.workspace.paths import WorkspaceFolder

MOST_EPISODES = 30
"""Maximum number of episodes kept in memory."""

PROMPT, REWRITING = "standalone.txt", -1
"""The prompt that rewrites a follow-up question, and the index of that step."""


class Asking:
    """Ask one question of a chain or an agent. Its models and indexes are loaded first, except heavy models."""

    def __init__(
        self,
        workspace: WorkspaceFolder,
        models: ModelManager,
        jobs: JobManager,
        trace: Trace,
        allow_python: bool,
    ) -> None:
        """``trace``: called with each finished episode, to log it."""
        self._workspace, self._models, self._allow_python = workspace, models, allow_python
        self._jobs, self._trace = jobs, trace
        self._reply_cache: ReplyCache | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the reply cache; the next use opens it again."""
        with self._lock:
            if self._reply_cache is not None:
                self._reply_cache.close()
                self._reply_cache = None

    @property
    def reply_cache(self) -> ReplyCache:
        with self._lock:
            if self._reply_cache is None:
                space = self._workspace
                self._reply_cache = (
                    ReplyCache(None) if space.read_only else ReplyCache.open(space.reply_cache)
                )
            return self._reply_cache

    @property
    def reply_cache_warning(self) -> str:
        """Explain why replies are not kept after this process ends; '' if they are, or before the first question."""
        return self._reply_cache.warning if self._reply_cache is not None else ""

    def example(self, dataset: str, chosen: str) -> Example:
        """Return the example with the id ``chosen``; any other text becomes the user's own question, without gold."""
        for example in self._workspace.questions(dataset):
            if example.question.qid == chosen:
                return example
        if not (chosen or "").strip():
            raise UsageError("No question is chosen; choose one or type your own.")
        return Example(Question("custom", chosen), Gold())

    def plan_action(
        self, chain: Chain, index: int, question: Question, steps: Sequence[Step]
    ) -> str:
        """Render the template of action ``index`` without running anything."""
        return chains.interpret(chain.actions[index], question, steps[:index])

    def execute_action(
        self, chain: Chain, index: int, question: Question, steps: Sequence[Step]
    ) -> Step:
        """Run one action on the replies of the earlier actions, loading only its own model or index. Raises
        RalleError.
        """
        request = chains.plan(chain.actions[index], question, steps[:index])
        alone = replace(chain, actions=(chain.actions[index],))
        with self._models.lease(
            f"action {index + 1} of the chain {chain.name!r}, which is being executed"
        ) as lease:
            return answer_one(
                request, _ready(lease, alone.llms, alone.retrievers), self.reply_cache
            )

    def execute_chain(
        self, chain: Chain, question: Question, *, stream: bool = False
    ) -> Iterator[Event]:
        """Run every action of a chain, yielding events; the Episode comes last."""
        with self._models.lease(f"the chain {chain.name!r}, which is being executed") as lease:
            backends = _ready(lease, chain.llms, chain.retrievers)
            flow = chains.as_flow(chain, question)
            yield from run_one(
                flow, backends, qid=question.qid, reply_cache=self.reply_cache, stream=stream
            )

    def judge(self, judge: Scorer, example: Example, episode: Episode) -> Episode | None:
        """Ask a judge about an answer, loading its models, and return its judgement; None if there is nothing to
        judge by. Raises RalleError.
        """
        flow = judge.flow(Pair(example, episode))
        if flow is None:
            return None
        with self._models.lease(f"the judge {judge.name!r} of a few questions") as lease:
            backends = complete(lease.load_for(judge.llms, ()))
            *_, judgement = run_one(
                flow, backends, qid=example.question.qid, reply_cache=self.reply_cache
            )
        assert isinstance(judgement, Episode)
        return judgement

    def answer(self, question: str, answerer: Chain | Agent) -> Operation[Episode]:
        """Answer one question with a chain or an agent, loading everything it uses, including heavy models.

        Raises UsageError if the chain cannot run, BackendError if the question fails.
        """
        if not question.strip():
            raise UsageError("The question is empty; write one.")
        query = Question("ask", question)
        flow = chain_flow(answerer) if isinstance(answerer, Chain) else answerer.flow
        check_flow(self._workspace, flow)
        with self._models.lease("rallebench ask") as lease:
            yield from lease.load_for(flow.llms, flow.retrievers)
            if isinstance(answerer, Chain):
                running = self.execute_chain(answerer, query)
            else:
                running = self.run_agent(answerer, query)
            episode = yield from _report_steps(
                running, len(flow.chain.actions) if flow.chain else None
            )
        if self.reply_cache_warning:
            yield Warned("", self.reply_cache_warning)
        if episode.error:
            raise BackendError(episode.error)
        return episode

    def chat(
        self, chain: Chain, history: Sequence[Message], text: str, *, fresh: bool = False
    ) -> Iterator[Event]:
        """Run one chat turn: rewrite a follow-up question to stand alone, then stream the chain's answer.

        The rewriting step has the index REWRITING; the chain's actions count from 0, as elsewhere. The Episode
        contains both. ``fresh``: ignore cached replies.
        """
        question = Question("chat", text, history=tuple(history))
        rewriter = self.rewriter(chain)
        shift = 1 if rewriting(chain, question, rewriter) is not None else 0
        with self._models.lease(
            f"a chat turn of the chain {chain.name!r}, which is being answered"
        ) as lease:
            backends = _ready(lease, chain.llms, chain.retrievers)
            flow = as_conversation(chain, question, rewriter)
            cache = None if fresh else self.reply_cache
            running = run_one(flow, backends, qid="chat", reply_cache=cache, stream=True)
            with closing(running) as events:  # type: ignore[type-var]
                for event in events:
                    if isinstance(event, Episode):
                        yield event
                    else:
                        yield replace(event, index=event.index - shift)

    def rewriter(self, chain: Chain) -> Rewriter:
        """Return the model that rewrites follow-up questions: the chain's last model that can write; None if it has
        none.
        """
        writers = [name for name in chain.llms if not self.copies(name)]
        own = self._workspace.path / "prompts" / "chat"
        prompt = prompt_text(
            "chat", PROMPT, str(own) if own.is_dir() else "", ("history", "question")
        )
        return Rewriter(writers[-1] if writers else "", prompt)

    def copies(self, llm: str) -> bool:
        """Return whether a language model only copies its answers from the prompt; False if the name is unknown."""
        try:
            return copies(self._workspace.llm(llm).backend)
        except RalleError:
            return False

    def ask_model(self, name: str, prompt: str) -> Step:
        """Test a loaded model with one prompt, ignoring cached replies. Raises RalleError."""
        with self._models.lease("a prompt that tries it").hold([name]):
            return answer_one(Generate(name, (Message("user", prompt),)), self._models.backends)

    def agent(
        self,
        workflow: str,
        env: str,
        llm: str,
        settings: Json | None = None,
        *,
        retriever: str = "",
        seed: int | None = None,
    ) -> Agent:
        """Build an agent from a workflow, an environment and a model, all checked; loads no model. ``retriever``:
        the environment's retriever. Raises UsageError.
        """
        if env and not WORKFLOWS.entry(workflow).traits.get("needs_env", True):
            raise UsageError(
                f"The workflow {workflow!r} acts in no environment.",
                hint=Hint("leave-out", "environment"),
            )
        if retriever and "retriever" not in (environment_entry(env).form if env else {}):
            raise UsageError(
                f"The workflow {workflow!r} on {env or 'nothing'!r} asks no retriever.",
                hint=Hint("leave-out", "retriever"),
            )
        chosen = {"env.retriever": retriever} if retriever else {}
        return prepare_agent(
            self._workspace,
            workflow,
            env,
            llm,
            {**(settings or {}), **chosen},
            seed=seed,
            allow_python=self._allow_python,
        )

    def run_agent(
        self,
        agent: Agent,
        question: Question,
        *,
        stream: bool = False,
        before: Sequence[Reply] = (),
    ) -> Iterator[Event]:
        """Run one episode, yielding its events and the Episode last. Everything it uses is loaded, except heavy
        models.

        ``before``: replies from the first steps of an earlier episode to resume from; the last one may be edited. See
        ``resume_from``. Only later steps are yielded and included in the Episode.
        """
        with self._models.lease(f"an episode of the agent {agent.workflow!r}") as lease:
            spec = agent.flow
            backends, make_flow = spec.open(_ready(lease, spec.llms, spec.retrievers))
            flow = resume_from(make_flow(question), before)
            try:
                yield from run_one(
                    flow,
                    backends,
                    qid=question.qid,
                    workflow=agent.workflow,
                    reply_cache=self.reply_cache,
                    stream=stream,
                )
            finally:
                spec.disconnect()

    def deeper_hits(self, episode: Episode, depth: int) -> tuple[Hit, ...]:
        """Return the first ``depth`` passages of an episode's last search. If the search cannot be repeated, return
        the episode's own hits; without a search, ().
        """
        steps = [step for step in episode.steps if isinstance(step.request, Retrieve)]
        if not steps:
            return ()
        request = steps[-1].request
        assert isinstance(request, Retrieve)
        search = Retrieve(request.retriever, request.query, max(depth, request.k))
        try:
            with self._models.lease("the search for a gold page").hold([search.retriever]):
                return answer_one(search, self._models.backends, self.reply_cache).reply.hits
        except RalleError:
            return steps[-1].reply.hits

    def start_episode(self, request: EpisodeRequest) -> EpisodeState:
        """Start an episode as a job, which continues if the page is closed. Beyond MOST_EPISODES, the oldest
        finished one is dropped.
        """
        for job in self._jobs.list("episode")[: 1 - MOST_EPISODES]:
            self._jobs.forget(job.id)
        episode = EpisodeJob(request)
        name, trace = episode.now.name, self._trace
        self._jobs.submit("episode", name, episode, lambda job: episode.work(self, trace, job))
        return episode.now

    def episode(self, name: str) -> EpisodeState | None:
        """Return the state of the episode ``name``; None if it is unknown or was dropped."""
        job = self._jobs.get("episode", name)
        return job.identity.state() if job and isinstance(job.identity, EpisodeJob) else None

    def stop_episode(self, name: str) -> None:
        """Stop an episode immediately. Raises UsageError if it is not running."""
        job = self._jobs.get("episode", name)
        episode = job.identity if job else None
        if not isinstance(episode, EpisodeJob) or not episode.now.going:
            raise UsageError("No episode is running, so there is nothing to stop.")
        episode.stop()

    def save_chain(self, chain: Chain, name: str) -> Path:
        """Save a chain in the workspace under ``name`` and return the file. An existing chain of that name is kept
        as a version.

        Raises UsageError if the saved file could not be read again.
        """
        if not name.strip() or any(c in name for c in '/\\:*?"<>|\0') or name.startswith("."):
            raise UsageError(
                f"The chain name {name!r} cannot be a file name; use letters, digits, '-' and '_'."
            )
        named = checked_chain(replace(chain, name=name.strip()))
        path = self._workspace.path / "chains" / f"{name.strip()}.json"
        save_version(named, path)
        return path

    def name_version(self, chain: Chain, label: str) -> None:
        """Give a version of a saved chain a name; '' removes it. Raises UsageError for a chain that was never saved."""
        if chain.name not in self._workspace.chain_paths():
            raise UsageError(
                f"The chain {chain.name!r} is not saved yet; save it, then name its versions."
            )
        name_version(self._workspace.path / "chains", chain, label)


def _report_steps(running: Iterator[Event], total: int | None) -> Operation[Episode]:
    """Yield the start of every step as progress; return the episode. ``total``: number of steps, None if unknown."""
    with closing(running) as events:  # type: ignore[type-var]
        for event in events:
            if isinstance(event, StepStarted):
                yield Progress("", event.index, total, heading(event.request))
            elif isinstance(event, Episode):
                return event
    raise AssertionError("a flow always ends in an episode")


def checked_chain(chain: Chain) -> Chain:
    """Return the chain as it would be read after saving. Raises BadFileError, and UsageError for a wrong setting."""
    return chain_from_json(chain_to_json(chain), "The chain")


def _ready(lease: Lease, llms: Sequence[str], retrievers: Sequence[str]) -> Backends:
    """Load and hold these models and retrievers; heavy models must already be loaded."""
    return complete(lease.load_for(llms, retrievers, heavy=False))
