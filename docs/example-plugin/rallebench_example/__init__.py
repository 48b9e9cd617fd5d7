"""A metric, a retriever and a suite, which rallebench finds by the entry points in ``pyproject.toml``."""
