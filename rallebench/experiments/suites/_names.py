"""How a suite, its runs and what they load are called."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import NotFoundError
from rallebench.core.types import Action, Chain
from rallebench.experiments.suites import SUITES, Part

LONGEST_NAME, LONGEST_RUN = 60, 90


def run_name(name: str, label: str) -> str:
    """The name of a part's run; labels that differ never give one name.

    >>> run_name("night", "noise=0.2")
    'night noise=0.2'
    """
    return _folder_name(f"{name} {label}", LONGEST_RUN)


def default_name(suite: str, words: Sequence[str], limit: int | None) -> str:
    """What a suite's runs are called if nothing is said: the same request, the same name.

    >>> default_name("rgb-noise", ["en_fact", "my-llm"], 5)
    'rgb-noise en_fact my-llm first 5'
    """
    many = [] if limit is None else [f"first {limit}"]
    return _folder_name(" ".join(filter(None, [suite, *words, *many])), LONGEST_NAME)


def name_of(suite: str, llm: str, settings: Mapping[str, Any], limit: int | None) -> str:
    """The default name of a request, from the model, those settings that most suites have, and those of the suite's
    trait ``named_by``.

    >>> name_of("rgb-noise", "my-llm", {"data": "/data/rgb", "language": "auto", "set": "en_fact"}, None)
    'rgb-noise en_fact my-llm'
    """
    named = str(settings.get("set") or Path(str(settings.get("data", ""))).name.split(".json")[0])
    language = str(settings.get("language", "")).replace("auto", "")
    own = SUITES.entry(suite).traits.get("named_by", ())
    told = [
        re.sub(r"[^,=]*[/\\]|\.jsonl?(\.gz)?\b", "", str(settings[key]))
        for key in own
        if settings.get(key)
    ]
    return default_name(suite, [language, named, *told, llm], limit)


def named_backends(part: Part) -> Chain:
    """What a part is to have loaded, in the form in which a workbench is asked to load."""
    llms = (Action("generate", "-", target=llm) for llm in dict.fromkeys(part.llms))
    retrievers = (Action("retrieve", "-", target=name) for name in dict.fromkeys(part.retrievers))
    return Chain(part.workflow, (*llms, *retrievers))


def check_file(path: Path, what: str, flag: str = "--guess") -> None:
    """Raise NotFoundError unless ``path`` is a file; ``what`` it should hold."""
    if path.is_dir():
        inside = sorted(file.name for file in path.iterdir() if file.is_file())
        some = f" It holds {', '.join(inside[:3])}{' …' * (len(inside) > 3)}." if inside else ""
        raise NotFoundError(
            f"{path} is a folder; name the file that holds {what}: {flag} {path / 'FILE'}.{some}"
        )
    if not path.is_file():
        raise NotFoundError(f"{path} does not exist; it should hold {what}.")


def _folder_name(whole: str, most: int) -> str:
    """``whole`` if it can be a folder's name of ``most`` bytes; else what can, and a mark of the rest."""
    plain = re.sub(r"[^\w\-. ()+=,@]+", "-", whole).strip(" .")
    if plain == whole and len(plain.encode()) <= most:
        return plain
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:4]
    return f"{plain.encode()[: most - 5].decode('utf-8', 'ignore').rstrip(' .')} {mark}"
