"""Losses of an index build that is killed (SIGKILL) at half of its passages and run again.

The build runs in a process of its own that tells every batch of passages it has encoded. The vectors
and the exact index of the killed and repeated build have to equal, bit for bit, the results of an undisturbed build
in a separate workspace.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

BUILD_SECONDS = 1800
"""Seconds after which a build that does not end is given up."""
WORDS = 24
"""In a passage: short ones, so that many are encoded in little time."""


def write_corpus(path: Path, count: int) -> None:
    """``count`` different passages made of pieces of the starter's corpus, as TSV."""
    words = [word for word in _report.starter_words() if word]
    with open(path, "w", encoding="utf-8") as out:
        for number in range(count):
            start = number * 7 % (len(words) - WORDS)
            text = " ".join(words[start : start + WORDS - number % 11])
            out.write(f"p{number}\t{text} {number}\tPassage {number}\n")


def child(folder: Path, encoder: str) -> int:
    """Build the index ``folder/indexes/built``; print how far the encoding is, batch by batch."""
    from rallebench.workspace.indexes.build import build_index
    from rallebench.workspace.indexes.recipes import index_recipe

    recipe = index_recipe(folder.parent / "corpus.tsv", "flat", encoder=encoder)
    for event in build_index(folder / "indexes", "built", recipe):
        if event.message == "encoding passages":
            print(event.done, flush=True)
    return 0


@dataclass(frozen=True)
class Session:
    """One process: passages that were encoded already when it began, and when it ended; its seconds."""

    encoded_before: int
    done: int
    seconds: float
    exit_code: int


def run(folder: Path, encoder: str, kill_at: int = 0) -> Session:
    """Run one process to its end, or kill it as soon as it has encoded ``kill_at`` passages."""
    encoded = finished(folder)
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--build",
        str(folder),
        "--encoder",
        encoder,
    ]
    started, done = time.perf_counter(), encoded
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=_report.child_environment()
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            done = max(done, int(line))
            if kill_at and done >= kill_at:
                process.kill()
        code = process.wait(BUILD_SECONDS)
    return Session(encoded, done, time.perf_counter() - started, code)


def finished(folder: Path) -> int:
    """Passages in finished shards."""
    from rallebench.workspace.indexes.vectors import kept_vectors

    return sum(shard.passages_done for shard in kept_vectors(folder / "cache" / "vectors"))


def contents(folder: Path) -> dict[str, str]:
    """sha256 of the vectors, of the index's files, and its fingerprint."""
    (vectors,) = folder.glob("cache/vectors/*/vectors.npy")
    built = folder / "indexes" / "built"
    manifest: dict[str, Any] = json.loads((built / "manifest.json").read_text(encoding="utf-8"))
    files = {name: sha256((built / name).read_bytes()).hexdigest() for name in manifest["files"]}
    whole = sha256(vectors.read_bytes()).hexdigest()
    return {"vectors": whole, "fingerprint": manifest["fingerprint"], **files}


def measure(folder: Path, count: int, encoder: str, rounds: int) -> Report:
    """Undisturbed builds, and builds that are killed at half and run again."""
    from rallebench.workspace.indexes.vectors import SHARD

    write_corpus(folder / "corpus.tsv", count)
    calm: list[Session] = []
    killed: list[tuple[Session, Session]] = []
    same = []
    for number in range(rounds):
        undisturbed, harried = folder / f"calm-{number}", folder / f"harried-{number}"
        calm.append(run(undisturbed, encoder))
        killed.append((run(harried, encoder, kill_at=count // 2), run(harried, encoder)))
        same.append(contents(undisturbed) == contents(harried))
    twice = [first.done - second.encoded_before for first, second in killed]
    return Report(
        "kill_encoding",
        {
            "passages": count,
            "shard": SHARD,
            "killed at": count // 2,
            "encoder": encoder,
            "kind": "flat",
        },
        [
            Measure(
                "passages encoded twice", "passages", [float(n) for n in twice], most=float(SHARD)
            ),
            Measure(
                "time in both sessions",
                "s",
                [first.seconds + second.seconds for first, second in killed],
                [session.seconds for session in calm],
                "an undisturbed build",
            ),
        ],
        [
            Fact(
                "killed in the middle",
                all(0 < f.done < count and f.exit_code != 0 for f, _ in killed),
                True,
            ),
            Fact(
                "something was kept", all(second.encoded_before > 0 for _, second in killed), True
            ),
            Fact("at most one shard was encoded twice", all(n <= SHARD for n in twice), True),
            Fact("vectors and index equal those built in one go", all(same), True),
        ],
        [
            f"encoded when killed: {[f.done for f, _ in killed]}; kept: {[s.encoded_before for _, s in killed]}"
        ],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=1)
    flags.add_argument("--passages", type=int, default=6000, metavar="N")
    flags.add_argument("--encoder", default="", metavar="E", help="default: minilm?dtype=float32")
    flags.add_argument(
        "--build", type=Path, metavar="FOLDER", help="what the measured process does"
    )
    arguments = flags.parse_args()
    if arguments.build:
        return child(arguments.build, arguments.encoder)
    count, encoder = arguments.passages, arguments.encoder or "minilm?dtype=float32"
    if arguments.quick:
        count, encoder = 5000, arguments.encoder or "hashing"
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), count, encoder, arguments.rounds).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
