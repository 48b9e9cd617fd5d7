"""README and the manual are true: two commands first, every extension kind, examples that run."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
from project import PROJECT

from rallebench.cli.main import main
from rallebench.cli.verbs import VERBS
from rallebench.experiments import SUITES
from rallebench.workspace.paths import WorkspaceFolder

README = (PROJECT / "README.md").read_text(encoding="utf-8")
MANUAL = {path.name: path.read_text(encoding="utf-8") for path in (PROJECT / "docs").glob("*.md")}
TEXTS = {
    Path("README.md"): README,
    Path("CONTRIBUTING.md"): (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    Path("CHANGELOG.md"): (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"),
    **{Path("docs") / name: text for name, text in MANUAL.items()},
}
"""Path → text of everything that newcomers read first."""

EXTENSIONS = (
    "CORPORA",
    "INDEX_KINDS",
    "VECTOR_INDEXES",
    "ENCODERS",
    "LLMS",
    "DATASETS",
    "METRICS",
    "WORKFLOWS",
    "ENVIRONMENTS",
    "PLACES",
)


def test_a_workspace_in_the_project_folder_adds_nothing_that_git_would_take(tmp_path: Path) -> None:
    ignored = (PROJECT / ".gitignore").read_text(encoding="utf-8").split()
    folders = {folder.name for folder in WorkspaceFolder(tmp_path).own_folders}
    written = {f"/{name}/" for name in folders | {"chains", "datasets"}}
    written |= {"/llms.json", "/retrievers.json", "/mlflow.db*"}
    assert written - {"/indexes/"} <= set(ignored) and "/indexes/*" in ignored


def blocks(text: str) -> list[str]:
    return re.findall(r"```bash\n(.*?)```", text, re.DOTALL)


def test_the_first_screen_has_exactly_the_two_commands_and_each_does_all_set_up() -> None:
    first_screen = README.split("\n## ")[0]
    commands = [block.strip() for block in blocks(first_screen)]
    assert len(commands) == 2
    for command in commands:
        assert command.startswith(
            "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt && .venv/bin/python "
        )
    assert commands[0].endswith("app.py") and commands[1].endswith("-m pytest")


def test_ci_runs_readmes_own_test_command() -> None:
    pattern = re.search(r"sed -n 's/\^\\\((.*?)\\\)\$", (PROJECT / ".ci" / "run").read_text())
    assert pattern is not None
    found = [
        line for line in README.split("\n") if re.fullmatch(pattern[1].replace("\\", ""), line)
    ]
    assert len(found) == 1 and found[0].endswith("-m pytest")


@pytest.mark.parametrize("verb", VERBS.names())
def test_every_verb_is_explained(verb: str) -> None:
    assert re.search(rf"^### {verb}\n\n\w", MANUAL["cli.md"], re.MULTILINE)


def test_every_command_of_a_suite_names_settings_that_it_has() -> None:
    commands = [
        shlex.split(command)
        for command in re.findall(r"`(suite [\w-]+ --set [^`]*)`", MANUAL["experiments.md"])
    ]
    assert len(commands) >= 8
    for _, name, *words in commands:
        pairs = [word.partition("=") for flag, word in zip(words, words[1:]) if flag == "--set"]
        SUITES.settings(name, {key: value for key, _, value in pairs})


def test_the_curve_in_the_table_of_results_is_that_of_its_command() -> None:
    (row,) = re.findall(r"^\| `barag-curve` \| XQuAD.*$", MANUAL["experiments.md"], re.MULTILINE)
    assert "--set draft_passages=1 --llm extractive-reader`" in row and "never retrieve" not in row


@pytest.mark.parametrize("registry", EXTENSIONS)
def test_every_extension_kind_is_named(registry: str) -> None:
    assert f"`{registry}`" in TEXTS[Path("CONTRIBUTING.md")]


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_every_picture_link_and_file_that_is_named_exists(path: Path) -> None:
    text, folder = TEXTS[path], (PROJECT / path).parent
    for name, heading in re.findall(r"\]\(([^)#:]*)(?:#([\w-]+))?\)", text):
        linked = folder / name if name else PROJECT / path
        assert linked.is_file(), name
        if heading:
            heads = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in [head.lower().replace(" ", "-") for head in heads]
    for name in re.findall(
        r"`((?:rallebench|tests|tools|benchmarks|prompts|engine)/[\w/.]+)`", text
    ):
        assert (PROJECT / name).exists() or (PROJECT / "rallebench" / name).exists(), name


def test_readme_is_one_page_and_its_picture_is_small() -> None:
    assert len(README.splitlines()) <= 80
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert (PROJECT / picture).stat().st_size < 200_000


def test_every_command_of_the_manual_is_understood() -> None:
    from rallebench.cli.main import _parser

    parser, commands = _parser(), []
    for text in TEXTS.values():
        lines = "\n".join(blocks(text)).replace("\\\n", " ").split("\n")
        commands += [line for line in lines if re.match(r"rallebench |python -m rallebench ", line)]
        # Capitals stand for a value; a verb that is only mentioned has no arguments.
        commands += re.findall(r"`((?:python -m )?rallebench [a-z-]+ (?:[^`|…])+)`", text)
    assert len(commands) > 40
    for command in commands:
        words = shlex.split(command.removeprefix("python -m "), comments=True)
        if words[1].isupper():
            continue
        try:
            parser.parse_known_args(words[1:])
        except SystemExit:
            pytest.fail(f"not understood: {command}")


def test_commands_for_ones_own_corpus_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.tsv").write_text(
        "id\ttext\ttitle\n1\tTitan is a moon of Saturn.\tTitan\n2\tRome is a city.\tRome\n"
    )
    Path("map.json").write_text('{"1": "10", "2": "20"}')
    section = MANUAL["usage.md"].split("\n## Corpus")[1].split("\n## ")[0]
    lines = [line for block in blocks(section) for line in block.strip().split("\n")]
    assert len(lines) >= 2
    for line in lines:
        words = shlex.split(line)
        assert words[:3] == ["python", "-m", "rallebench"]
        assert main([*words[3:], *(["--encoder", "hashing"] if "flat" in words else [])]) == 0
    assert {p.name for p in Path("indexes").iterdir()} == {"mine", "mine-dense"}


@pytest.mark.parametrize("verb", VERBS.names())
def test_the_example_in_verbs_help_is_right(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    from rallebench.cli.main import _parser

    entry = VERBS.entry(verb)
    example = entry.traits["example"]
    assert entry.about and _parser().parse_args(shlex.split(example)[1:]).verb == verb
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    assert example.split(" ")[1] in capsys.readouterr().out


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_headings_stand_alone_and_python_examples_parse(path: Path) -> None:
    """A tool that wraps lines joins a heading with its paragraph, and the lines of an example."""
    prose = re.sub(r"```.*?```", "", TEXTS[path], flags=re.DOTALL)
    headings = [line for line in prose.splitlines() if re.match(r"#{1,4} ", line)]
    assert headings and [line for line in headings if len(line) > 70] == []
    for example in re.findall(r"```python\n(.*?)```", TEXTS[path], re.DOTALL):
        compile(example, str(path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
