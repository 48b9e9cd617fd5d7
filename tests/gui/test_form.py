"""The chain form and the chain are the same thing in two shapes."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench.chains.saved import MAX_ACTIONS
from rallebench.core.errors import UsageError
from rallebench.core.types import Action, Chain
from rallebench.gui import form

CHAINS = [
    Chain("one", (Action("identity", "{question}"),)),
    Chain(
        "full",
        (
            Action("retrieve", "{question}", target="starter-bm25", k=7),
            Action(
                "generate",
                "'a' + question",
                "eval",
                "echo",
                generation={
                    "max_tokens": 5,
                    "temperature": 0.5,
                    "seed": 3,
                    "stop": ["\n", "END"],
                    "system": "Be brief.",
                    "top_p": 0.9,
                },
            ),
            Action("identity", ""),
        ),
        "What it is for.",
    ),
    Chain("eight", tuple(Action("identity", str(i)) for i in range(MAX_ACTIONS))),
]


def values_of(chain: Chain) -> list[Any]:
    """What the widgets hold after the form was filled."""
    updates = form.write_chain(chain)
    inputs = updates[: len(form.HEAD) + MAX_ACTIONS * len(form.FIELDS)]
    return [u["value"] if isinstance(u, dict) else u for u in inputs]


@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: c.name)
def test_a_chain_survives_the_form(chain: Chain) -> None:
    assert form.read_chain(values_of(chain)) == chain


@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: c.name)
def test_only_the_chains_actions_are_shown(chain: Chain) -> None:
    shown = [u["visible"] for u in form.write_chain(chain)[-MAX_ACTIONS:]]
    assert shown == [i < len(chain.actions) for i in range(MAX_ACTIONS)]


def test_actions_can_be_added_up_to_eight_removed_down_to_one_and_moved() -> None:
    chain = CHAINS[0]
    for _ in range(MAX_ACTIONS - 1):
        chain = form.added(chain)
    with pytest.raises(UsageError, match="at most 8"):
        form.added(chain)
    with pytest.raises(UsageError, match="at least one"):
        form.removed(CHAINS[0], 0)
    assert [a.template for a in form.moved(CHAINS[2], 0, 1).actions][:2] == ["1", "0"]
    assert form.moved(CHAINS[2], 0, -1) == CHAINS[2]
    assert [a.template for a in form.removed(CHAINS[2], 0).actions] == [str(i) for i in range(1, 8)]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("k", 0, "Action 1: k is 0"),
        ("k", -3, "Action 1: k is -3"),
        ("k", 2.5, "Action 1: k is 2.5"),
        ("k", 100_000, "Action 1: k is 100000"),
        ("temperature", "nan", "Action 2: temperature is 'nan'; it must be a number"),
        ("seed", "9" * 500 + ".", "Action 2: seed is '9999"),
        ("max_tokens", "many", "Action 2: max_tokens is 'many'; it must be a number"),
        ("temperature", "-1", "Action 2: temperature is -1"),
        ("options", "{", "Action 2: the other settings are not valid JSON"),
        ("options", "[1]", "Action 2: the other settings must be a JSON object"),
    ],
)
def test_a_wrong_field_is_named_with_its_action(field: str, value: Any, message: str) -> None:
    values = values_of(CHAINS[1])
    action = 0 if field == "k" else 1
    values[len(form.HEAD) + action * len(form.FIELDS) + form.FIELDS.index(field)] = value
    with pytest.raises(UsageError, match=message.replace("(", r"\(").replace("[", r"\[")):
        form.read_chain(values)
