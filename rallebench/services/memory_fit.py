"""Check before loading whether a model fits into free memory, and suggest a remedy if it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rallebench.checkpoints.memory import TIGHT, MemoryNeed, free_on
from rallebench.core.entries import LLMEntry
from rallebench.core.memory import Memory, size
from rallebench.llms import LLMS
from rallebench.workspace.ralle_settings import with_environment


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """The memory that a model needs and the free memory in bytes (``free``: None if unknown).

    ``others``: smaller quantization → its need. ``held``: memory of each loaded model.
    """

    name: str
    need: MemoryNeed
    free: int | None
    others: Mapping[str, MemoryNeed]
    held: Mapping[str, Memory]

    @property
    def fits(self) -> bool:
        """True if the model can be loaded now, or if the free memory is unknown."""
        return self.free is None or self.need.to_load <= self.free

    @property
    def tight(self) -> bool:
        """True if it can be loaded, but with little memory left for answers."""
        return self.free is not None and self.fits and self.need.total > TIGHT * self.free

    @property
    def sentence(self) -> str:
        """One line: the need, the free memory, and a remedy if that is not enough.

        >>> need = MemoryNeed(4_000_000_000, 100_000_000, 0, 2_000_000_000, "bfloat16", "cpu", 2048, 1)
        >>> MemoryFit("big", need, 11_200_000_000, {}, {}).sentence
        'big needs about 4.1 GB RAM (bfloat16), 11.2 GB are free.'
        >>> MemoryFit("big", need, 3_000_000_000, {}, {"old": Memory(2_000_000_000)}).sentence
        'big needs about 4.0 GB RAM (bfloat16), but only 3.0 GB are free: unload old, which holds 2.0 GB.'
        """
        kind = self.need.kind
        if self.free is None:
            return f"{self.name} needs about {self.need}."
        if not self.fits:
            need = f"{size(self.need.to_load)} {kind} ({self.need.form})"
            return (
                f"{self.name} needs about {need}, but only {size(self.free)} are free: {self.mend}."
            )
        tight = f" That is tight: {self.mend} if answers run out of memory." if self.tight else ""
        return f"{self.name} needs about {self.need}, {size(self.free)} are free.{tight}"

    @property
    def mend(self) -> str:
        """The remedy: a smaller quantization, unloading another model, or a smaller model."""
        free = self.free or 0
        ways = []
        smaller = [
            (form, need) for form, need in self.others.items() if need.to_load <= TIGHT * free
        ]
        if smaller:
            form, need = smaller[0]
            ways.append(f"choose quantization {form}, which needs about {size(need.total)}")
        holders = sorted(
            ((self._reclaimable(held), name) for name, held in self.held.items()), reverse=True
        )
        if (
            holders
            and holders[0][0] + free >= self.need.to_load
            and holders[0][0] > 0.02 * self.need.total
        ):
            ways.append(f"unload {holders[0][1]}, which holds {size(holders[0][0])}")
        return " or ".join(ways) or "take a smaller model, or close other programs"

    def to_json(self) -> dict[str, Any]:
        """Return every figure in bytes."""
        parts = ("form", "device", "parameters", "weights", "cache", "context", "batch")
        figures = {part: getattr(self.need, part) for part in (*parts, "loading", "first_use")}
        own = {name: getattr(self, name) for name in ("free", "fits", "tight", "sentence")}
        return {"model": self.name, **figures, "needs": self.need.total, **own}

    def _reclaimable(self, held: Memory) -> int:
        return {"cpu": held.ram, "auto": held.ram + held.vram}.get(self.need.device, held.vram)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model to load. ``need``: its need in each of its ``quantizations``, largest first; ``chosen``: one of these."""

    name: str
    quantizations: tuple[str, ...]
    chosen: str
    need: Callable[[str], MemoryNeed | None]


def candidate(
    name: str, entry: LLMEntry, *, context: int | None = None, batch: int | None = None
) -> Candidate | None:
    """Return the language model of an entry; None if it uses no memory on this machine."""
    traits = LLMS.entry(entry.backend).traits if entry.backend in LLMS else {}
    needs = traits.get("need")
    if needs is None:
        return None
    settings = with_environment(entry).settings
    chosen = settings.get("quantization", "none")

    def need(quantization: str) -> MemoryNeed | None:
        if quantization == chosen:
            return needs(name, context, batch, **settings)  # type: ignore[no-any-return]
        return needs(name, context, batch, **{**_plain(settings), "quantization": quantization})  # type: ignore[no-any-return]

    return Candidate(name, tuple(traits.get("quantizations", ("none",))), chosen, need)


def memory_fit(model: Candidate, held: Mapping[str, Memory]) -> MemoryFit | None:
    """Compare a model's need with the free memory; None if the need is unknown.

    Loads nothing and uses no network. Raises UsageError for wrong settings.
    """
    need = model.need(model.chosen)
    if need is None:
        return None
    forms = model.quantizations
    less = forms[forms.index(model.chosen) + 1 :] if model.chosen in forms else ()
    others = {form: other for form in less if (other := model.need(form))}
    return MemoryFit(model.name, need, free_on(need.device), others, held)


def in_every_form(model: Candidate, held: Mapping[str, Memory]) -> dict[str, MemoryFit]:
    """Quantization → fit, for every quantization of the model; {} if ``memory_fit`` is None."""
    fits = {form: memory_fit(replace(model, chosen=form), held) for form in model.quantizations}
    return {form: fit for form, fit in fits.items() if fit is not None}


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without those specific to one quantization."""
    return {
        key: value
        for key, value in settings.items()
        if not key.startswith(("bnb_4bit_", "llm_int8_"))
    }
