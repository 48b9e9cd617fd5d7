"""``memory``: what a model needs, before it is loaded."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rallebench.cli.flags import flag
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.tables import Column, Table
from rallebench.render.numbers import text

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
    """The need of a model in every quantisation, in bytes, beside what is free; loads nothing, asks no network."""
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
    return Result(value, (_head(value), _table(value), value["sentence"]))


def _head(value: Mapping[str, Any]) -> str:
    first = next(iter(value["quantization"].values()))
    free = f", {text(first['free'], 'bytes')} free on {first['device']}" if first["free"] else ""
    return (
        f"{value['model']}: {first['parameters'] / 1e6:,.0f} million parameters; {first['batch']} × "
        f"{first['context']} tokens{free}"
    )


def _table(value: Mapping[str, Any]) -> Table:
    rows = []
    for name, room in value["quantization"].items():
        state = "does not fit" if not room["fits"] else "tight" if room["tight"] else "fits"
        form = f"{'*' if name == value['chosen'] else ' '} {name}"
        sizes = (room[part] for part in ("needs", "weights", "cache", "loading"))
        rows.append((form, *sizes, state))
    return Table("", COLUMNS, tuple(rows))
