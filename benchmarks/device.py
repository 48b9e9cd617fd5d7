"""The speed of a graphics card: a large model in bfloat16, 8 and 4 bit, the embedded encoder, and the reader's network.

The large model is a random Llama of the shape of Llama 3 8B, except for its vocabulary, which is that of the starter;
it is made on the device and written into a temporary folder of 14 GB (``TMPDIR`` says where; ``--layers`` makes it
smaller). It answers a prompt of 200 words in batches of 1, 8 and 32, in every form. The memory that it took stands
beside the estimate that the product gives before the load. The encoder stands beside ``model.encode`` of
sentence-transformers on the same device, and both beside the processor. The product runs the embedded reader on the
processor only, so its network alone is measured here.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import _report
import encoding
import transformers_batch
from _report import Fact, Measure, Report

from rallebench.encoders import ENCODERS
from rallebench.encoders.minilm import WEIGHTS_SHA256, model_folder
from rallebench.llms import LLMS

LARGE = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
FORMS = {"none": "bfloat16", "8bit": "8 bit", "4bit": "4 bit"}
BATCHES = (1, 8, 32)
WORDS = 200
TOKENS = 48
PASSAGES = 20_000
PROMPTS = 100
TOGETHER = 65_536
"""Tokens that the reader's network reads at once on a device where it is to be kept busy."""


def measure_model(
    where: Path, device: str, words: int, tokens: int, rounds: int, report: Report
) -> None:
    """Memory and tokens a second of a model in every form."""
    import torch

    text = " ".join(list(_report.starter_words())[:words])
    whole: dict[int, list[float]] = {}
    short = 0
    for form, name in FORMS.items():
        settings = {"model": str(where), "device_map": device, "dtype": "bfloat16"}
        settings["quantization"] = form
        need = LLMS.entry("transformers").traits["need"](
            "large", words + tokens, BATCHES[-1], **settings
        )
        before = _allocated(device)
        load: Callable[..., Any] = LLMS["transformers"]
        took, llm = _report.timed(partial(load, "large", **settings))
        held = llm.memory.vram if device == "cuda" else llm.memory.ram
        report.measures += [
            Measure(f"{name}: load", "s", [took.wall]),
            Measure(f"{name}: memory", "MB", [held / 1e6], [need.resident / 1e6], "the estimate"),
        ]
        for rows in BATCHES:
            requests = transformers_batch.requests([text] * rows, tokens)
            llm.generate(transformers_batch.requests([text] * rows, 2))
            speeds = []
            for _ in range(rounds):
                took, replies = _report.timed(partial(llm.generate, requests))
                written = sum(reply.completion_tokens for reply in replies)
                short += written != rows * tokens
                speeds.append(written / took.wall)
            bare = whole.setdefault(rows, speeds)
            label = f"{name}: tokens a second in batches of {rows}"
            report.measures.append(Measure(label, "", speeds, bare, "bfloat16"))
        if device == "cuda":
            peak = (torch.cuda.max_memory_allocated() - before) / 1e6
            estimate = [(need.resident + need.cache) / 1e6]
            label = f"{name}: most memory while answering {BATCHES[-1]} at once, or loading"
            report.measures.append(Measure(label, "MB", [peak], estimate, "weights and cache"))
        llm.close()
    report.facts.append(Fact("batches that ended early", short, 0))


def _allocated(device: str) -> int:
    """Bytes that torch holds on the device; the highest mark begins anew."""
    import torch

    if device != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats()
    return int(torch.cuda.memory_allocated())


def measure_encoder(device: str, texts: Sequence[str], rounds: int, report: Report) -> None:
    """Passages a second of MiniLM on the device, in its numeric types, beside the library at its defaults."""
    from sentence_transformers import SentenceTransformer

    folder = str(model_folder())
    ours = ENCODERS["sentence_transformers"](model=folder, device=device)
    library = SentenceTransformer(folder, device=device, local_files_only=True)
    some = list(texts)
    for dtype in ("float32", *ours.fast_dtypes):
        speeds, bare = [], []
        encoding.encoded(ours, dtype, some[:512])
        library.encode(some[:512])
        for _ in range(rounds):
            took, _vectors = _report.timed(partial(library.encode, some))
            bare.append(len(some) / took.wall)
            took, _vectors = _report.timed(partial(encoding.encoded, ours, dtype, some))
            speeds.append(len(some) / took.wall)
        label = f"encoder on {device} in {dtype}: passages a second"
        report.measures.append(Measure(label, "", speeds, bare, "model.encode"))


def measure_reader(device: str, count: int, rounds: int, report: Report) -> None:
    """Five-passage prompts a second through the network, one at a time as in a chat, and many together."""
    import _reader_sets
    import numpy as np
    import torch

    from rallebench.reader import delta
    from rallebench.reader.network import build
    from rallebench.reader.spans import WEIGHTS, load
    from rallebench.reader.windows import BATCH_TOKENS, make_batches

    loaded = load("float32")
    tasks = _reader_sets.prompts_of(_reader_sets.sets_of(None, count, loaded)[0], "five")
    prompts = [loaded.windows(task) for task in tasks]
    every = [window for windows in prompts for window in windows]
    network = build(model_folder(), delta.read(WEIGHTS, WEIGHTS_SHA256)[0]).to(device).eval()
    on_device = lambda array: torch.from_numpy(array).to(device)  # noqa: E731

    def scores(windows: Sequence[Any], tokens: int) -> dict[int, Any]:
        read: dict[int, Any] = {}
        with torch.inference_mode():
            for batch in make_batches(windows, tokens):
                output = network(*map(on_device, (batch.ids, batch.types, batch.mask)))
                read.update(zip(batch.rows, output.cpu().numpy()))
        return read

    for dtype in ("float32", "bfloat16"):
        with torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16"):
            scores(prompts[0], BATCH_TOKENS)
            alone, together = [], []
            for _ in range(rounds):
                took, _ = _report.timed(
                    lambda: [scores(windows, BATCH_TOKENS) for windows in prompts]
                )
                alone.append(len(prompts) / took.wall)
                took, _ = _report.timed(lambda: scores(every, TOGETHER))
                together.append(len(prompts) / took.wall)
        label = f"the reader's network on {device} in {dtype}: prompts of five passages a second"
        report.measures.append(Measure(label, "", alone))
        report.measures.append(Measure(f"{label}, all together", "", together))
    length = len(prompts[0][0].ids)
    expected, actual = loaded.scores(prompts[0])[0], scores(prompts[0], BATCH_TOKENS)[0]
    gap = np.abs(expected[:length] - actual[:length])
    report.facts.append(
        Fact("the network's scores on the device are the processor's", bool(gap.max() < 0.01), True)
    )


def main() -> int:
    """Measure and print."""
    import torch

    flags = _report.parser(__doc__, rounds=3)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    flags.add_argument(
        "--device", default=default, choices=("cuda", "cpu"), help=f"default: {default}"
    )
    flags.add_argument("--layers", type=int, default=32, metavar="N", help="of the large model")
    flags.add_argument("--threads", type=int, default=_report.THREADS, metavar="N")
    arguments: argparse.Namespace = flags.parse_args()
    torch.set_num_threads(arguments.threads)
    quick, device, rounds = arguments.quick, arguments.device, arguments.rounds
    shape = {**LARGE, "num_hidden_layers": arguments.layers}
    if quick:
        shape, rounds = transformers_batch.SMALL, 1
    name = torch.cuda.get_device_name() if device == "cuda" else "processor"
    report = Report(
        "device", {"device": name, "torch": torch.__version__, "layers": shape["num_hidden_layers"]}
    )
    texts = encoding.passages(8 if quick else PASSAGES, [])
    for kind in dict.fromkeys((device, "cpu")):
        measure_encoder(kind, texts[: None if kind == "cuda" else 300], rounds, report)
    measure_reader(device, 1 if quick else PROMPTS, rounds, report)
    with tempfile.TemporaryDirectory() as folder:
        where = transformers_batch.write_model(Path(folder), shape, "bfloat16", device)
        measure_model(where, device, *((8, 2) if quick else (WORDS, TOKENS)), rounds, report)
    return report.tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
