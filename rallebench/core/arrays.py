"""Arrays in ``.npy`` files, ours or a user's: memory-mapped, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, overload

from rallebench.core.errors import BadFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scalar = TypeVar("Scalar", bound=np.generic)


@overload
def load_array(path: Path, dtype: type[Scalar], ndim: int | None = None) -> NDArray[Scalar]: ...
@overload
def load_array(path: Path) -> NDArray[np.generic]: ...
def load_array(
    path: Path, dtype: type[np.generic] | None = None, ndim: int | None = None
) -> NDArray[np.generic]:
    """The array of a file, memory-mapped for reading. Raises BadFileError.

    numpy parses the header as Python text, so a damaged header raises almost anything. Arrays of objects, which hold
    pickled code, are refused. ``dtype`` and ``ndim``: the required ones.
    """
    import numpy as np

    try:
        array: NDArray[np.generic] = np.load(path, mmap_mode="r", allow_pickle=False)
        shape = array.shape
    except FileNotFoundError:
        raise BadFileError(f"{path} does not exist.") from None
    except Exception as error:
        known = isinstance(error, (OSError, ValueError)) and str(error)
        why = " ".join(str(error).split())[:120] if known else "its header is damaged"
        raise BadFileError(
            f"{path} is not a complete array of numbers in numpy's format ({why})."
        ) from None
    if ndim is not None and len(shape) != ndim:
        raise BadFileError(
            f"{path} holds an array with {len(shape)} dimensions; {ndim} are needed."
        )
    if dtype is not None and array.dtype != np.dtype(dtype):
        raise BadFileError(f"{path} holds {array.dtype} values; {np.dtype(dtype)} are needed.")
    return array
