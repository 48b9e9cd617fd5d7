"""The errors that a user can cause: one sentence with the cause and the mend.

::

    RalleError
    ├── UsageError            the request was wrong; nothing was done        (exit code 2)
    │   ├── TemplateError     a template is malformed or forbidden
    │   ├── NotFoundError     a name that is not registered, saved or loaded
    │   ├── BadFileError      a file of the wrong form
    │   ├── MismatchError     two things that do not belong together
    │   └── MissingPackageError   an optional package is absent
    ├── BackendError          a retriever, model or endpoint failed           (exit code 1)
    │   └── BackendMemoryError the batch was too large; the loop halves it
    └── StoppedError          the user stopped it                             (exit code 130)

Any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations


class RalleError(Exception):
    """The base class; ``str(error)`` is the sentence for the user."""

    exit_code = 1


class UsageError(RalleError):
    """The request was wrong: a flag, a name, a value. Nothing was done."""

    exit_code = 2


class TemplateError(UsageError):
    """A template is malformed, names an unknown variable, or does something forbidden."""


class NotFoundError(UsageError):
    """A name that is unknown or not loaded."""


class BadFileError(UsageError):
    """A file of the wrong form; names the file and, if known, the line."""


class MismatchError(UsageError):
    """Two things that do not belong together; names both sides."""


class MissingPackageError(UsageError):
    """An optional package is absent; names the install line."""

    def __init__(self, package: str, why: str = "", install: str = "") -> None:
        need = f" {why}" if why else ""
        super().__init__(f"{package} is not installed{need}: pip install {install or package}")


class BackendError(RalleError):
    """A retriever, model, tool or endpoint failed during the work."""


class BackendMemoryError(BackendError):
    """A batch did not fit in memory; the loop halves it and tries again."""


class StoppedError(RalleError):
    """The user stopped the work; its finished part is kept."""

    exit_code = 130
