"""The errors that a user can cause: one sentence with the cause and the mend.

::

    RalleError
    ├── UsageError            the request was wrong; nothing was done        (exit code 2)
    │   ├── TemplateError     a template is malformed or forbidden
    │   ├── NotFoundError     a name that is not registered, saved or loaded
    │   ├── BadFileError      a file of the wrong form
    │   ├── SettingError      a setting with a value that it cannot have
    │   ├── MismatchError     two things that do not belong together
    │   ├── ReadOnlyError     a change, where the program only reads
    │   └── MissingPackageError   an optional package is absent
    ├── BackendError          a retriever, model or endpoint failed           (exit code 1)
    │   └── BackendMemoryError the batch was too large; the loop halves it
    └── StoppedError          the user stopped it                             (exit code 130)

A message names the thing in neutral words, no flag and no button. Its ``hint`` is the mend, which each front end puts into
its own words. Any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rallebench.core.extras import install_line

if TYPE_CHECKING:
    from typing_extensions import Self

HINTS: Mapping[str, str] = {
    "allow-python": "let agents run programs that a model wrote",
    "build-index": "build an index, with the chunking preset ``name``",
    "choose": "choose what ``name`` is (llm, dataset, environment, metric …); ``value``: settings that do without it",
    "columns": "say which column of a table has the role ``name``",
    "common": "compare only the questions that are the same in both runs",
    "find-models": "ask the server for the names of its models",
    "free-space": "free space on the disk, or use another folder",
    "import": "import ``name`` first, which is a ``value`` (corpus or dataset)",
    "leave-out": "leave ``name`` out",
    "list": "list the names of the kind ``name``",
    "load": "load the model or retriever ``name``",
    "mcp-servers": "name a file of MCP servers, or describe the server in it",
    "raise-max-errors": "permit more failed questions",
    "rename": "choose another name",
    "resume": "continue ``name``, or choose another name",
    "set": "give the settings ``name``: pairs key=VALUE between spaces",
    "skip-bad": "leave out the bad rows",
    "start-again": "start it again with the same name; it continues",
    "track": "log the run or experiment ``name`` to MLflow later",
    "unload": "unload the model or retriever ``name``",
}
"""Kind of a hint → the mend, and the meaning of its ``name`` and ``value``."""


@dataclass(frozen=True, slots=True)
class Hint:
    """The mend of an error, as a kind of HINTS; ``cli.wording`` and ``gui.wording`` turn it into a sentence.

    >>> Hint("choose", "llm")
    Hint(kind='choose', name='llm', value='')
    """

    kind: str
    name: str = ""
    value: str = ""

    def __post_init__(self) -> None:
        if self.kind not in HINTS:
            raise ValueError(
                f"there is no hint {self.kind!r}; add it to HINTS and to both front ends"
            )

    def after(self, sentence: str, clauses: Mapping[str, Callable[[Hint], str]]) -> str:
        """``sentence`` with this kind's clause at its end.

        >>> Hint("rename").after("The name is taken.", {"rename": lambda hint: "choose another"})
        'The name is taken; choose another.'
        """
        return f"{sentence.removesuffix('.')}; {clauses[self.kind](self)}."


class RalleError(Exception):
    """The base class; ``str(error)`` is the sentence for the user.

    ``setting``: the wrong setting, '' without one; ``hint``: the mend, None if the sentence names it.
    """

    exit_code = 1

    def __init__(self, message: str = "", setting: str = "", hint: Hint | None = None) -> None:
        super().__init__(message)
        self.setting, self.hint = setting, hint

    def saying(self, message: str, hint: Hint | None = None) -> Self:
        """The same error with another sentence. Its kind and setting stay, and so does its hint unless ``hint`` replaces
        it.

        >>> taken = UsageError("The run 'a' exists already.", hint=Hint("resume", "a"))
        >>> taken.saying(f"a.json: {taken}").hint
        Hint(kind='resume', name='a', value='')
        """
        other = type(self).__new__(type(self), message)  # constructors of kinds differ
        other.__dict__.update(self.__dict__)
        other.hint = hint or self.hint
        return other


class UsageError(RalleError):
    """The request was wrong: a name, a value, a combination. Nothing was done."""

    exit_code = 2


class TemplateError(UsageError):
    """A template is malformed, names an unknown variable, or does something forbidden. ``at``: index of the character."""

    at: int | None = None


class NotFoundError(UsageError):
    """A name that is unknown or not loaded."""


class BadFileError(UsageError):
    """A file of the wrong form; the error names the file and, if known, the line."""


class MismatchError(UsageError):
    """Two things that do not belong together; names both sides."""


class SettingError(UsageError):
    """A setting has a value that it cannot have; ``must_be``: the permitted values in words.

    >>> str(SettingError("noise", 3, "a number from 0 to 1"))
    'noise=3: noise must be a number from 0 to 1.'
    """

    def __init__(self, setting: str, value: object, must_be: str) -> None:
        super().__init__(f"{setting}={value}: {setting} must be {must_be}.", setting)


READ_ONLY = "This program is read-only, so it starts and changes nothing."


class ReadOnlyError(UsageError):
    """Work or a change that a program which only reads refuses.

    >>> str(ReadOnlyError())
    'This program is read-only, so it starts and changes nothing.'
    """

    def __init__(self, message: str = READ_ONLY) -> None:
        super().__init__(message)


class MissingPackageError(UsageError):
    """An optional package is absent; names the install line."""

    def __init__(self, package: str, why: str = "", install: str = "") -> None:
        need = f" {why}" if why else ""
        super().__init__(f"{package} is not installed{need}: {install_line(package, install)}")


class BackendError(RalleError):
    """A retriever, model, tool or endpoint failed during the work."""


class BackendMemoryError(BackendError):
    """A batch did not fit in memory; the loop halves it and tries again."""


class BusyError(BackendError):
    """A server refuses more requests for now; ``pause``: the requested seconds of waiting, None if unknown."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class StoppedError(RalleError):
    """The user stopped the work; finished parts are kept."""

    exit_code = 130
