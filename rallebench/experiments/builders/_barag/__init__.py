"""The parts of ``barag``: what it asks of models, its stages, and the files it ends with."""
