"""Whom a request to OpenAI is charged to, where the environment says so."""

from __future__ import annotations

import os

from rallebench.http.addresses import is_openai

_VARIABLES = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


def account_headers(base_url: str) -> dict[str, str]:
    """OpenAI's own headers, for OpenAI's own server only."""
    if not is_openai(base_url):
        return {}
    said = {header: os.environ.get(variable, "").strip() for header, variable in _VARIABLES.items()}
    return {
        header: value
        for header, value in said.items()
        if value.isascii() and value.isprintable() and value
    }
