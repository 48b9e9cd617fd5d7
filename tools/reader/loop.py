"""The training loop: AdamW, a rate that rises briefly, stays, and falls in a straight line by step; checkpoints."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, MismatchError
from rallebench.core.files import writing
from tools.reader.batches import Batch, batches_of
from tools.reader.examples import MIXED, Paragraphs, Stage, groups_of

WARM_UP = 60
"""Steps in which the rate rises."""

CLIP = 1.0
DECAY = 0.01


@dataclass(frozen=True, slots=True)
class Settings:
    """``bfloat16``: products of the layers are rounded to it; the weights
    that are learned stay float32. ``every``: steps between checkpoints."""

    seed: int = 1
    device: str = "cpu"
    bfloat16: bool = False
    every: int = 100
    stages: tuple[Stage, ...] = (MIXED,)


@dataclass(frozen=True, slots=True)
class Progress:
    """After a step: its number in its stage, that stage's number of steps and of tokens up to it, the mean
    loss since the last report (0 where a checkpoint was taken up), and tokens a second."""

    stage: str
    step: int
    steps: int
    tokens: int
    loss: float = 0.0
    speed: float = 0.0


def rate_at(step: int, stage: Stage) -> float:
    """The learning rate of a step (0-based): it rises, stays, and falls along the lowest of the stage's lines.

    A line is (the step at which it meets zero, the steps it takes from full height). The last one may be added
    while a run goes on, to end it sooner: what was learned so far stays as it is.

    >>> stage = replace(MIXED, rate=1.0, falls=((1700, 1530), (1000, 765)))
    >>> [round(rate_at(s, stage), 2) for s in (0, 29, 59, 170, 299, 650, 999)]
    [0.02, 0.5, 1.0, 1.0, 0.92, 0.46, 0.0]
    """
    return stage.rate * min(
        (step + 1) / WARM_UP, 1.0, *((end - step) / over for end, over in stage.falls)
    )


def loss_of(scores: Any, batch: Any) -> Any:
    """The mean over groups of −log P(start) − log P(end), each over all places of a group's windows and "none".

    ``scores``: (windows, tokens, 2); "none" is the score of each window's first token. ``batch``: a Batch of
    tensors.
    """
    import torch

    groups = scores.shape[0] // batch.size
    scores = scores - scores[:, :1]
    scores = scores.masked_fill(~batch.inside.unsqueeze(-1), -1e4).reshape(groups, -1, 2)
    # "None" becomes the last place of a group.
    scores = torch.cat([scores, scores.new_zeros(groups, 1, 2)], 1)
    none = scores.shape[1] - 1
    first = torch.where(batch.first < 0, none, batch.first)
    last = torch.where(batch.last < 0, none, batch.last)
    cross_entropy = torch.nn.functional.cross_entropy
    return cross_entropy(scores[..., 0], first) + cross_entropy(scores[..., 1], last)


def train(
    network: Any, paragraphs: Paragraphs, settings: Settings, folder: Path
) -> Iterator[Progress]:
    """Train ``network`` in place, stage after stage; a checkpoint in ``folder`` is taken up where it ended.

    A head of zeros is drawn anew; one that is trained already stays."""
    import torch

    torch.manual_seed(settings.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    if not network.head.weight.any():
        torch.nn.init.normal_(network.head.weight, std=0.02)
    network.to(settings.device).train()
    network.bert.embeddings.requires_grad_(False)
    weights = [p for p in network.parameters() if p.requires_grad]
    for number, stage in enumerate(settings.stages):
        rng = random.Random(f"{settings.seed} {number} mixed")  # as the shipped weights were drawn
        batches = batches_of(groups_of(paragraphs, stage, rng), stage.tokens, rng)
        optimizer = torch.optim.AdamW(
            weights, lr=stage.rate, weight_decay=DECAY, betas=(0.9, 0.98), eps=1e-6
        )
        yield from _stage(network, weights, optimizer, stage, batches, settings, folder, number)


def _stage(
    network: Any,
    weights: Sequence[Any],
    optimizer: Any,
    stage: Stage,
    batches: Sequence[Batch],
    settings: Settings,
    folder: Path,
    number: int,
) -> Iterator[Progress]:
    import torch

    path = folder / f"stage-{number}-{stage.name}.pt"
    key = json.dumps(
        [len(batches), settings.seed, settings.bfloat16, repr(replace(stage, falls=()))]
    )
    batches = batches[: min(end for end, _ in stage.falls)]
    rates = [rate_at(step, stage) for step in range(len(batches))]
    begin = _resumed(path, network, optimizer, key, rates, settings.device)
    read = [0, *accumulate(int(batch.mask.sum()) for batch in batches)]
    if begin:
        yield Progress(stage.name, begin, len(batches), read[begin])
    total, since, started = 0.0, 0, time.monotonic()
    for step in range(begin, len(batches)):
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        batch = _tensors(batches[step], settings.device)
        with torch.autocast(settings.device, torch.bfloat16, enabled=settings.bfloat16):
            scores = network(batch.ids, batch.types, batch.mask)
        loss = loss_of(scores.float(), batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, CLIP)
        optimizer.step()
        total, since = total + float(loss.detach()), since + 1
        done = step + 1
        if done % settings.every == 0 or done == len(batches):
            _save(path, network, optimizer, rates[:done], done == len(batches), key)
            speed = (read[done] - read[begin]) / (time.monotonic() - started)
            yield Progress(stage.name, done, len(batches), read[done], total / since, speed)
            total, since = 0.0, 0


def _tensors(batch: Batch, device: str) -> Any:
    import torch

    def moved(values: Any) -> Any:
        return torch.from_numpy(values).to(device)

    return Batch(
        batch.size,
        *(
            moved(getattr(batch, name))
            for name in ("ids", "types", "mask", "inside", "first", "last")
        ),
    )


def _save(
    path: Path, network: Any, optimizer: Any, rates: Sequence[float], ended: bool, key: str
) -> None:
    import torch

    state = {
        "rates": list(rates),
        "key": key,
        "network": {
            k: v for k, v in network.state_dict().items() if not k.startswith("bert.embeddings.")
        },
        "optimizer": {} if ended else optimizer.state_dict(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as file:
        torch.save(state, file)


def _resumed(
    path: Path, network: Any, optimizer: Any, key: str, rates: Sequence[float], device: str
) -> int:
    """Load a checkpoint, if there is one; the number of steps that are done.

    It may be of a run that was to end at another step, if its rates up to here are those of this one.
    """
    import torch

    if not path.is_file():
        return 0
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except Exception:  # torch names no error for a file that is not whole
        raise BadFileError(f"The checkpoint {path} is damaged; delete it.") from None
    done = len(state["rates"])
    if (
        state["key"] != key
        or state["rates"] != list(rates[:done])
        or (done < len(rates) and not state["optimizer"])
    ):
        raise MismatchError(
            f"The checkpoint {path} is of another run (other data, seed, rates or settings); give another --work folder."
        )
    network.load_state_dict(state["network"], strict=False)
    if state["optimizer"]:
        optimizer.load_state_dict(state["optimizer"])
    return done
