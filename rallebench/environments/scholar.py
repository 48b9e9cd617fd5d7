"""Seven calls over a table of scholars and their publications, with R-Eval's arguments and answers (Tu et al. 2024).

The table is a local SQLite file. ``apis=four`` offers only the four calls in R-Eval's code.
"""

from __future__ import annotations

from typing import Any

from rallebench.core.settings import Setting
from rallebench.core.types import Json, ToolSpec, UseTool
from rallebench.environments import ENVIRONMENTS, MakeEnvironment, Observed
from rallebench.environments._calls import Unreadable, read_arguments
from rallebench.environments._tools import checked_call, invalid_action
from rallebench.environments.scholars.apis import TOOLS

SETTINGS = {
    "table": Setting(str, "starter-scholars", about="an imported table of scholars", names="table"),
    "apis": Setting(str, "all", choices=("all", "four"), about="four: the calls in R-Eval's code"),
}
FINISHED = "Episode finished."
ALIASES = {
    "org": "organization",
    "organisation": "organization",
    "affiliation": "organization",
    "interests": "interest",
    "topic": "interest",
    "title": "publication_info",
    "publication": "publication_info",
    "query": "publication_info",
    "id": "",
    "pub_id": "publication_id",
    "person": "person_id",
}
"""Alternative names that models use for an argument; '' stands for a call's only argument."""


class Scholar:
    """The calls of one episode; they share no state."""

    brackets = "()"

    def __init__(self, tool: str, tools: tuple[ToolSpec, ...]) -> None:
        self._tool, self.tools = tool, tools

    def act(self, verb: str, argument: str) -> Observed:
        """See Environment. An unknown verb or unreadable arguments give a sentence, not an error."""
        if verb == "Finish":
            return FINISHED
        spec = next((spec for spec in self.tools if spec.name == verb), None)
        if spec is None:
            return invalid_action(self.tools)
        names = spec.arguments
        aliases = {
            other: name or names[0]
            for other, name in ALIASES.items()
            if name in (*names, "") and (name or len(names) == 1)
        }
        try:
            arguments = read_arguments(argument, names, aliases)
        except Unreadable as error:
            return f"{verb}: {error}"
        return (yield from self.call(verb, arguments))

    def call(self, name: str, arguments: Json) -> Observed:
        texts, wrong = checked_call(self.tools, name, arguments)
        if wrong:
            return wrong
        if not texts:
            return f"{name} needs at least one of {', '.join(self.tools[0].arguments)}."
        reply = yield UseTool(self._tool, {"api": name, **texts})
        return reply.text


@ENVIRONMENTS.register("scholar", form=SETTINGS, table=True)
def scholar(*, table: str, apis: str, tool: str, **_: Any) -> MakeEnvironment:
    """Search scholars and publications and look them up by id, over a local table."""
    tools = TOOLS if apis == "all" else TOOLS[:4]
    return lambda: Scholar(tool, tools)
