"""Errors of transformers, torch and the hub, each as one sentence with advice."""

from __future__ import annotations

import logging

from rallebench.checkpoints.files import damaged_weights
from rallebench.checkpoints.memory import LESS
from rallebench.core.errors import (
    BackendError,
    BackendMemoryError,
    BadFileError,
    NotFoundError,
    RalleError,
    UsageError,
)

log = logging.getLogger(__name__)

_NO_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cublas_status_alloc_failed",
)
_NO_PLACE = ("offloaded to the disk", "dispatched on the CPU or the disk")
_NO_NETWORK = {
    "LocalEntryNotFoundError",
    "OfflineModeIsEnabled",
    "ConnectError",
    "ConnectionError",
    "OfflineError",
}


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether torch, CUDA or Python ran out of memory."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in _NO_MEMORY)


def loading_failed(
    error: Exception, name: str, where: str, revision: str | None = None
) -> RalleError:
    """Return the error for a failed load of the model ``name`` from the folder or hub id ``where``."""
    text = str(error)
    if isinstance(error, RalleError):
        return error
    if is_out_of_memory(error) or any(words in text for words in _NO_PLACE):
        return BackendMemoryError(f"{name!r} does not fit into memory; {LESS}.")
    if sentence := _not_this_model(error, text, where) or _hub_refused(error, where, revision):
        return sentence
    log.exception("loading %s failed", where, exc_info=error)
    reason = text.strip().splitlines()[0] if text.strip() else repr(error)
    return BackendError(f"{name!r} could not be loaded from {where}: {reason}")


def check_reachable(model: str) -> None:
    """Raise BackendError for a hub id that is not cached while the hub is switched off."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise _out_of_reach(model)


def _out_of_reach(model: str) -> BackendError:
    return BackendError(
        f"{model} is neither a folder here nor in the local Hugging Face cache, and the hub cannot be "
        "reached; give the folder of a downloaded model, or connect (and unset HF_HUB_OFFLINE)."
    )


def _not_this_model(error: Exception, text: str, where: str) -> RalleError | None:
    """Return the error for unusable files, or None for any other failure."""
    kind = type(error).__name__
    if "trust_remote_code" in text:
        return UsageError(
            f"{where} contains Python code, which runs only with your consent; read it, and if you trust "
            "it set trust_remote_code to true, or choose another model."
        )
    if "does not recognize this architecture" in text:
        import transformers

        return UsageError(
            f"transformers {transformers.__version__} does not know the architecture of {where}; "
            "upgrade it (pip install --upgrade transformers) or choose another model."
        )
    if "Unrecognized configuration class" in text:
        return UsageError(
            f"{where} is not a causal or encoder–decoder model; choose a model that generates text."
        )
    if "ignore_mismatched_sizes" in text:
        return BadFileError(
            f"The weights in {where} do not have the shapes in its config.json, so they belong to "
            "different models; download the model again."
        )
    if (
        "attention implementation" in text
        or "attn_implementation" in text
        or "Flash Attention" in text
    ):
        return UsageError(
            f"{where} does not support this attn_implementation; set it to auto "
            f"({text.strip().split('. ')[0]})."
        )
    if "SafetensorError" in kind or "UnpicklingError" in kind:
        return damaged_weights(where)
    if "backend tokenizer" in text:
        return BadFileError(
            f"{where} contains no readable tokenizer; copy the model's tokenizer.json and "
            "tokenizer_config.json into it (old models also need: pip install sentencepiece)."
        )
    return None


def _hub_refused(error: BaseException, model: str, revision: str | None) -> RalleError | None:
    """Return the error of the Hugging Face hub, or None for any other failure."""
    kinds: set[str] = set()
    link: BaseException | None = error
    while link is not None:  # transformers wraps the hub's own errors
        kinds |= {kind.__name__ for kind in type(link).__mro__}
        link = link.__cause__ or link.__context__
    if "GatedRepoError" in kinds:
        return BackendError(
            f"{model} requires you to accept its licence: do so on its Hugging Face page and log in "
            "(hf auth login), or download it elsewhere and give the folder."
        )
    if "RevisionNotFoundError" in kinds:
        return NotFoundError(
            f"{model} has no revision {revision!r} on the Hugging Face hub; check its name."
        )
    if kinds & {"RepositoryNotFoundError", "HFValidationError"}:
        return NotFoundError(
            f"{model} is neither a folder here nor a model on the Hugging Face hub; check it."
        )
    if kinds & _NO_NETWORK:
        return _out_of_reach(model)
    return None
