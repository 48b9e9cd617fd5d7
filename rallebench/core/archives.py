"""The one boundary for packed files: whatever is wrong inside, one sentence says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rallebench.core.errors import BadFileError, RalleError


@contextmanager
def unpacking(name: object, noun: str = "archive") -> Iterator[None]:
    """A block that reads the packed file that the user knows by this name or path. Raises BadFileError; errors of the disk pass.

    The libraries raise almost anything for a damaged member, and OSError without a number for a damaged stream.
    """
    try:
        yield
    except RalleError:
        raise
    except NotImplementedError as error:
        raise BadFileError(
            f"{name} is packed by a method that is not read here ({_reason(error)}); unpack it yourself."
        ) from None
    except RuntimeError as error:
        if "password" in str(error) or "encrypted" in str(error):
            raise BadFileError(f"{name} needs a password; unpack it yourself.") from None
        raise _damage_error(name, noun, error) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damage_error(name, noun, error) from None
    except Exception as error:
        raise _damage_error(name, noun, error) from None


def _damage_error(name: object, noun: str, error: Exception) -> BadFileError:
    return BadFileError(
        f"{name} is a damaged {noun} ({_reason(error)}); copy or download it again."
    )


def _reason(error: Exception) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    return line[:120] or type(error).__name__
