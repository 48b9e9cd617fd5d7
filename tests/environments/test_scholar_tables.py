"""A scholar table is imported from CSV, JSON and JSON lines, whole or not at all; an error is one sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rallebench.cli.main import main
from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.starter import STARTER
from rallebench.environments.scholars.building import g_index, h_index
from rallebench.workspace.environments import (
    import_scholars,
    make_environment,
    scholar_table,
)
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.scholar_tables import scholar_tables
from tools.fictional_scholars import fictional, write_fictional

CSV = 'person_id,name,affiliation,tags,h_index\ns1,Ada Quill,"King\'s, Northmere",graphs;tables,7\ns2,Bo Lind,Lakeview,,\n'


@pytest.fixture
def space(tmp_path: Path) -> WorkspaceFolder:
    return WorkspaceFolder(tmp_path / "workspace")


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_with_columns_by_other_names_fills_a_table(
    space: WorkspaceFolder, tmp_path: Path
) -> None:
    made = import_scholars(space, "mine", written(tmp_path / "people.csv", CSV))
    assert (made.scholars, made.publications, made.coauthors, made.skipped) == (2, 0, 0, 0)
    person = scholar_table(space, "mine").person("s1")
    assert person is not None
    assert (person["organization"], person["hindex"]) == ("King's, Northmere", 7)
    assert person["interests"] == ["graphs", "tables"]


def test_what_the_files_do_not_say_is_counted_from_the_publications(
    space: WorkspaceFolder, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    written(folder / "scholars.csv", "id,name\ns1,Ada\ns2,Bo\ns3,Cy\n")
    authors = {5: ["s1", "s2"], 3: ["s1", "Guest"], 1: ["s1", "Guest"]}
    papers = [
        {"id": f"p{n}", "title": f"T{n}", "ncitation": n, "authors": authors[n]} for n in authors
    ]
    with gzip.open(folder / "publications.jsonl.gz", "wt") as handle:
        handle.writelines(json.dumps(paper) + "\n" for paper in papers)
    made = import_scholars(space, "mine", folder)
    table = scholar_table(space, "mine")
    person = table.person("s1")
    assert person is not None and made.coauthors == 2
    assert [person[key] for key in ("npubs", "ncitation", "hindex", "gindex")] == [3, 9, 2, 3]
    assert table.find_coauthors(person["row"], 9) == [("s2", "Bo", "coauthor")]


@pytest.mark.parametrize(
    ("cited", "h", "g"),
    [((), 0, 0), ((0,), 0, 0), ((10, 8, 5, 4, 3), 4, 5), ((100,), 1, 1), ((1, 1, 1), 1, 1)],
)
def test_h_and_g_are_those_of_their_papers(cited: tuple[int, ...], h: int, g: int) -> None:
    assert (h_index(cited), g_index(cited)) == (h, g)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "id,org\n1,X\n", "none is 'name'; a table of scholars needs id and name"),
        ("a.csv", "id,name\n1,X\n1,Y\n", "repeat '1'"),
        ("a.csv", "id,name\n1\n", "has 1 fields where the header names 2"),
        ("a.csv", "id,name,h_index\n1,X,many\n", "must be a whole number"),
        ("a.csv", "id,name\n", "holds no scholar"),
        ("a.jsonl", '{"id": "1", "name": ""}\n', "'name' is empty"),
        ("a.jsonl", '{"id": "1"\n', "line 1"),
        ("a.jsonl", '{"id": "1", "name": "\\ud800"}\n', "line 1 contains half of a surrogate pair"),
        ("a.json", '{"publications": []}', 'without "scholars"'),
        ("a.json", "[1, 2]", "is not an object"),
    ],
)
def test_a_bad_file_is_one_sentence_and_leaves_nothing(
    space: WorkspaceFolder, tmp_path: Path, name: str, text: str, why: str
) -> None:
    with pytest.raises(BadFileError, match=why):
        import_scholars(space, "mine", written(tmp_path / name, text))
    assert not list((space.path / "scholars").glob("**/*.sqlite"))


def test_bad_rows_are_left_out_and_counted_if_chosen(
    space: WorkspaceFolder, tmp_path: Path
) -> None:
    source = written(tmp_path / "a.csv", "id,name\n1,X\n1,Y\n2,\n3,Z\n")
    made = import_scholars(space, "mine", source, skip_bad=True)
    assert (made.scholars, made.skipped, len(made.problems)) == (2, 2, 2)


def test_a_table_with_other_rows_is_never_replaced(space: WorkspaceFolder, tmp_path: Path) -> None:
    source = written(tmp_path / "a.csv", CSV)
    import_scholars(space, "mine", source)
    import_scholars(space, "mine", source)
    written(source, CSV + "s3,New,,,\n")
    with pytest.raises(UsageError, match="exists already and holds other rows"):
        import_scholars(space, "mine", source)
    assert scholar_table(space, "mine").scholars == 2


def test_an_unknown_table_names_those_that_there_are(space: WorkspaceFolder) -> None:
    with pytest.raises(NotFoundError, match="starter-scholars"):
        make_environment(space, "scholar", {"table": "nowhere"})
    with pytest.raises(UsageError, match="choose another"):
        import_scholars(space, "starter-scholars", Path("x"))


def test_a_file_that_is_no_table_is_said_in_a_sentence(space: WorkspaceFolder) -> None:
    text = "not a database at all, but text that is long enough to be read"
    written(space.path / "scholars" / "odd.sqlite", text)
    with pytest.raises(BadFileError, match="is not a scholar table"):
        scholar_table(space, "odd")


def test_the_command_line_lists_a_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path / "a.csv", CSV)
    flags = ["--kind", "scholars", "--name", "mine", "--workspace", str(tmp_path), "--json"]
    assert main(["import", str(source), *flags]) == 0
    assert json.loads(capfd.readouterr().out) == {
        "name": "mine",
        "rows": 2,
        "scholars": 2,
        "publications": 0,
        "coauthors": 0,
        "skipped": 0,
        "problems": [],
    }
    assert main(["list", "scholars", "--workspace", str(tmp_path)]) == 0
    assert "mine" in capfd.readouterr().out


# ── the starter's ────────────────────────────────────────────────────────────


def starter(kind: str) -> list[dict[str, object]]:
    text = (STARTER / "scholars" / f"{kind}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_starters_scholars_are_what_the_committed_script_writes(tmp_path: Path) -> None:
    write_fictional(tmp_path)
    for kind in ("scholars", "publications", "coauthors"):
        shipped = STARTER / "scholars" / f"{kind}.jsonl"
        assert (tmp_path / shipped.name).read_bytes() == shipped.read_bytes()


def test_the_starter_has_enough_scholars_all_marked_as_fictional_and_told_apart_by_name_and_organization(
    space: WorkspaceFolder,
) -> None:
    people, papers = starter("scholars"), starter("publications")
    assert len(people) >= 120 and len(papers) >= 400
    assert all("fictional" in str(person["bio"]) for person in people)
    assert all(str(person["email"]).endswith(".example") for person in people)
    assert all("fictional" in str(paper["abstract"]) for paper in papers)
    assert len({(person["name"], person["organization"]) for person in people}) == len(people)
    assert len(people) - len({person["name"] for person in people}) == 6
    assert "fictional" in (STARTER / "scholars" / "README.md").read_text(encoding="utf-8")


def test_the_starters_numbers_follow_from_its_publications() -> None:
    made = fictional()
    for person in made["scholars"]:
        own = [
            paper
            for paper in made["publications"]
            if person["id"] in {author["id"] for author in paper["authors"]}
        ]
        cited = sorted((paper["ncitation"] for paper in own), reverse=True)
        assert 1 <= len(own) == person["npubs"] <= 10
        figures = (person["ncitation"], person["hindex"], person["gindex"])
        assert figures == (sum(cited), h_index(cited), g_index(cited))
        mates = {author["id"] for paper in own for author in paper["authors"]} - {person["id"]}
        assert mates == {
            row["coauthor_id"] for row in made["coauthors"] if row["person_id"] == person["id"]
        }


def test_the_starters_table_is_there_without_an_import_and_no_network(
    space: WorkspaceFolder,
) -> None:
    acting = make_environment(space, "scholar", {})
    assert acting.tools.keys() == {"scholars:starter-scholars"} and acting.fingerprint
    assert list(scholar_tables(space)) == ["starter-scholars"]
