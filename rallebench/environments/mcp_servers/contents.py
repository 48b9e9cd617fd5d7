"""The result of a tool as the text of an observation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

NOTHING = "The tool returned nothing."
FAILED = "The tool failed: "


def result_text(result: CallToolResult, longest: int) -> str:
    """Return the texts of a result, with a line for each part that holds no text, cut to ``longest`` characters."""
    parts = list(filter(None, map(_part_text, result.content)))
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = cut("\n".join(parts) or NOTHING, longest)
    return f"{FAILED}{text}" if result.is_error else text


def cut(text: str, longest: int) -> str:
    """Return at most ``longest`` characters of a text, and say so.

    >>> cut("Titan and Triton", 5)
    'Titan … (the first 5 of 16 characters)'
    """
    if len(text) <= longest:
        return text
    return f"{text[:longest]} … (the first {longest:,} of {len(text):,} characters)"


def _part_text(part: ContentBlock) -> str:
    if part.type == "text":
        return part.text
    if part.type == "resource_link":
        return f"[resource {part.uri}: {part.description or part.title or part.name}]"
    if part.type != "resource":
        return _binary(f"{part.type}", part.mime_type, part.data)
    resource = part.resource
    text: str | None = getattr(resource, "text", None)
    if text is not None:
        return text
    kind = resource.mime_type or "unknown type"
    return _binary(f"resource {resource.uri}", kind, getattr(resource, "blob", ""))


def _binary(name: str, kind: str, base64: str) -> str:
    """Return the line for a part without text.

    >>> _binary("image", "image/png", "AAAA")
    '[image: image/png, 3 bytes]'
    """
    size = len(base64) * 3 // 4 - base64[-2:].count("=")
    return f"[{name}: {kind}, {size:,} bytes]"
