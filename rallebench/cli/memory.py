"""``memory``: estimate the memory of a model before loading it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from rallebench.cli.flags import flag
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.tables import Column, Table
from rallebench.render.numbers import text
from rallebench.services.memory_fit import MemoryFit

MAX_FLAG_VALUE = 10_000_000
COLUMNS = (
    Column("form"),
    *(Column(label, "bytes") for label in ("needs", "weights", "cache", "while loading")),
    Column("state"),
)


@VERBS.register(
    "memory",
    about="what a language model or an encoder will take of memory, and whether it fits",
    example="rallebench memory 'transformers:/models/qwen?quantization=4bit' --context 4096 --batch 8",
    order=2,
    flags=(
        flag(
            "model", "MODEL", "a language model of this workspace or an encoder, or one written out"
        ),
        flag("--context", "N", "tokens of prompt and answer (default: 2048)", type=int),
        flag("--batch", "B", "answers at once (default: 1)", type=int),
    ),
)
def memory(args: argparse.Namespace) -> Result:
    """Estimate the memory of a model in bytes for every quantization, next to the free memory. Loads nothing and
    needs no network.
    """
    for name, value in (("context", args.context), ("batch", args.batch)):
        if value is not None and not 1 <= value <= MAX_FLAG_VALUE:
            raise UsageError(
                f"--{name} is {value}; it must be a whole number from 1 to {MAX_FLAG_VALUE}."
            )
    loads = open_workbench(args).models
    rooms = loads.room_in_every_form(args.model, context=args.context, batch=args.batch)
    if not rooms:
        raise NotFoundError(
            f"Nothing here says what {args.model} needs: it is served elsewhere, built in, or not downloaded yet."
        )
    chosen = loads.loaded_quantization(args.model)
    value = {
        "model": args.model,
        "chosen": chosen,
        "sentence": rooms[chosen].sentence,
        "quantization": {form: room.to_json() for form, room in rooms.items()},
    }
    sentence = rooms[chosen].sentence
    return Result(value, (_head(args.model, rooms), _table(chosen, rooms), sentence))


def _head(model: str, rooms: Mapping[str, MemoryFit]) -> str:
    first = next(iter(rooms.values()))
    need = first.need
    free = f", {text(first.free, 'bytes')} free on {need.device}" if first.free else ""
    return f"{model}: {need.parameters / 1e6:,.0f} million parameters; {need.batch} × {need.context} tokens{free}"


def _table(chosen: str, rooms: Mapping[str, MemoryFit]) -> Table:
    rows = []
    for name, room in rooms.items():
        state = "does not fit" if not room.fits else "tight" if room.tight else "fits"
        form, need = f"{'*' if name == chosen else ' '} {name}", room.need
        rows.append((form, need.total, need.weights, need.cache, need.loading, state))
    return Table("", COLUMNS, tuple(rows))
