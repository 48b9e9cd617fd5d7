"""A tuned chain without the page or the command line, for use in any program or as a program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rallebench.core.errors import BackendError
from rallebench.core.events import complete
from rallebench.core.types import Chain, Episode, Message
from rallebench.services.workbench import Workbench


class LoadedChain:
    """A chain with its retrievers and models loaded. Use it with ``with``, or ``close`` it.

    ``workspace``: the folder with its indexes, ``llms.json`` and so on; ``base_settings``: RaLLe's folder of models
    and retrievers. Raises RalleError if the workspace lacks anything that the chain uses.
    """

    def __init__(
        self, chain: Chain, workspace: Path | str = ".", base_settings: Path | None = None
    ) -> None:
        self.chain = chain
        self._workbench = Workbench(Path(workspace), base_settings=base_settings)
        self._lease = self._workbench.models.lease(f"a program with the chain {chain.name!r}")
        complete(self._lease.load_for(chain.llms, chain.retrievers))

    def episode(self, question: str, history: Sequence[tuple[str, str]] = ()) -> Episode:
        """Return every step and the answer or error, as Chat does. ``history``: (role, text) of earlier turns."""
        turns = tuple(Message(role, text) for role, text in history)
        *_, episode = self._workbench.asking.chat(self.chain, turns, question)
        assert isinstance(episode, Episode)
        return episode

    def answer(self, question: str, history: Sequence[tuple[str, str]] = ()) -> Episode:
        """Like episode, but raise BackendError if the question fails."""
        episode = self.episode(question, history)
        if episode.error:
            raise BackendError(episode.error)
        return episode

    def close(self) -> None:
        """Release memory and connections."""
        self._lease.close()
        self._workbench.close()

    def __enter__(self) -> LoadedChain:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
