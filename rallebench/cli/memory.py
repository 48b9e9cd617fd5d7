"""``memory``: what a language model will take, told before it is loaded."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rallebench.cli.verbs import VERBS, workbench_of
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.memory import size


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a language model of this workspace or an encoder, or one written out",
    )
    parser.add_argument(
        "--context", type=int, metavar="N", help="tokens of prompt and answer (default: 2048)"
    )
    parser.add_argument("--batch", type=int, metavar="B", help="answers at once (default: 1)")


def _plain(value: Mapping[str, Any]) -> str:
    first = next(iter(value["quantization"].values()))
    free = f", {size(first['free'])} free on {first['device']}" if first["free"] is not None else ""
    lines = [
        f"{value['model']}: {first['parameters'] / 1e6:,.0f} million parameters; {first['batch']} × "
        f"{first['context']} tokens{free}"
    ]
    for name, one in value["quantization"].items():
        state = "does not fit" if not one["fits"] else "tight" if one["tight"] else "fits"
        mark = "*" if name == value["chosen"] else " "
        lines.append(
            f"{mark} {name:<5} needs {size(one['needs']):>8}: weights {size(one['weights'])}, cache "
            f"{size(one['cache'])}, while loading {size(one['loading'])} more; {state}"
        )
    return "\n".join([*lines, value["sentence"]])


@VERBS.register(
    "memory",
    about="what a language model or an encoder will take of memory, and whether it fits",
    example="rallebench memory 'transformers:/models/qwen?quantization=4bit' --context 4096 --batch 8",
    order=2,
    flags=_flags,
    plain=_plain,
)
def needs(args: argparse.Namespace) -> dict[str, Any]:
    """The need of a model in every quantisation, in bytes, beside what is free; loads nothing, asks no network."""
    for flag in ("context", "batch"):
        if getattr(args, flag) is not None and not 1 <= getattr(args, flag) <= 10_000_000:
            raise UsageError(
                f"--{flag} is {getattr(args, flag)}; it must be a whole number from 1 to 10000000."
            )
    workbench = workbench_of(args)
    found = workbench.loads.room_in_every_form(args.model, context=args.context, batch=args.batch)
    if not found:
        raise NotFoundError(
            f"Nothing here says what {args.model} needs: it is served elsewhere, built in, or not downloaded yet."
        )
    chosen = workbench.loads.quantization_of(args.model)
    forms = {form: room.as_json() for form, room in found.items()}
    return {
        "model": args.model,
        "chosen": chosen,
        "sentence": found[chosen].sentence,
        "quantization": forms,
    }
