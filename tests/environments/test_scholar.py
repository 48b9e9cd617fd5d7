"""The seven calls over a scholar table: their arguments, and their answers word for word."""

from __future__ import annotations

import json

import pytest
from acted import act

from rallebench.environments import Environment
from rallebench.environments._calls import MAX_TEXT, Unreadable, read_arguments
from rallebench.environments.scholar import scholar
from rallebench.environments.scholars.apis import ScholarTool
from rallebench.environments.scholars.building import build_table

SCHOLARS = [
    {
        "id": "s1",
        "name": "Ada Quill",
        "organization": "King's Institute, Northmere",
        "position": "Professor",
        "interests": ["graph theory"],
        "bio": "Draws.",
        "education": "Ph.D.",
        "email": "ada@example.org",
        "gender": "female",
        "language": "English",
    },
    {
        "id": "s2",
        "name": "Ada Quill",
        "organization": "University of Lakeview",
        "interests": ["databases"],
    },
    {
        "id": "s3",
        "name": "Zoë Müller",
        "organization": "University of Lakeview",
        "interests": ["name games", "graph theory"],
    },
    {"id": "s4", "name": "王伟", "organization": "湖景大学", "interests": []},
]
PUBLICATIONS = [
    {
        "id": "p1",
        "title": "Quiet Graphs",
        "year": 2010,
        "venue": "Annals",
        "ncitation": 9,
        "abstract": "On graphs.",
        "authors": [{"id": "s1", "name": "Ada Quill"}, {"id": "s3", "name": "Zoë Müller"}],
    },
    {
        "id": "p2",
        "title": "Loud Graphs",
        "year": 2012,
        "ncitation": 4,
        "authors": [{"id": "s1", "name": "Ada Quill"}],
    },
    {
        "id": "p3",
        "title": "Tables",
        "year": 2020,
        "ncitation": 1,
        "authors": [{"id": "s2", "name": "Ada Quill"}, {"id": "", "name": "A. Guest"}],
    },
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ScholarTool:
    folder = tmp_path_factory.mktemp("scholars")
    tables = {"scholars": SCHOLARS, "publications": PUBLICATIONS}
    (folder / "all.json").write_text(json.dumps(tables), encoding="utf-8")
    build_table(folder / "small.sqlite", folder / "all.json")
    return ScholarTool(folder / "small.sqlite")


@pytest.fixture
def env() -> Environment:
    return scholar(table="small", apis="all", tool="scholars")()


def say(env: Environment, table: ScholarTool, action: str) -> str:
    return act(env, action, {"scholars": table})


def found(text: str) -> list[str]:
    value = json.loads(text[text.index(": ") + 2 :])
    return [one["id"] for one in value] if isinstance(value, list) else [value["id"]]


def test_one_person_is_returned_as_by_r_eval(env: Environment, table: ScholarTool) -> None:
    said = say(env, table, 'searchPerson(name="Zoe Muller")')
    assert said.startswith("One person found: {")
    person = json.loads(said.removeprefix("One person found: "))
    names = "id name contact gender gindex hindex ncitation npubs language interests"
    assert " ".join(person) == names
    assert set(person["contact"]) == {"affiliation", "bio", "edu", "email", "position"}
    assert (person["id"], person["npubs"], person["ncitation"], person["hindex"]) == ("s3", 1, 9, 1)


def test_several_people_are_listed_most_cited_first(env: Environment, table: ScholarTool) -> None:
    said = say(env, table, "searchPerson(name=Ada Quill)")
    assert said.startswith("2 people found: [") and found(said) == ["s1", "s2"]


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ('name="Ada Quill", organization="King\'s Institute, Northmere"', ["s1"]),
        ("name='Ada Quill', organization='King's Institute, Northmere'", ["s1"]),
        ('{"name": "Ada Quill", "organization": "University of Lakeview"}', ["s2"]),
        ('"Ada Quill", "University of Lakeview"', ["s2"]),
        ("organization=University of Lakeview, interest=name games", ["s3"]),
        ('interest="graph theory"', ["s1", "s3"]),
        ("name: Ada Quil, org: Lakeview", ["s2"]),
        ('name="A. Quill", interest="databases"', ["s2"]),
        ('name="王伟"', ["s4"]),
        ('name="MULLER, Zoë"', ["s3"]),
        ('name="Ada Quill", organization=None, interest=""', ["s1", "s2"]),
    ],
)
def test_arguments_are_understood_as_models_write_them(
    env: Environment, table: ScholarTool, arguments: str, ids: list[str]
) -> None:
    assert found(say(env, table, f"searchPerson({arguments})")) == ids


@pytest.mark.parametrize(
    "action",
    [
        'searchPerson(name="Nobody Here")',
        'searchPerson(interest="sailing")',
        "getCoauthors(x)",
        "getPersonPubs(x)",
        "getPersonBasicInfo(s11)",
    ],
)
def test_who_is_not_there_is_said_in_r_evals_words(
    env: Environment, table: ScholarTool, action: str
) -> None:
    assert say(env, table, action) == "Could not find that person, please try again."


def test_publications_are_found_by_title_or_by_words(env: Environment, table: ScholarTool) -> None:
    one = say(env, table, 'searchPublication("Quiet Graphs")')
    assert one.startswith("One publication found: {")
    assert json.loads(one.removeprefix("One publication found: ")) == {
        "id": "p1",
        "title": "Quiet Graphs",
        "year": 2010,
        "authors": ["Ada Quill", "Zoë Müller"],
        "venue": "Annals",
        "pubAbstract": "On graphs.",
        "ncitation": 9,
    }
    assert found(say(env, table, "searchPublication(graphs)")) == ["p1", "p2"]
    assert found(say(env, table, "searchPublication(Qiuet Grahps)")) == ["p1"]
    assert (
        say(env, table, "searchPublication(no such thing)")
        == "Could not find that publication, please try again."
    )


def test_calls_by_id_return_r_evals_fields(env: Environment, table: ScholarTool) -> None:
    assert json.loads(say(env, table, "getCoauthors(s1)")) == [
        {"person_id": "s3", "name": "Zoë Müller", "relation": "coauthor"}
    ]
    assert json.loads(say(env, table, 'getPersonPubs(person_id="s1")')) == [
        {
            "pub_id": "p1",
            "title": "Quiet Graphs",
            "num_citation": 9,
            "year": 2010,
            "authors_name_list": ["Ada Quill", "Zoë Müller"],
        },
        {
            "pub_id": "p2",
            "title": "Loud Graphs",
            "num_citation": 4,
            "year": 2012,
            "authors_name_list": ["Ada Quill"],
        },
    ]
    assert json.loads(say(env, table, "getPersonInterest(s3)")) == ["name games", "graph theory"]
    assert json.loads(say(env, table, "getPublication(p3)")) == {
        "abstract": "",
        "author_list": [
            {"person_id": "s2", "name": "Ada Quill"},
            {"person_id": "", "name": "A. Guest"},
        ],
        "num_citation": 1,
    }
    assert json.loads(say(env, table, "getPersonBasicInfo(s1)")) == {
        "person_id": "s1",
        "name": "Ada Quill",
        "gender": "female",
        "organization": "King's Institute, Northmere",
        "position": "Professor",
        "bio": "Draws.",
        "education_experience": "Ph.D.",
        "email": "ada@example.org",
    }


def test_what_a_scholar_lacks_is_said(env: Environment, table: ScholarTool) -> None:
    assert say(env, table, "getCoauthors(s4)") == "No coauthors found"
    assert say(env, table, "getPersonPubs(s4)") == "No publication found"
    assert say(env, table, "getPersonInterest(s4)") == "No interest found"


def test_only_the_four_calls_of_r_evals_code_are_there_if_chosen(table: ScholarTool) -> None:
    four = scholar(table="small", apis="four", tool="scholars")()
    names = [tool.name for tool in four.tools]
    assert names == ["searchPerson", "searchPublication", "getCoauthors", "getPersonPubs"]
    assert say(four, table, "getPersonBasicInfo(s1)").startswith("Invalid Action.")


# ── the arguments of a call ──────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (
            'name="D, J", organization=\'Uni "X", Y\'',
            {"name": "D, J", "organization": 'Uni "X", Y'},
        ),
        ("name=interest of a, interest=name", {"name": "interest of a", "interest": "name"}),
        ("__import__('os').system('true')", {"name": "__import__('os').system('true')"}),
        ('name="Jane \\"JD\\" Doe"', {"name": 'Jane "JD" Doe'}),
        ("name=“Doe, J.”", {"name": "Doe, J."}),
        ('name="never closed, interest=x', {"name": "never closed, interest=x"}),
        ('{"name": null, "interest": ["a", "b"]}', {"interest": "a, b"}),
        ("", {}),
    ],
)
def test_texts_with_quotes_and_commas_stay_whole(text: str, given: dict[str, str]) -> None:
    assert read_arguments(text, ["name", "organization", "interest"]) == given


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name=a, name=b", "given twice"),
        ("x" * (MAX_TEXT + 1), "at most 2,000"),
        ("'a', 'b', 'c', 'd'", "more arguments than"),
        ('age="3"', "is not an argument"),
    ],
)
def test_arguments_that_cannot_be_told_apart_are_said_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_arguments(text, ["name", "organization", "interest"])
