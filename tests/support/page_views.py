"""What tests of the page's places do without a browser."""

from __future__ import annotations

import re
from typing import Any


def texts(html: str) -> str:
    """The words of some HTML, without its elements."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def ended(page: Any, kind: str, name: str) -> Any:
    """A job of the page, once it has ended."""
    job = page.workbench.jobs.get(kind, name)
    assert job is not None and job.wait(60)
    return job
