"""Every hint of an error has its words in every front end; sentences of lower layers name no flag."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rallebench
from rallebench.api.wording import reword as in_python
from rallebench.cli.wording import word_error
from rallebench.core.errors import HINTS, Hint, UsageError
from rallebench.gui.wording import on_page

PACKAGE = Path(rallebench.__file__).parent
WORDS = {
    Hint("allow-python"): (
        "allow it with --allow-python",
        "allow it by opening this page with app.py --allow-python",
        "allow it with Workspace(…, allow_python=True)",
    ),
    Hint("build-index", "barag"): (
        "rallebench index --chunk-preset barag builds one",
        "build one in Data with the chunking barag",
        "build_index(…, chunking='barag') builds one",
    ),
    Hint("choose", "llm"): (
        "name one with --llm",
        "choose one",
        "name one with llm=",
    ),
    Hint("choose", "llm", "questions=0 answerable=false"): (
        "name one with --llm, or do without: --set questions=0 --set answerable=false",
        "choose one, or do without: set Questions to 0 and untick Answerable",
        "name one with llm=, or do without: questions=0, answerable=False",
    ),
    Hint("choose", "environment"): (
        "name one with --env",
        "choose one",
        "name one with environment=",
    ),
    Hint("columns", "question"): (
        "import it with --columns question=COLUMN",
        "choose the column of the question under Columns",
        "name the right one with columns={'question': 'COLUMN'}",
    ),
    Hint("import", "hf:a/b?split=test", "dataset"): (
        "import it first: rallebench import 'hf:a/b?split=test' --kind dataset --name N",
        "import it in Data first",
        "import it first with import_dataset('hf:a/b?split=test', name=…)",
    ),
    Hint("common"): (
        "compare these alone with --common",
        "compare runs that were asked the same questions",
        "compare these alone with common=True",
    ),
    Hint("find-models"): (
        "rallebench models find lists them",
        "press Find models",
        "'rallebench models find' on a command line lists them",
    ),
    Hint("free-space"): (
        "free space or choose another --workspace",
        "free space, or open the page with another workspace",
        "free space, or open a Workspace in another folder",
    ),
    Hint("leave-out", "environment"): (
        "leave --env out",
        "leave the field environment empty",
        "leave the argument environment out",
    ),
    Hint("leave-out", "llm"): (
        "leave --llm out",
        "leave the field language model empty",
        "leave the argument llm out",
    ),
    Hint("list", "tasks"): (
        "see 'rallebench list tasks'",
        "on a command line 'rallebench list tasks' tells more",
        "list('tasks') of the workspace shows them",
    ),
    Hint("load", "e5"): (
        "name it with --llm, --retriever or in a chain; it is then loaded",
        "load it in Models",
        "load it with load('e5') of the workspace",
    ),
    Hint("track", "my run"): (
        "log it later: rallebench track 'my run'",
        "log it later: Export, Log the run",
        "log it later with log('my run') of the workspace",
    ),
    Hint("mcp-servers"): (
        "describe it in a file named by --mcp-servers FILE",
        "open this page with app.py --mcp-servers FILE, and describe it there",
        "describe it in the file of Workspace(…, mcp_servers=FILE)",
    ),
    Hint("raise-max-errors"): (
        "permit more with --max-errors",
        "permit more failed questions",
        "permit more with max_errors=",
    ),
    Hint("rename"): (
        "choose another --name",
        "choose another name",
        "choose another name=",
    ),
    Hint("resume", "night"): (
        "choose another --name, or add --resume",
        "choose another name, or open that run in Runs and resume it",
        "choose another name=, or continue it with resume=True",
    ),
    Hint("set", "data=FILE search=true"): (
        "give --set data=FILE --set search=true",
        "fill in the field Data and tick Search",
        "give data='FILE', search=True",
    ),
    Hint("skip-bad"): (
        "leave bad rows out with --skip-bad",
        "tick the field that leaves bad rows out",
        "leave bad rows out with skip_bad=True",
    ),
    Hint("start-again"): (
        "start it again with the same --name to continue",
        "start it again with the same name to continue",
        "call it again with the same name= to continue",
    ),
    Hint("unload", "e5"): (
        "stop the process that has loaded it",
        "unload it in Models",
        "unload it with unload('e5') of the workspace",
    ),
}


@pytest.mark.parametrize("hint", WORDS, ids=str)
def test_each_front_end_ends_an_error_with_the_mend_in_its_own_words(hint: Hint) -> None:
    error = UsageError("That cannot be.", hint=hint)
    terminal, page, python = WORDS[hint]
    assert word_error(error) == f"That cannot be; {terminal}."
    assert on_page(error) == f"That cannot be; {page}."
    assert str(in_python(error)) == str(in_python(in_python(error))) == f"That cannot be; {python}."
    assert type(in_python(error)) is UsageError


def test_every_kind_of_hint_is_worded() -> None:
    assert {hint.kind for hint in WORDS} == set(HINTS)


def test_an_unknown_kind_of_hint_is_refused_where_it_is_raised() -> None:
    with pytest.raises(ValueError, match="'wish'"):
        Hint("wish")


def test_an_error_without_a_hint_keeps_its_sentence() -> None:
    error = UsageError("The name 'a/b'\nis not valid; use letters.")
    assert word_error(error) == "The name 'a/b' is not valid; use letters."


OTHERS = {"cli", "gui"}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OWN = {
    flag
    for file in (PACKAGE / "cli").glob("*.py")
    for flag in FLAG.findall(file.read_text("utf-8"))
}


@pytest.mark.parametrize(
    "package",
    sorted(
        p.name for p in PACKAGE.iterdir() if (p / "__init__.py").is_file() and p.name not in OTHERS
    ),
)
def test_no_message_of_a_lower_layer_names_a_flag_or_a_tab(package: str) -> None:
    """Checks sentences in the code. Docstrings may name anything, and sentences may name flags of other programs."""
    assert "--chain" in OWN
    for path in sorted((PACKAGE / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                for text in ast.walk(node.exc):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        assert not OWN.intersection(FLAG.findall(text.value)), (path, text.value)
                        assert not re.search(r"\bthe \w+ tab\b", text.value), (path, text.value)
