"""Parts of the ``openai_compatible`` backend."""
