"""Which kind of answer a question asks for."""

from __future__ import annotations

import pytest

from rallebench.reader.expect import expect


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who painted the ceiling?", "person"),
        ("To whom did Euler report the relation?", "person"),
        ("Which king was murdered in Perth?", "person"),
        ("When was the bridge opened?", "date"),
        ("In which year did he die?", "date"),
        ("in what century did they come", "date"),
        ("How many moons has Mars?", "number"),
        ("how tall is the tower", "number"),
        ("What was the population of the town?", "number"),
        ("Where was she buried?", "place"),
        ("Into which river does the Inn flow?", "place"),
        ("what is the place of birth of Emmy Noether?", "place"),
        ("what is the date of birth of Emmy Noether?", "date"),
        ("Why did the ship sink?", "reason"),
        ("How did he escape?", "manner"),
        ("What name was given to the planet?", "name"),
        ("Which metal is in vitamin B12?", "thing"),
        ("What covers the walls?", "thing"),
        ("Was the bridge built before 1800?", "yesno"),
        ("Did she ever meet him?", "yesno"),
        ("the spouse of Ada Lovelace", "thing"),
        ("", "thing"),
    ],
)
def test_the_expected_kind_of(question: str, kind: str) -> None:
    assert expect(question).kind == kind


@pytest.mark.parametrize(
    ("question", "head"),
    [
        ("Which larger company swallowed up the firm?", "company"),
        ("On what kind of fruit was the mould found?", "fruit"),
        ("The tower is designed to look like what Oxford tower?", "tower"),
        ("What is the name of the largest sea on Titan?", "sea"),
        ("Which famous scientific book was printed at his expense?", "book"),
        ("How many countries border the Congo?", "countries"),
        ("Of what did the composer die?", ""),
        ("What was the dog of the author called?", "dog"),
    ],
)
def test_the_noun_that_is_asked_for_in(question: str, head: str) -> None:
    assert expect(question).head == head
