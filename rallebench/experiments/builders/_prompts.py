"""Prompts as files below ``prompts/making``, or one's own."""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.core.prompts import check_own, prompt_text


def read_prompts(maker: str, own: str, fields: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Prompt → its text without the blank lines around it. ``fields``: prompt, without .txt → what must stand in it in braces;
    ``own``: a folder with prompts of one's own, or ''. Raises BadFileError."""
    check_own(own, [f"{name}.txt" for name in fields])
    return {
        name: prompt_text(f"making/{maker}", f"{name}.txt", own, needed).strip()
        for name, needed in fields.items()
    }
