"""Variables of a ``.env`` file for this process: those of known libraries, and keys of models.

The real environment wins. Proxies and addresses of hubs are ignored, because a file that came with a folder could use them
to send requests elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.versions import optional

ENV_FILE = ".env"
KNOWN = frozenset(
    [
        "OPENAI_API_KEY",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "HF_TOKEN",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_HUB_OFFLINE",
        "MLFLOW_TRACKING_URI",
        "MLFLOW_TRACKING_USERNAME",
        "MLFLOW_TRACKING_PASSWORD",
        "MLFLOW_TRACKING_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_DEFAULT_REGION",
        "PGPASSWORD",
        "MILVUS_TOKEN",
        "RALLEBENCH_AUTH",
        "RALLEBENCH_API_KEY",
        "CUDA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
    ]
)
"""Variables that rallebench and its libraries read."""

MAX_BYTES = 1_000_000
_KEY = re.compile(r"api[_-]key[_-]env\"?'?\s*[:=\s]\s*\"?'?([A-Z_][A-Z0-9_]*)")
_SECRET = re.compile(r"[A-Z0-9_]*(KEY|TOKEN|SECRET|PASSWORD)")
"""Names of keys. A folder of someone else may name any variable in its model entries, such as LD_PRELOAD."""


def key_variables(texts: Iterable[str]) -> frozenset[str]:
    """Return the variables that texts name as holders of a key, if they are named like one. The texts are entries of models
    or words of a command.

    >>> sorted(key_variables(['{"api_key_env": "MY_KEY"}', "openai_compatible:m?api_key_env=OTHER_TOKEN&x=1"]))
    ['MY_KEY', 'OTHER_TOKEN']
    >>> sorted(key_variables(["--api-key-env PYTHONPATH"]))
    []
    """
    names = (name for text in texts for name in _KEY.findall(text))
    return frozenset(name for name in names if _SECRET.fullmatch(name))


def named_variables(words: Sequence[str], workspace: Path) -> frozenset[str]:
    """Return the variables that a command and the model entries of a workspace name."""
    texts = [" ".join(words)]
    with contextlib.suppress(OSError):  # the command that needs the entries reports the reason
        texts.append((workspace / "llms.json").read_text(encoding="utf-8", errors="replace"))
    return key_variables(texts)


def load_env_file(path: Path, named: Iterable[str] = ()) -> tuple[str, ...]:
    """Set the known or ``named`` variables of an env file that are not set yet; return their names.

    Raises BadFileError for a file with a line that is not NAME=value; then nothing is set.
    """
    if not path.is_file():
        return ()
    accepted = KNOWN | frozenset(named)
    new = {
        name: value
        for name, value in read_env_file(path).items()
        if name in accepted and name not in os.environ
    }
    os.environ.update(new)
    return tuple(new)


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of an env file; ``${OTHER}`` in a value is text. Raises BadFileError, which never quotes a
    value."""
    parser = optional("dotenv.parser", "python-dotenv", f"but needed to read {path}")
    mend = "correct the line, or move the file away."
    try:
        with open(path, "rb") as handle:
            content = handle.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise BadFileError(
            f"{path} could not be read: {error.strerror or error}; change its permissions, or move it away."
        ) from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadFileError(f"{path}, line {line} is not UTF-8 text; {mend}") from None
    if len(content) > MAX_BYTES or "\0" in text:
        raise BadFileError(f"{path} is not a list of NAME=value lines; move the file away.")
    values: dict[str, str] = {}
    for binding in parser.parse_stream(io.StringIO(text)):
        if binding.error or (binding.key is not None and binding.value is None):
            blank = len(binding.original.string) - len(binding.original.string.lstrip("\n"))
            raise BadFileError(
                f"{path}, line {binding.original.line + blank} is not NAME=value, or its quote does not end; {mend}"
            )
        if binding.key is not None:
            values[binding.key] = binding.value
    return values
