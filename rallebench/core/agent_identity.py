"""The identity of an agent: everything that changes its answers, besides its model and indexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.json_values import JsonValue, as_json
from rallebench.core.types import Json


@dataclass(frozen=True, slots=True)
class EnvironmentIdentity:
    """The environment that an agent acts in. ``fingerprint``: changes with everything that affects an observation, except
    ``tools``: tool of a server → digest of its name, description and schema.
    """

    name: str
    settings: Json = field(default_factory=dict)
    fingerprint: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The entry ``environment``; only environments of a server have ``tools``."""
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "fingerprint": self.fingerprint,
            **({"tools": dict(self.tools)} if self.tools else {}),
        }


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """The agent of a run: its workflow, language model and settings, and digests of its prompts and demonstrations.

    ``shots``: the questions of the demonstrations. ``python``: the fingerprint of the sandbox for the model's programs; ''
    if programs are not allowed.
    """

    workflow: str = ""
    llm: str = ""
    settings: Json = field(default_factory=dict)
    prompts_sha256: str = ""
    shots: tuple[str, ...] = ()
    shots_sha256: str = ""
    environment: EnvironmentIdentity | None = None
    python: str = ""

    @property
    def environment_name(self) -> str:
        """The name of the environment, '' without one."""
        return self.environment.name if self.environment else ""

    @property
    def all_settings(self) -> Json:
        """Settings of the workflow, and those of the environment as ``env.NAME``."""
        inside = self.environment.settings if self.environment else {}
        return {**self.settings, **{f"env.{name}": value for name, value in inside.items()}}

    def to_json(self) -> dict[str, JsonValue]:
        """The entry ``agent`` in the settings of ``run.json``."""
        return {
            "workflow": self.workflow,
            "llm": self.llm,
            "settings": dict(self.settings),
            "prompts_sha256": self.prompts_sha256,
            "shots": list(self.shots),
            "shots_sha256": self.shots_sha256,
            **({"environment": as_json(self.environment)} if self.environment else {}),
            **({"python": self.python} if self.python else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, path: Path, mend: str) -> AgentIdentity:
        """The agent in ``value``, read from the file ``path``. Raises BadFileError."""
        from rallebench.core.own_files import parse

        return parse(value, cls, path, mend)
