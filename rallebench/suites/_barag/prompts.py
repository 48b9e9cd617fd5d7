"""The study's prompts, and its judge's: files of one's own, or the shipped ones."""

from __future__ import annotations

from pathlib import Path

from rallebench.errors import BadFileError
from rallebench.judges import JUDGES
from rallebench.judges.truthfulness import JudgePrompt
from rallebench.workflows.barag import Prompts
from rallebench.workspace import prompts_folder

AGENTS, JUDGE = "suites/barag", "judges"


def text_of(name: str, shipped: str, own: str = "", fields: tuple[str, ...] = ()) -> str:
    """A prompt file of the folder ``own``, or of ``prompts/shipped`` where it has none. ``fields``: what must stand in it in
    braces. Raises BadFileError."""
    if own and not Path(own).expanduser().is_dir():
        raise BadFileError(f"{own} is no folder of prompts; it may hold {name} and its kin.")
    path = Path(own).expanduser() / name
    if not (own and path.is_file()):
        path = prompts_folder() / shipped / name
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"The prompt {path} cannot be read ({error}).") from None
    for field in fields:
        if f"{{{field}}}" not in text:
            raise BadFileError(f"The prompt {path} lacks {{{field}}}.")
    return text


def agent_prompts(own: str = "") -> Prompts:
    """What the agents send. Raises BadFileError."""
    names = ("naive-system.txt", "basic-system.txt", "basic-decide.txt", "advanced-decide.txt")
    return Prompts(*(text_of(name, AGENTS, own) for name in names))


def judge_prompt(own: str = "") -> JudgePrompt:
    """What the judge of truthfulness and relevance is sent. Raises BadFileError."""
    files = JUDGES.entry("truthfulness-relevance").traits["prompts"]
    return JudgePrompt(*(text_of(name, JUDGE, own, fields) for name, fields in files.items()))
