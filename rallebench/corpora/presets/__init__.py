"""Chunking presets. Each published preset is registered by ``chunking.py`` in the folder of its paper."""
