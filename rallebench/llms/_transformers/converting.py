"""Conversion of a GGUF file into a transformers folder: done once, cached under the file's SHA-256.

The folder holds configuration, tokenizer and unquantised weights, so it loads like any other model, in every
quantisation and on every device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from rallebench.checkpoints.failures import is_out_of_memory
from rallebench.checkpoints.gguf import (
    CONVERTED,
    SOURCE,
    GgufModel,
    gguf_file,
    gguf_model,
    serve_hint,
)
from rallebench.checkpoints.memory import free_on
from rallebench.core.errors import (
    BackendError,
    BackendMemoryError,
    BadFileError,
    RalleError,
    UsageError,
)
from rallebench.core.files import DiskError, disk_error, free_bytes, is_full, write_json
from rallebench.core.locks import turn
from rallebench.core.memory import forget_frames, release, size
from rallebench.core.parts import beside, move_in
from rallebench.llms._transformers.settings import TransformersSettings
from rallebench.llms.load_progress import counting, counting_tensors

FORM = 1
"""Version of the conversion; part of the folder's name."""

TOKENIZER_BYTES = 20_000_000
"""Disk space for tokenizer and configuration in bytes, enough for large vocabularies."""

COPIES = 2
"""Copies of the converted weights that transformers holds at once: the tensors it read, and the model. Measured."""


def model_in_file(name: str, settings: TransformersSettings) -> GgufModel | None:
    """Return the model of the settings if it is a GGUF file. Raises RalleError for an unusable file."""
    file = gguf_file(name, settings.model, settings.gguf_file)
    if file is None:
        return None
    model = gguf_model(file)
    if settings.chat_template in ("on", True) and not model.template:
        raise UsageError(
            f"{name!r}: {file} has no chat template; set chat_template to off, or "
            f"{serve_hint(file, ' --chat-template NAME')}."
        )
    return model


def convert_model(model: GgufModel, cache: Path) -> Generator[str, None, Path]:
    """Yield a line per step, and return the folder of the converted model. Raises RalleError.

    If two processes convert the same file, the second waits for the first.
    """
    yield f"Reading {model.path}"
    folder = cache / CONVERTED / f"{model.sha256[:32]}-{FORM}"
    if folder.is_dir():
        return folder
    _check_room(model, folder)
    message = f"waiting for another conversion of {model.path}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with turn(folder.with_name(f".{folder.name}.lock"), lambda _: message) as waiting:
            yield from waiting
            if not folder.is_dir():
                with beside(folder.parent, folder.name) as part:
                    yield from _convert(model, part)
                    write_json(part / SOURCE, {"file": str(model.path)})
                    move_in(part, folder)
    except OSError as error:
        raise _disk_error(model, folder, error) from error
    return folder


def _check_room(model: GgufModel, folder: Path) -> None:
    """Raise RalleError if the disk, or the RAM during the conversion, is too small."""
    needed = model.bytes + TOKENIZER_BYTES
    if needed > free_bytes(folder):
        raise _disk_error(model, folder, OSError("No space left on device"))
    free, memory = free_on("cpu"), COPIES * model.bytes
    if free is not None and memory > free:
        raise BackendMemoryError(
            f"The conversion of {model.path} needs about {size(memory)} RAM, but only {size(free)} are free; unload another "
            f"model, or {model.other_way}."
        )


def _disk_error(model: GgufModel, folder: Path, error: BaseException) -> DiskError:
    failed = disk_error(folder, error, "the converted model", model.bytes + TOKENIZER_BYTES)
    # a clause about the disk follows the last sentence
    sentence = str(failed).removesuffix(".")
    return DiskError(f"{sentence}; {model.other_way}.", hint=failed.hint)


def _convert(model: GgufModel, part: Path) -> Iterator[str]:
    """Write the converted model into the folder ``part``, yielding a line per step. Raises RalleError and OSError."""
    try:
        yield from _write_folder(model, part)
        return
    except Exception as error:
        failed = _conversion_error(model, error)
        forget_frames(error)
    release()
    raise failed


def _write_folder(model: GgufModel, part: Path) -> Iterator[str]:
    import torch
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForSeq2SeqLM,
        AutoTokenizer,
        GgufConfig,
    )

    where = {"pretrained_model_name_or_path": str(model.path.parent), "gguf_file": model.path.name}
    yield f"Converting {model.path} once: the configuration"
    config = AutoConfig.from_pretrained(**where)
    yield f"Converting {model.path} once: the tokenizer"
    AutoTokenizer.from_pretrained(**where).save_pretrained(part)
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    message = f"Converting {model.path} once: the weights as {model.dtype} ({size(model.bytes)})"
    yield message
    with counting_conversion(message), counting_tensors(message):
        weights, report = auto.from_pretrained(
            **where,
            config=config,
            dtype=getattr(torch, model.dtype),
            quantization_config=GgufConfig(dequantize=True),
            output_loading_info=True,
        )
    if missing := sorted(report["missing_keys"]):
        raise BadFileError(
            f"{model.path} lacks {len(missing)} tensors of a {config.model_type} language model (the first is "
            f"{missing[0]}), so it would answer at random; give a complete file, or {model.other_way}."
        )
    yield f"Converting {model.path} once: writing {size(model.bytes)}"
    weights.save_pretrained(part)
    del weights
    release()


@contextlib.contextmanager
def counting_conversion(message: str) -> Iterator[None]:
    """During the block, report ``message`` with the count of tensors that transformers reads from a GGUF file.

    transformers has no hook for this, only a tqdm bar.
    """
    from transformers import modeling_gguf_pytorch_utils as reading

    bar: Any = reading.tqdm
    reading.tqdm = lambda tensors, **_: counting(tensors, len(tensors), message)
    try:
        yield
    finally:
        reading.tqdm = bar


def _conversion_error(model: GgufModel, error: Exception) -> Exception:
    """Return the error of a failed conversion as a sentence; a disk's OSError is returned unchanged."""
    if isinstance(error, RalleError):
        return error
    if is_full(error):
        return error if isinstance(error, OSError) else OSError(str(error))
    text = " ".join(str(error).split())
    if is_out_of_memory(error):
        return BackendMemoryError(
            f"The conversion of {model.path} does not fit into memory; unload another model, or {model.other_way}."
        )
    if "not supported" in text or "does not recognize this architecture" in text:
        import transformers

        return UsageError(
            f"transformers {transformers.__version__} does not read the architecture {model.architecture} from a GGUF file, "
            f"or not its kind of weights; give the model's own folder, or {model.other_way}."
        )
    reason = text[:300].removesuffix(".") or repr(error)
    return BackendError(
        f"{model.path} could not be converted ({reason}); give the model's own folder, or {model.other_way}."
    )
