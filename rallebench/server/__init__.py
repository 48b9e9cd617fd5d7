"""A chain as an OpenAI-compatible endpoint."""
