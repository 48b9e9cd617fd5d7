"""The one boundary for packed files: any fault inside becomes one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rallebench.core.errors import BadFileError, RalleError

MAX_RATIO, MAX_UNPACKED = 200, 2**30
"""A packed file is refused if it unpacks to more than this multiple of its size and also to more than this number of bytes.
Text packs to a third, very repetitive text to a fiftieth."""


@contextmanager
def unpacking(name: object, noun: str = "archive") -> Iterator[None]:
    """A block that reads a packed file, named as the user knows it. Raises BadFileError; disk errors pass unchanged.

    For a damaged member the libraries raise almost anything; for a damaged stream, OSError without a number.
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
