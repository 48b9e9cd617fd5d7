"""A tuned chain without page and command line: ready to answer in any program, and as a program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rallebench.core.errors import BackendError
from rallebench.core.events import complete
from rallebench.core.types import Chain, Episode, Message
from rallebench.services.workbench import Workbench


class LoadedChain:
    """A chain whose retrievers and models are loaded. Use it in ``with``, or ``close`` it.

    ``workspace``: the folder that holds its indexes, ``llms.json`` and the like; ``base_settings``: RaLLe's folder of models
    and retrievers. Raises RalleError for what the chain names and the workspace lacks.
    """

    def __init__(
        self, chain: Chain, workspace: Path | str = ".", base_settings: Path | None = None
    ) -> None:
        self.chain = chain
        self._workbench = Workbench(Path(workspace), base_settings=base_settings)
        self._lease = self._workbench.models.lease(f"a program with the chain {chain.name!r}")
        complete(self._lease.load_for(chain.llms, chain.retrievers))

    def episode(self, question: str, history: Sequence[tuple[str, str]] = ()) -> Episode:
        """Every step, and the answer or the error, as Chat gives them. ``history``: (role, text) of earlier turns."""
        turns = tuple(Message(role, text) for role, text in history)
        *_, episode = self._workbench.asking.chat(self.chain, turns, question)
        assert isinstance(episode, Episode)
        return episode

    def answer(self, question: str, history: Sequence[tuple[str, str]] = ()) -> Episode:
        """The same, but raises BackendError if the question fails."""
        episode = self.episode(question, history)
        if episode.error:
            raise BackendError(episode.error)
        return episode

    def close(self) -> None:
        """Give memory and connections back."""
        self._lease.close()
        self._workbench.close()

    def __enter__(self) -> LoadedChain:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
