"""A tuned chain without page and command line: ready to answer in any program, and as a program of its own."""

from __future__ import annotations

import pprint
from collections.abc import Sequence
from pathlib import Path

from rallebench.chains.saved import chain_to_json
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


SCRIPT = '''"""The chain {name} as a program: python {file} "your question".

Needs the package rallebench, and the workspace below with the indexes and models that the chain names.
"""

import sys

from rallebench.chains.saved import chain_from_json
from rallebench.core.errors import RalleError
from rallebench.core.terminal import visible
from rallebench.services.standalone import LoadedChain

WORKSPACE = {workspace}
CHAIN = chain_from_json(
{chain}
)


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with LoadedChain(CHAIN, WORKSPACE) as chain:
            episode = chain.answer(" ".join(sys.argv[1:]))
    except RalleError as error:
        print(visible(str(error)), file=sys.stderr)
        return error.exit_code
    print(visible(episode.answer))
    for hit in episode.hits:
        source = f"  {{hit.passage.title}} (page {{hit.passage.page_id}})"
        print(visible(source), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''


def script(chain: Chain, workspace: Path | str, file: str = "chain.py") -> str:
    """The source of a program that answers a question with ``chain``. Texts stand in it as literals only."""
    # Quotes of a name must not end the docstring.
    name = (
        "".join(letter for letter in chain.name if letter.isalnum() or letter in " -_.,")
        or "untitled"
    )
    literal = pprint.pformat(chain_to_json(chain), width=100, sort_dicts=False)
    indented = "\n".join(f"    {line}" for line in literal.splitlines())
    return SCRIPT.format(name=name, file=file, workspace=repr(str(workspace)), chain=indented)
