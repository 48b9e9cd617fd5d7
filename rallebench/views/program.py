"""A chain as a program of its own."""

from __future__ import annotations

import pprint
from pathlib import Path

from rallebench.chains.saved import chain_to_json
from rallebench.core.types import Chain

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
    """Return the source of a program that answers a question with ``chain``. Texts appear in it only as literals."""
    # Quotes in a name must not end the docstring.
    name = (
        "".join(letter for letter in chain.name if letter.isalnum() or letter in " -_.,")
        or "untitled"
    )
    literal = pprint.pformat(chain_to_json(chain), width=100, sort_dicts=False)
    indented = "\n".join(f"    {line}" for line in literal.splitlines())
    return SCRIPT.format(name=name, file=file, workspace=repr(str(workspace)), chain=indented)
