"""Prompts as files below ``prompts/making``, or one's own."""

from __future__ import annotations

from rallebench.core.prompts import prompt_text


def read_prompt(maker: str, name: str, own: str = "", fields: tuple[str, ...] = ()) -> str:
    """A maker's prompt file ``name``, see ``prompt_text``, without the blank lines around it. Raises BadFileError."""
    return prompt_text(f"making/{maker}", name, own, fields).strip()
