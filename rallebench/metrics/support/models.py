"""Support models in folders: their settings, their public format and their labels, read from config.json alone.

======================  ==========================================  =======================================
format                  kind of model                               published examples
======================  ==========================================  =======================================
nli                     sequence classification of (passage, claim) NLI models, cross-encoders, HHEM-1.0
minicheck               sequence classification or T5               MiniCheck, arXiv:2404.10774
autoais                 T5 that writes 1 or 0                       TRUE, arXiv:2204.04991, as in ALCE
lettucedetect           token classification                        LettuceDetect, arXiv:2502.17125
hhem                    T5 encoder, first token                     HHEM-2.1-Open
======================  ==========================================  =======================================

No Python code of a folder is ever run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rallebench.checkpoints.files import cached_folder, has_weights, model_folder
from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.files import read_object
from rallebench.core.settings import check_values, dataclass_form, declare, parse_settings
from rallebench.core.types import Json

NLI, MINICHECK, AUTOAIS, LETTUCEDETECT, HHEM = FORMATS = (
    "nli",
    "minicheck",
    "autoais",
    "lettucedetect",
    "hhem",
)
SUPPORTING = frozenset(
    (
        "entailment",
        "entailed",
        "entails",
        "entail",
        "supported",
        "supports",
        "support",
        "consistent",
        "faithful",
        "factual",
        "grounded",
        "attributable",
        "verified",
        "yes",
        "true",
        "1",
    )
)
"""Labels, in lower case, that mean support."""
OPPOSED = frozenset(
    ("hallucinated", "hallucination", "unsupported", "inconsistent", "not_entailment")
)
"""Labels of which the other one of two means support."""
PUBLISHED_PLACES: Mapping[str, int] = {MINICHECK: 1, LETTUCEDETECT: 0, HHEM: 1}
"""Format → the published number of the label for support, where labels have no names."""


@dataclass(frozen=True, slots=True)
class SupportModelSettings:
    """Settings of a support model, after ``?`` and joined by ``&``."""

    format: str = declare(
        str, "auto", choices=("auto", *FORMATS), about="how the model reads; auto reads config.json"
    )
    supported: str = declare(str, "", about="the label that means support")
    above: float | None = declare(
        float, None, 0.0, 1.0, about="least probability of a supported sentence; 0.5 by default"
    )
    base: str = declare(
        str, "", about="folder of flan-t5-base, on which HHEM-2.1 is built", names="checkpoint"
    )
    max_length: int = declare(
        int, 0, 0, 1_000_000, about="tokens of passage and sentence; 0 = the model's own limit"
    )
    dtype: str = declare(str, "auto", choices=("auto", "float32", "bfloat16"))
    device: str = declare(str, "auto", about="auto, cpu, cuda, cuda:1 …")


@dataclass(frozen=True, slots=True)
class SupportModel:
    """A support model, not loaded. ``labels``: their names in order; ``place``: the number of the one that means support.
    With one label the model gives a score, and ``place`` is 0. ``folder`` holds the weights, ``base`` the tokenizer."""

    option: str
    folder: Path
    base: Path
    format: str
    architecture: str
    labels: tuple[str, ...]
    place: int
    settings: SupportModelSettings

    @property
    def threshold(self) -> float:
        """The least probability of a supported sentence."""
        return 0.5 if self.settings.above is None else self.settings.above


def read_support_model(option: str) -> SupportModel:
    """Read the settings and the configuration of ``FOLDER?KEY=VALUE&…``; loads nothing.

    Raises UsageError, NotFoundError or BadFileError with the mend.
    """
    head, _, query = option.strip().partition("?")
    pairs = parse_settings(unquote(pair) for pair in query.split("&") if pair)
    # a label may look like a number
    pairs = {key: str(value) if key == "supported" else value for key, value in pairs.items()}
    form = dataclass_form(SupportModelSettings)
    settings = SupportModelSettings(**check_values("support model", form, pairs))
    folder = _find_folder(head)
    config: Json = read_object(folder / "config.json")
    architecture = str(next(iter(config.get("architectures") or ()), "")) or "nothing named"
    chosen = _choose_format(head, settings.format, architecture, config)
    if chosen != HHEM:
        _check_needs_no_code(folder, config)
    base = _find_base(head, settings.base, config) if chosen == HHEM else folder
    labels = ("hallucinated", "consistent") if chosen == HHEM else _read_labels(config)
    is_seq2seq = architecture.endswith("ForConditionalGeneration")
    labels = ("0", "1") if is_seq2seq else labels
    place = _find_supported(head, chosen, labels, settings)
    return SupportModel(option, folder, base, chosen, architecture, labels, place, settings)


def _find_folder(model: str) -> Path:
    folder = model_folder("support", model)
    if folder is None:
        folder = cached_folder(model)
        if folder is None or not has_weights(folder):
            raise NotFoundError(
                f"{model!r} is neither a folder with a support model nor one in the local Hugging Face cache; give the folder "
                "that holds its config.json and weights."
            )
    return folder


def _find_base(model: str, base: str, config: Json) -> Path:
    name = base or str(config.get("foundation") or "google/flan-t5-base")
    folder = Path(name).expanduser()
    if not (folder / "config.json").is_file():
        cached = cached_folder(name)
        if cached is None:
            raise NotFoundError(
                f"{model} holds weights alone: the configuration and tokenizer of {config.get('foundation') or 'its base'} are "
                f"needed; give that model's folder, as in {model}?base=/models/flan-t5-base."
            )
        folder = cached
    return folder


def _choose_format(model: str, requested: str, architecture: str, config: Json) -> str:
    """Return the format of a model. Raises UsageError if it has none, or another than ``requested``."""
    if architecture.startswith("HHEMv2") or "HHEMv2" in str(config.get("model_type")):
        fits: tuple[str, ...] = (HHEM,)
    elif architecture.endswith("ForSequenceClassification"):
        fits = (NLI, MINICHECK)
    elif architecture.endswith("ForTokenClassification"):
        fits = (LETTUCEDETECT,)
    elif architecture.endswith("ForConditionalGeneration"):
        fits = _name_t5(model, requested, config)
    else:
        raise UsageError(
            f"{model} is a {architecture}, which has no labels of support; give a model for sequence or token "
            "classification, such as an NLI model, MiniCheck or LettuceDetect."
        )
    if requested not in ("auto", *fits):
        raise UsageError(
            f"{model} is a {architecture}, which does not read the format {requested}; its format is {' or '.join(fits)}."
        )
    return fits[0] if requested == "auto" else requested


def _name_t5(model: str, requested: str, config: Json) -> tuple[str, ...]:
    if requested in (MINICHECK, AUTOAIS):
        return (MINICHECK, AUTOAIS)
    known = f"{Path(model).name} {config.get('_name_or_path', '')}".lower()
    if "minicheck" in known:
        return (MINICHECK, AUTOAIS)
    if "true_nli" in known or "true-nli" in known:
        return (AUTOAIS, MINICHECK)
    raise UsageError(
        f"{model} writes text, and its config.json does not say how it reads passage and claim; name its format, as in "
        f"{model}?format=minicheck or {model}?format=autoais."
    )


def _check_needs_no_code(folder: Path, config: Json) -> None:
    """Raise UsageError for a model that only Python code of its folder could load."""
    if not config.get("auto_map"):
        return
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    if config.get("model_type") not in CONFIG_MAPPING_NAMES:
        raise UsageError(
            f"{folder} needs its own Python code (auto_map in config.json), and no code of a model's folder is run; choose a "
            "support model of an architecture that transformers knows."
        )


def _read_labels(config: Json) -> tuple[str, ...]:
    """Return the names of the labels by number."""
    named = config.get("id2label")
    if isinstance(named, Mapping) and named:
        try:
            return tuple(str(label) for _, label in sorted((int(k), v) for k, v in named.items()))
        except ValueError:
            raise BadFileError(
                "The id2label of the support model's config.json has keys other than numbers; download the model again."
            ) from None
    count = config.get("num_labels", 2)
    return tuple(f"LABEL_{i}" for i in range(count if isinstance(count, int) else 2))


def _find_supported(
    model: str, chosen: str, labels: Sequence[str], settings: SupportModelSettings
) -> int:
    """Return the number of the label that means support. Raises UsageError if nothing says which."""
    listed = ", ".join(labels)
    if len(labels) == 1:
        if settings.above is None:
            raise UsageError(
                f"{model} gives one number and no label. If it is the logit of support, say from which probability on a "
                f"sentence counts as supported, as in {model}?above=0.5; a re-ranker's number is not one."
            )
        return 0
    low = [label.strip().lower() for label in labels]
    if settings.supported:
        requested = settings.supported.strip().lower()
        if requested not in low:
            raise UsageError(
                f"{model} has no label {settings.supported!r}; it has {listed}. Name one of these after supported=."
            )
        return low.index(requested)
    known = [i for i, label in enumerate(low) if label in SUPPORTING]
    if len(known) == 1:
        return known[0]
    opposed = [i for i, label in enumerate(low) if label in OPPOSED]
    if len(labels) == 2 and len(opposed) == 1:
        return 1 - opposed[0]
    anonymous = all(label.startswith("label_") for label in low)
    named = settings.format != "auto" and anonymous
    if len(labels) == 2 and chosen in PUBLISHED_PLACES and (named or chosen == HHEM):
        return PUBLISHED_PLACES[chosen]
    raise UsageError(
        f"{model} has the labels {listed}, and none of them is known to mean support; name the one that does, as in "
        f"{model}?supported={labels[0]}."
    )


def check_support_model(option: str) -> None:
    """Raise an error unless ``option`` is a support model whose configuration can be read."""
    read_support_model(option)


def model_settings() -> dict[str, Any]:
    """Return the form of the settings."""
    return dict(dataclass_form(SupportModelSettings))
