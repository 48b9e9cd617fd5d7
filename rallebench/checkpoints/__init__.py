"""Models on disk, as loaded by language models and encoders: files, required memory, failed loads.

Nothing here imports torch before a model is loaded.
"""
