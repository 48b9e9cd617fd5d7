"""Time to import a large table of fictional scholars, and response times of the scholar environment over it.

Exact calls (getPersonBasicInfo, getPersonInterest, getPersonPubs, getPublication, getCoauthors by id) and loose ones (searchPerson
by name, by misspelled name, by organization and interest; searchPublication by title and by a few common words), each through
the environment as an agent writes it. Bare is a plain SQLite look-up of a record by its primary key.

Targets at 100,000 scholars: an exact call under 1 ms, a loose one under 10 ms.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

from rallebench.environments.scholar import Scholar
from rallebench.environments.scholars.apis import TOOLS, ScholarTool
from rallebench.workspace.environments import import_scholars, scholar_table
from rallebench.workspace.paths import WorkspaceFolder
from tools.fictional_scholars import write_fictional

EXACT, LOOSE = 1.0, 10.0


def play(environment: Scholar, table: ScholarTool, verb: str, argument: str) -> str:
    """One action of an episode."""
    flow = environment.act(verb, argument)
    try:
        request: Any = next(flow)
        while True:
            request = flow.send(table.use(request.arguments))
    except StopIteration as end:
        return str(end.value)


def misspelled(rng: random.Random, name: str) -> str:
    """The text with two neighbouring letters of its longest word exchanged."""
    name = name.casefold()
    word = max(re.findall(r"[^\W\d_]+", name), key=len)
    at = rng.randrange(1, len(word) - 2)
    return name.replace(word, f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}")


def calls(
    rng: random.Random, rows: dict[str, list[dict[str, Any]]]
) -> dict[str, Callable[[], tuple[str, str]]]:
    """Kind of call → one such call, drawn anew each time."""

    def person() -> dict[str, Any]:
        return rng.choice(rows["scholars"])

    def paper() -> dict[str, Any]:
        return rng.choice(rows["publications"])

    return {
        "getPersonBasicInfo": lambda: ("getPersonBasicInfo", person()["id"]),
        "getPersonInterest": lambda: ("getPersonInterest", person()["id"]),
        "getPersonPubs": lambda: ("getPersonPubs", person()["id"]),
        "getPublication": lambda: ("getPublication", paper()["id"]),
        "getCoauthors": lambda: ("getCoauthors", person()["id"]),
        "searchPerson, name": lambda: ("searchPerson", f'name="{person()["name"]}"'),
        "searchPerson, misspelled": lambda: (
            "searchPerson",
            f'name="{misspelled(rng, person()["name"])}"',
        ),
        "searchPerson, office and topic": lambda: (
            "searchPerson",
            f'organization="{(scholar := person())["organization"]}", interest="{scholar["interests"][0]}"',
        ),
        "searchPublication, title": lambda: ("searchPublication", paper()["title"]),
        "searchPublication, a common word": lambda: (
            "searchPublication",
            rng.choice(("learning", "a survey of models", "for graph theory")),
        ),
    }


def measure(scholars: int, each: int, rounds: int) -> Report:
    """Write, import, ask."""
    rng = random.Random(_report.SEED)
    with tempfile.TemporaryDirectory(prefix="rallebench-bench-") as place:
        folder, workspace = Path(place) / "files", WorkspaceFolder(Path(place) / "workspace")
        counts = write_fictional(folder, scholars)
        filled, imported = _report.timed(lambda: import_scholars(workspace, "big", folder))
        rows = {
            kind: [
                json.loads(line)
                for line in (folder / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
            ]
            for kind in ("scholars", "publications")
        }
        table = scholar_table(workspace, "big")
        bare = sqlite3.connect(f"file:{imported.path}?mode=ro", uri=True)
        environment = Scholar("scholars:big", TOOLS)
        taken: dict[str, list[float]] = {}
        looked_up: list[float] = []
        unanswered = 0
        for _ in range(rounds):
            for kind, draw in calls(rng, rows).items():
                drawn = [draw() for _ in range(each)]
                start = time.perf_counter()
                answers = [play(environment, table, *call) for call in drawn]
                taken.setdefault(kind, []).append(1000 * (time.perf_counter() - start) / each)
                unanswered += sum(
                    answer.startswith(("Could not", "There is no", "Invalid")) for answer in answers
                )
            ids = [rng.choice(rows["scholars"])["id"] for _ in range(each)]
            start = time.perf_counter()
            for scholar_id in ids:
                json.loads(
                    bare.execute(
                        "SELECT record FROM person WHERE id = ?", (scholar_id,)
                    ).fetchone()[0]
                )
            looked_up.append(1000 * (time.perf_counter() - start) / each)
        size = imported.path.stat().st_size / 1e6
        table.close()
        bare.close()
    measures = [
        Measure(
            kind,
            "ms",
            times,
            looked_up,
            "a look-up by key in plain SQLite",
            most=LOOSE if kind.startswith("search") else EXACT,
        )
        for kind, times in taken.items()
    ]
    return Report(
        "scholars",
        {"scholars": scholars, "calls of each kind in a round": each},
        [
            *measures,
            Measure("filling the table, processor", "s", [filled.processor]),
            Measure("size of the table", "MB", [size]),
        ],
        [
            Fact("calls without an answer", unanswered, 0),
            Fact("scholars of the table", imported.scholars, counts["scholars"]),
            Fact("publications of the table", imported.publications, counts["publications"]),
        ],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=5)
    flags.add_argument("--scholars", type=int, default=100_000, metavar="N", help="default: 100000")
    arguments = flags.parse_args()
    size = (1000, 20, 2) if arguments.quick else (arguments.scholars, 200, arguments.rounds)
    return measure(*size).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
