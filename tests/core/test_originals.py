"""The prompts of a paper's repository are read from the user's copy; a fault in the copy is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.originals import DECLARATION, copy_in, literal_in_python, text_in_yaml
from rallebench.core.prompts import find_wording, prompt_text, prompts_folder

RULES = "en:\n  system: Be brief.\n  instruction: 'Docs: {DOCS} Ask: {QUERY} {{kept}}'\n"
JUDGE = (
    "def check(question, answer):\n    prompt = '''Q {question} A {answer}'''\n    raise OSError\n"
)
SYSTEM, USER = ("suites/rgb", "system-en.txt"), ("suites/rgb", "user-en.txt")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A small copy in the form of RGB's repository, with words of our own."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "instruction.yaml").write_text(RULES)
    (tmp_path / "reject_evalue.py").write_text(JUDGE)
    return tmp_path


def test_a_copy_of_the_repository_replaces_the_shipped_prompts(copy: Path) -> None:
    assert prompt_text(*SYSTEM, str(copy)) == "Be brief."
    assert prompt_text(*USER, str(copy)) == "Docs: {DOCS} Ask: {QUERY} {kept}"
    assert prompt_text("suites/rgb", "judge-rejection.txt", str(copy)) == "Q {question} A {answer}"
    assert prompt_text(*SYSTEM, str(copy / "config")) == "Be brief.", "a folder in it will do"


def test_the_wording_says_whose_words_are_sent_with_digests(copy: Path, tmp_path: Path) -> None:
    assert find_wording("", [SYSTEM]).note() == "Prompts reworded."
    wording = find_wording(str(copy), [SYSTEM, USER, ("suites/rgb", "question-one-en.txt")])
    assert wording.original and wording.run_settings["wording"]["sha256"] == wording.sha256
    mark = f"Original prompts (sha256 {wording.sha256[:12]})"
    assert wording.note() == (
        f"{mark}, of system-en.txt, user-en.txt a version that is not known here; "
        "reworded, as the repository has none: question-one-en.txt."
    )
    other = RULES.replace("brief", "short")
    (copy / "config" / "instruction.yaml").write_text(other)
    assert find_wording(str(copy), [SYSTEM, USER]).sha256 != wording.sha256
    own = tmp_path / "own"
    own.mkdir()
    (own / "system-en.txt").write_text("Mine.")
    assert find_wording(str(own), [SYSTEM]).note().startswith("Prompts of the user's own (sha256 ")


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (
            "config/instruction.yaml",
            None,
            r"is a copy of https://github.com/chen700564/RGB without",
        ),
        ("config/instruction.yaml", "en:\n  system: Be brief.\n", r"holds no text en\.instruction"),
        ("config/instruction.yaml", 'en:\n  instruction: "Docs', "cannot be read"),
        ("config/instruction.yaml", "en:\n  instruction: '{DOCS} {QUE'\n", "breaks off in a field"),
        ("config/instruction.yaml", "en:\n  instruction: '{DOCS}'\n", r"lacks \{QUERY\}"),
        (
            "config/instruction.yaml",
            "en:\n  instruction: '{DOCS} {QUERY} {TIME}'\n",
            r"has the field \{TIME\}",
        ),
    ],
)
def test_a_missing_half_or_other_file_is_refused_in_one_sentence(
    copy: Path, file: str, content: str | None, says: str
) -> None:
    if content is None:
        (copy / file).unlink()
    else:
        (copy / file).write_text(content)
    with pytest.raises(BadFileError, match=says) as refusal:
        prompt_text(*USER, str(copy))
    sentence = str(refusal.value)
    assert "\n" not in sentence and sentence.endswith(".")
    assert content is None or "half a file or another version; get https://github.com" in sentence


def test_a_source_is_parsed_and_never_run(copy: Path) -> None:
    path = copy / "reject_evalue.py"
    path.write_text(JUDGE + f"open({str(copy / 'ran')!r}, 'w')\n")
    assert prompt_text("suites/rgb", "judge-rejection.txt", str(copy)) == "Q {question} A {answer}"
    assert not (copy / "ran").exists()
    assert literal_in_python("x = 'a' + open('b').read()", "x") is None
    assert literal_in_python("x = f'{1 + 1}'", "x") is None
    path.write_text("prompt = " + "-" * 200_000 + "1\n")
    with pytest.raises(BadFileError, match="cannot be read"):
        prompt_text("suites/rgb", "judge-rejection.txt", str(copy))
    path.write_text("def check(:\n")
    with pytest.raises(BadFileError, match="cannot be read"):
        prompt_text("suites/rgb", "judge-rejection.txt", str(copy))


def test_a_yaml_document_without_the_place_has_no_text_there() -> None:
    assert text_in_yaml("en: {system: {a: b}}", "en.system") is None
    assert text_in_yaml("- a", "en.system") is None


def test_a_folder_without_the_requested_prompts_is_refused(copy: Path) -> None:
    with pytest.raises(BadFileError, match=r"holds none of the prompts of this request .*qa.txt"):
        find_wording(str(copy), [("suites/crud", "qa.txt")])
    with pytest.raises(BadFileError, match="is not a folder of prompts"):
        find_wording(str(copy / "missing"), [SYSTEM])


def test_every_declared_text_replaces_a_shipped_prompt_and_names_its_fields() -> None:
    folders = {path.parent for path in prompts_folder().rglob(DECLARATION)}
    assert {folder.name for folder in folders} >= {"rgb", "crud", "barag", "judges", "workflows"}
    for folder in folders:
        for name, place in copy_of(folder).items():
            assert (folder / Path(name).name).is_file(), name
            shipped = (folder / Path(name).name).read_text(encoding="utf-8")
            for ours in place.get("fields", {}).values():
                assert not isinstance(ours, str) or ours in ("", *fields_in(shipped)), (name, ours)
            assert len(place["sha256"]) == 64


def copy_of(folder: Path) -> dict[str, dict[str, object]]:
    """The declared texts of a folder of prompts."""
    import json

    texts: dict[str, dict[str, object]] = json.loads((folder / DECLARATION).read_text())["texts"]
    return texts


def fields_in(text: str) -> set[str]:
    """The fields of a shipped prompt."""
    import re

    return {f"{{{name}}}" for name in re.findall(r"\{(\w+)\}", text)}


def test_a_folder_that_is_no_copy_stays_the_users_own(tmp_path: Path) -> None:
    assert copy_in(tmp_path, prompts_folder() / "suites" / "rgb") is None
