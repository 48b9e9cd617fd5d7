"""Any sentence-transformers model: a folder or a Hugging Face hub id, with its prompts.

Reimers and Gurevych 2019, arXiv:1908.10084. Only a hub id causes a download, and a model's own code runs only with
``trust_remote_code``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.checkpoints.failures import loading_failed
from rallebench.checkpoints.files import (
    cached_folder,
    content_hash,
    has_weights,
    model_folder,
    tensors,
    weight_files,
)
from rallebench.checkpoints.memory import ENCODER, MemoryNeed, encoder_need, mapped_device, note_use
from rallebench.checkpoints.packages import eight_bits, import_class, need_packages
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import read_json, sha256_file
from rallebench.core.memory import Memory, copy_mapped, read_mapped, release
from rallebench.core.settings import check_values, dataclass_form, declare
from rallebench.core.types import Json, digest
from rallebench.encoders import DTYPES, ENCODERS, Batches
from rallebench.encoders._engine import MAX_BATCH, TransformerEncoder
from rallebench.encoders.windows import WindowSource

POOLINGS = ("mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens")
_TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model", "*.tiktoken", "merges.txt")

_ROOT_FILES = ("config.json", "modules.json")
"""A model's folder contains at least one of these."""

ROLES = {"query": ("query",), "passage": ("passage", "document", "corpus")}
"""Role → names of its prompt in models."""

OWN = "own"
"""Marks a setting that is read from the model's folder."""


@dataclass(frozen=True)
class ModelSettings:
    """Settings of one model. A prompt of None is the model's own."""

    model: str = declare(
        str,
        "",
        required=True,
        about="a folder, or a hub id such as intfloat/e5-base-v2",
        names="checkpoint",
    )
    revision: str = declare(str, "", about="branch, tag or commit on the hub")
    query_prompt: str | None = declare(
        str, None, about="text before each query; default: the model's own"
    )
    passage_prompt: str | None = declare(
        str, None, about="text before each passage; default: the model's own"
    )
    max_tokens: int = declare(
        int, 0, 0, 1_000_000, about="longer texts are cut; 0 = the model's own limit"
    )
    pooling: str = declare(
        str, OWN, choices=(OWN, *POOLINGS), about="how token vectors are combined into one"
    )
    dtype: str = declare(
        str, "auto", choices=DTYPES, about="numeric type of passages; queries are float32"
    )
    device: str = declare(str, "auto", about="cpu, cuda, cuda:1 …")
    quantization: str = declare(
        str, "none", choices=("none", "8bit"), about="8bit: for queries, needs less memory"
    )
    batch: int = declare(int, MAX_BATCH, 1, 65_536, about="maximum number of texts at once")
    trust_remote_code: bool = declare(bool, False, about="run the model's own Python code")

    @property
    def name(self) -> str:
        """The reference without settings."""
        return f"sentence_transformers:{self.model}"


SETTINGS = dataclass_form(ModelSettings)


def read_settings(settings: Json) -> ModelSettings:
    """Return the checked settings of a model. Raises UsageError."""
    return ModelSettings(**check_values("encoder 'sentence_transformers'", SETTINGS, settings))


class SentenceTransformers(TransformerEncoder):
    """A loaded model. ``memory``: the memory it takes."""

    def __init__(self, model: Any, source: str, before: Memory, settings: ModelSettings) -> None:
        from sentence_transformers.sentence_transformer.modules import Pooling

        self.quantization: str = settings.quantization
        own, prompts = model.prompts or {}, dict[str, str]()
        requested = {"query": settings.query_prompt, "passage": settings.passage_prompt}
        for role, names in ROLES.items():
            prompt = requested[role]
            theirs = next((own[name] for name in names if own.get(name)), "")
            prompts[role] = theirs if prompt is None else prompt
        for name, module in list(model.named_children()):
            if isinstance(module, Pooling) and settings.pooling != OWN:
                model[int(name)] = Pooling(
                    module.embedding_dimension, pooling_mode=settings.pooling
                )
        most = int(model.max_seq_length or 512)
        tokens = min(most, settings.max_tokens) if settings.max_tokens else most
        super().__init__(
            settings.name,
            model.tokenizer,
            model,
            lambda model, features: model(features)["sentence_embedding"],
            tokens,
            int(model.get_embedding_dimension()),
            dtype=settings.dtype,
            prompts=prompts,
            batch=settings.batch,
        )
        poolings = [str(part.pooling_mode) for part in model if hasattr(part, "pooling_mode")]

        self.fingerprint = (
            f"sentence-transformers/{source}/{tokens}/{digest([poolings, tokens, prompts])[:12]}"
        )
        self.memory = memory_taken(model, before)

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """See ``BulkEncoder``. Raises UsageError for a model in 8-bit."""
        if self.quantization != "none":
            raise UsageError(
                f"The encoder {self.name!r} is loaded in {self.quantization}, which is for queries and changes "
                "vectors; build the index without quantization, then search it with quantization."
            )
        return super().bulk(dtype)


def memory_taken(model: Any, before: Memory) -> Memory:
    """Return the memory taken by an encoder loaded since ``before``, after reading all its weights."""
    read_mapped(model)
    release()
    note_use(ENCODER)
    return Memory.now() - before


def _load(settings: ModelSettings) -> tuple[Any, str, Memory]:
    """Return (model, identity of its content, memory of this process before). Raises RalleError."""
    need_packages(("sentence_transformers",), settings.quantization, "this encoder needs it")
    name = settings.name
    folder = _folder(name, settings.model)
    where = str(folder or settings.model)
    try:
        return _load_model(settings, folder, where)
    except Exception as error:
        sentence = loading_failed(error, name, where, settings.revision or None)
        error.with_traceback(None)  # its frames hold the partly loaded model
        raise sentence from None


def _load_model(
    settings: ModelSettings, folder: Path | None, where: str
) -> tuple[Any, str, Memory]:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    device = settings.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    more: dict[str, Any] = {"dtype": torch.float32}
    if settings.quantization == "8bit":
        import bitsandbytes  # noqa: F401 - now, so that its own memory is not counted as the model's

        more["quantization_config"] = eight_bits()
    import_class(str(_weights_folder(folder)) if folder else where)
    before = Memory.now()
    model = SentenceTransformer(
        where,
        device=device,
        trust_remote_code=settings.trust_remote_code,
        revision=settings.revision or None,
        local_files_only=folder is not None,
        model_kwargs=more,
    ).eval()
    if not isinstance(model[0], Transformer):
        raise UsageError(
            f"{where} is not a transformer model ({type(model[0]).__name__}); choose another model."
        )
    if folder is not None:
        _check_complete(model[0], _weights_folder(folder))
    if settings.quantization != "none":
        copy_mapped(model)
    if folder is not None:
        return model, _content(folder), before
    commit = getattr(model[0].auto_model.config, "_commit_hash", None)
    return model, f"{where}@{commit or settings.revision or 'main'}", before


def _folder(name: str, model: str) -> Path | None:
    """Return the model's folder, checked; None for a hub id. Raises BadFileError."""
    folder = Path(model).expanduser()
    inner = _weights_folder(folder) if folder.is_dir() else folder
    checked_folder = model_folder(name, str(inner) if inner != folder else model)
    if checked_folder is None:
        return None
    if not any(path for pattern in _TOKENIZERS for path in checked_folder.glob(pattern)):
        # transformers would invent a tokenizer without any words
        raise BadFileError(
            f"{checked_folder} contains no tokenizer; copy the model's tokenizer.json and tokenizer_config.json into it."
        )
    return folder.resolve()


def _weights_folder(folder: Path) -> Path:
    """Return the folder of the transformer: the folder itself, or its subfolder from modules.json."""
    if (folder / "modules.json").is_file() and not (folder / "config.json").exists():
        modules = read_json(folder / "modules.json")
        if isinstance(modules, list) and modules and isinstance(modules[0], dict):
            return folder / str(modules[0].get("path", ""))
    return folder


def _check_complete(transformer: Any, folder: Path) -> None:
    """Raise BadFileError if the weights lack tensors, which transformers fills with random numbers."""
    files = [file for file in weight_files(folder) if file.suffix == ".safetensors"]
    if not files:
        return
    stored = [tensor for file in files for tensor, *_ in tensors(file)]
    # a stored ``bert.a.b`` may be ``a.b`` in the model
    known = {".".join(name.split(".")[start:]) for name in stored for start in range(3)}
    named = [name for name, _ in transformer.auto_model.named_parameters()]
    needed = [name for name in named if not name.startswith("pooler.")]
    missing = sorted(set(needed) - known)
    # a name alone proves nothing: transformers translates the names of old checkpoints
    if missing and len(stored) < len(needed):
        raise BadFileError(
            f"The weights in {folder} lack {len(missing)} tensors of the model (the first is {missing[0]}), so its "
            "vectors would be random; download the model again."
        )


def _content(folder: Path) -> str:
    """Hash configuration, tokenizer, weights, and the modules after the transformer."""
    inner = _weights_folder(folder)
    parts = [
        (str(file.relative_to(folder)), sha256_file(file))
        for file in sorted(folder.glob("*/*"))
        if file.is_file() and file.parent != inner
        if file.suffix in (".json", ".safetensors", ".bin")
    ]
    whole = [content_hash(inner), parts]
    if (folder / "modules.json").is_file():
        whole.append(sha256_file(folder / "modules.json"))
    return f"sha256:{digest(whole)[:12]}"


def need(**settings: Any) -> MemoryNeed | None:
    """Estimate the memory of the encoder with these settings, without loading it; None if unknown."""
    chosen = read_settings(settings)
    folder = _folder(chosen.name, chosen.model)
    inner = _weights_folder(folder) if folder else cached_folder(chosen.model, chosen.revision)
    if inner is None:
        return None
    device = mapped_device(None) if chosen.device == "auto" else chosen.device
    return encoder_need(inner, quantization=chosen.quantization, device=device)


def to_fetch(**settings: Any) -> str:
    """Return the hub id to download before the encoder opens; '' if it is already here. Raises BadFileError."""
    chosen = read_settings(settings)
    model: str = chosen.model
    if _folder(chosen.name, model) is not None:
        return ""
    folders = (cached_folder(model, chosen.revision, file) for file in _ROOT_FILES)
    return (
        "" if any(folder and has_weights(_weights_folder(folder)) for folder in folders) else model
    )


def window(**settings: Any) -> WindowSource | None:
    """Return the window of the encoder with these settings; None for a model that is not downloaded yet."""
    chosen = read_settings(settings)
    name = chosen.name
    root = _folder(name, chosen.model)
    if root is None:
        revision = chosen.revision
        folders = (cached_folder(chosen.model, revision, file) for file in _ROOT_FILES)
        root = next(filter(None, folders), None)
    inner = _weights_folder(root) if root else None
    if root is None or inner is None or not (inner / "tokenizer.json").is_file():
        return None
    prompt = chosen.passage_prompt
    if prompt is None:
        stored = _json_object(root / "config_sentence_transformers.json").get("prompts") or {}
        prompt = next((stored[name] for name in ROLES["passage"] if stored.get(name)), "")
    own = _own_tokens(inner)
    return WindowSource(inner, min(own, chosen.max_tokens or own), str(prompt))


def _own_tokens(folder: Path) -> int:
    """Return the limit of a model, read from its files as sentence-transformers does."""
    config = _json_object(folder / "config.json")
    # models of RoBERTa's kind count positions after the padding token
    offset = (
        1 + int(config.get("pad_token_id") or 0)
        if "roberta" in str(config.get("model_type"))
        else 0
    )
    limits = (
        _json_object(folder / "sentence_bert_config.json").get("max_seq_length"),
        _json_object(folder / "tokenizer_config.json").get("model_max_length"),
        int(config.get("max_position_embeddings") or 0) - offset,
    )
    return int(min((limit for limit in limits if limit and limit > 0), default=512))


def _json_object(path: Path) -> dict[str, Any]:
    value = read_json(path) if path.is_file() else {}
    return value if isinstance(value, dict) else {}


@ENCODERS.register(
    "sentence_transformers",
    needs_model=True,
    form=SETTINGS,
    need=need,
    to_fetch=to_fetch,
    window=window,
)
def sentence_transformers(**settings: Any) -> SentenceTransformers:
    """Any sentence-transformers folder or hub id: sentence_transformers:MODEL?query_prompt=…"""
    values = read_settings(settings)
    return SentenceTransformers(*_load(values), values)
