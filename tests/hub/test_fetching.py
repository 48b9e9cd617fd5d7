"""Files of the hub from a stand-in on loopback: pinned, cached, refused in a sentence, stopped without remains."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from stand_in_hub import TOKEN, StandInHub

from rallebench.core.errors import BackendError, NotFoundError, RalleError, StoppedError, UsageError
from rallebench.core.events import Progress, complete
from rallebench.core.hub_names import parse_hub_name
from rallebench.core.stopping import Stop, obeying
from rallebench.hub.fetching import Fetched, fetch, open_fetched

pytestmark = pytest.mark.slow
CARD = {"configs": [{"config_name": "sea", "data_files": [{"split": "dev", "path": "data/dev*"}, {"split": "train", "path": "data/train*"}]}]}  # fmt: skip
FILES = {
    "README.md": b"---\nconfigs:\n- config_name: sea\n  data_files:\n  - split: dev\n    path: data/dev*\n  - split: train\n    path: data/train*\n---\n",
    "data/dev.csv": b"question,answer\nWhich sea?,Black Sea\n",
    "data/train-0.csv": b"question,answer\nWhich moon?,Titan\n",
    "data/train-1.csv": b"question,answer\nWhich ring?,A\n",
    "set.py": b"raise SystemExit('the code of a repository is never run')",
}  # fmt: skip


def fetch_files(text: str) -> Fetched:
    return complete(fetch(parse_hub_name(text)))


def remains(home: Path) -> list[str]:
    """Files of the cache that are not whole."""
    return [path.name for path in home.rglob("*") if "incomplete" in path.name]


def test_a_split_is_fetched_pinned_and_not_asked_for_again(hub: StandInHub, tmp_path: Path) -> None:
    commit = hub.add("owner/set", FILES, card=CARD)
    first = fetch_files("hf:owner/set?split=dev")
    assert first.origin == f"hf:owner/set?config=sea&split=dev&revision={commit}"
    [(path, file)] = first.files
    assert path == "data/dev.csv" and file.read_bytes() == FILES[path]
    assert not any("train" in path or path.endswith(".py") for path in hub.paths())
    hub.add("owner/set", {**FILES, "data/dev.csv": b"question\nAnother?\n"}, card=CARD)
    before = len(hub.paths("HEAD"))
    assert fetch_files(first.origin) == first, "a commit does not change"
    assert len(hub.paths("HEAD")) == before
    assert fetch_files("hf:owner/set?split=dev").files[0][1].read_bytes() == b"question\nAnother?\n"


def test_shards_lie_in_one_folder_with_the_names_of_the_repository(hub: StandInHub) -> None:
    hub.add("owner/set", FILES, card=CARD)
    with open_fetched(fetch_files("hf:owner/set?split=train")) as folder:
        files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.csv")}
    assert files == {path: FILES[path] for path in ("data/train-0.csv", "data/train-1.csv")}
    assert not folder.exists()


def test_a_dataset_made_by_a_script_is_read_from_its_conversion(hub: StandInHub) -> None:
    hub.add("owner/made", {"made.py": b"raise SystemExit", "README.md": b""})
    with pytest.raises(
        UsageError, match=r"is made by a script \(made\.py\), which is never run here"
    ):
        fetch_files("hf:owner/made?split=dev")
    converted = {"default/dev/0000.parquet": b"PAR1", "default/partial-train/0000.parquet": b"PAR1"}
    commit = hub.add("owner/made", converted, revision="refs/convert/parquet")
    made = fetch_files("hf:owner/made?split=dev")
    assert (
        made.origin == f"hf:owner/made?config=default&split=dev&revision={commit}"
        and not made.partial
    )
    assert fetch_files(made.origin) == made
    assert fetch_files("hf:owner/made?split=train").partial


def test_the_token_goes_to_the_hub_alone(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub.add("owner/set", FILES, card=CARD, access="private")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text(TOKEN)  # of another program, which is not used
    with pytest.raises(NotFoundError, match="or it is private; set HF_TOKEN in the environment"):
        fetch_files("hf:owner/set?split=dev")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with StandInHub() as cdn:
        hub.cdn = cdn.url
        assert (
            fetch_files("hf:owner/set?split=dev").files[0][1].read_bytes() == FILES["data/dev.csv"]
        )
        assert cdn.paths() and {token for *_, token in cdn.requests} == {""}
    assert f"Bearer {TOKEN}" in {token for *_, token in hub.requests}
    cached = [p for p in (tmp_path / "home").rglob("*") if p.is_file() and p.name != "token"]
    assert not any(TOKEN.encode() in path.read_bytes() for path in cached)


REFUSALS: list[tuple[str, str, type[RalleError], str]] = [
    ("", "hf:owner/none", NotFoundError, "There is no dataset 'owner/none' on http://127.0.0.1"),
    ("", "hf:owner/set?split=test", NotFoundError, "has no split 'test'. Its splits: dev, train"),
    ("", "hf:owner/set?split=dev&config=land", NotFoundError, "has no configuration 'land'. Its configurations: sea"),
    ("", "hf:owner/set?split=dev&revision=v9", NotFoundError, "has no revision 'v9'; give a branch"),
    ("gated", "hf:owner/set?split=dev", UsageError, r"is gated: accept its terms at http.*/datasets/owner/set, and set HF_TOKEN"),
    ("disabled", "hf:owner/set?split=dev", UsageError, "has been disabled"),
]  # fmt: skip


@pytest.mark.parametrize(
    "access, name, kind, sentence", REFUSALS, ids=[x[3][:30] for x in REFUSALS]
)
def test_what_cannot_be_had_is_one_sentence(
    access: str, name: str, kind: type[RalleError], sentence: str, hub: StandInHub
) -> None:
    hub.add("owner/set", FILES, card=CARD, access=access)
    with pytest.raises(kind, match=sentence) as caught:
        fetch_files(name)
    assert str(caught.value).count("\n") == 0 and type(caught.value) is kind


FAULTS: list[tuple[str, Any, str]] = [
    ("silent", True, "does not answer; try again later"),
    ("status", 503, r"failed for owner/set \(status 503\); try again later"),
    ("status", 429, "limits the number of requests"),
    ("foreign", True, "does not answer as a Hugging Face hub does"),
]


@pytest.mark.parametrize("attribute, value, sentence", FAULTS, ids=[x[2][:20] for x in FAULTS])
def test_a_hub_that_does_not_answer_is_one_sentence(
    attribute: str, value: Any, sentence: str, hub: StandInHub
) -> None:
    hub.add("owner/set", FILES, card=CARD)
    setattr(hub, attribute, value)
    with pytest.raises(BackendError, match=sentence) as caught:
        fetch_files("hf:owner/set?split=dev")
    assert hub.url in str(caught.value)


def test_a_hub_that_is_not_there_is_one_sentence(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BackendError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        fetch_files("hf:owner/set")


def test_nothing_is_asked_while_the_hub_is_off_and_the_cache_serves(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("owner/set", FILES, card=CARD)
    first = fetch_files("hf:owner/set?split=dev")
    asked = len(hub.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fetch_files("hf:owner/set?split=dev") == first == fetch_files(first.origin)
    with pytest.raises(NotFoundError, match="owner/other is not in the cache of this machine"):
        fetch_files("hf:owner/other")
    with pytest.raises(NotFoundError, match=r"no split 'train'|is not in the cache|only in part"):
        fetch_files("hf:owner/set?split=train")
    assert len(hub.requests) == asked


def test_progress_begins_at_once_and_counts_bytes(hub: StandInHub) -> None:
    hub.add("owner/set", {"data/dev.csv": b"x" * 2**20})
    hub.pace = 0.1
    events = list(fetch(parse_hub_name("hf:owner/set")))
    assert events[0].message == "asking for owner/set"
    counts = [event.done for event in events if event.total == 2**20]
    assert counts == sorted(counts) and counts[-1] == 2**20 and len({*counts}) > 2


@pytest.mark.parametrize("way", ["stop", "close"])
def test_a_stop_ends_a_download_at_once_and_nothing_is_half_written(
    way: str, hub: StandInHub, tmp_path: Path
) -> None:
    hub.add("owner/set", {"data/dev.csv": b"x" * 2**22})
    hub.stall_after = 2**20
    stop = Stop()
    operation = fetch(parse_hub_name("hf:owner/set"))
    with obeying(stop):
        events = []
        for event in operation:
            events.append(event)
            if event.total:
                assert hub.sending.wait(10)
                break
        begun = time.monotonic()
        if way == "close":
            operation.close()
        else:
            threading.Timer(0.5, stop.set).start()
            with pytest.raises(StoppedError):
                complete(operation)
        assert time.monotonic() - begun < 4
    assert any(isinstance(event, Progress) for event in events) and remains(tmp_path / "home") == []
    hub.stall_after = None
    assert fetch_files("hf:owner/set").files[0][1].stat().st_size == 2**22


def test_a_hub_that_falls_silent_within_a_file_is_one_sentence(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "1")
    hub.add("owner/set", {"data/dev.csv": b"x" * 2**21})
    hub.stall_after = 2**20
    with pytest.raises(BackendError, match=r"does not answer|connection broke"):
        fetch_files("hf:owner/set")
    assert remains(tmp_path / "home") == []


def test_a_disk_without_room_is_told_before_a_byte_is_fetched(hub: StandInHub) -> None:
    hub.add("owner/set", {"data/dev.csv": b"x"})
    listed = hub.repos["owner/set"].commits
    commit = hub.repos["owner/set"].revisions["main"]
    listed[commit] = {"data/dev.csv": Huge()}
    with pytest.raises(BackendError, match=r"takes 1000000.0 GB, and .* are free on the disk"):
        fetch_files("hf:owner/set")
    assert not any("resolve" in path for path in hub.paths("HEAD"))


class Huge(bytes):
    """Bytes that claim a length of a petabyte."""

    def __len__(self) -> int:
        return 10**15
