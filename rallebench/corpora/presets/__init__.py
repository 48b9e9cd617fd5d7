"""Chunking presets. Each published one is registered by ``chunking.py`` in the folder of its paper."""
