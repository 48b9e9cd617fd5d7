"""Models on disk, as language models and encoders load them: their files, the memory that they need, failed loads.

Nothing here imports torch before a model is loaded.
"""
