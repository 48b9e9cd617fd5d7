"""The parts of the ``openai_compatible`` backend."""
