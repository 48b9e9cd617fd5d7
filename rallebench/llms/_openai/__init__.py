"""The parts of the ``openai_compatible`` backend; ``openai`` is imported when a client is made."""
