"""The parts of the ``openai_compatible`` backend; the ``openai`` package is imported when a client is made."""
