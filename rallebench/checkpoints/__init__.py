"""Models on disk, as language models and encoders load them: files, required memory, failed loads.

Nothing here imports torch before a model is loaded.
"""
