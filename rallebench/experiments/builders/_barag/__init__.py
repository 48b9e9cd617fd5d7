"""The parts of ``barag``: its requests to models, its stages, and its final files."""
