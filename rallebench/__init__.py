"""rallebench: build a retrieval-augmented chain step by step, prove it, track it, chat with it."""

__version__ = "0.1.0"
