"""Every error that a user can cause: one sentence that says what is wrong and how to mend it.

::

    RalleError
    ├── UsageError            the request was wrong; nothing was done        (exit code 2)
    │   ├── TemplateError     a template asks for what it may not or cannot have
    │   ├── NotFoundError     a name that is not registered, saved or loaded
    │   ├── BadFileError      a file that cannot be read as what it should be
    │   ├── MismatchError     two things that were not made for each other
    │   └── MissingPackageError   an optional package is absent
    ├── BackendError          a retriever, model or endpoint failed           (exit code 1)
    │   └── BackendMemoryError the batch was too large; the loop halves it
    └── StoppedError          the user stopped it                             (exit code 130)

Anything else is a bug and keeps its traceback.
"""

from __future__ import annotations


class RalleError(Exception):
    """Prints as it is: ``str(error)`` is the sentence for the user."""

    exit_code = 1


class UsageError(RalleError):
    """The request was wrong: a flag, a name, a value. Nothing was done."""

    exit_code = 2


class TemplateError(UsageError):
    """A template is malformed, names a variable that is not there, or asks for what is refused."""


class NotFoundError(UsageError):
    """A name that nobody knows, or that is not loaded."""


class BadFileError(UsageError):
    """A file that cannot be read as what it should be; names the file and, where known, the line."""


class MismatchError(UsageError):
    """Two things that do not belong together; names both sides."""


class MissingPackageError(UsageError):
    """An optional package is absent; names the install line."""

    def __init__(self, package: str, why: str = "", install: str = "") -> None:
        need = f" {why}" if why else ""
        super().__init__(f"{package} is not installed{need}: pip install {install or package}")


class BackendError(RalleError):
    """A retriever, model, tool or endpoint failed while working."""


class BackendMemoryError(BackendError):
    """A batch did not fit in memory; the loop halves it and tries again."""


class StoppedError(RalleError):
    """The user stopped the work; what was finished is kept."""

    exit_code = 130
