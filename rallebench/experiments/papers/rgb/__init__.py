"""RGB (Chen et al. 2023): its four tests, testbeds from an index, its own files of predictions."""

PAPER = "arXiv:2309.01431"
READY = "Without a download: the embedded reader in English; in Chinese a model that you choose. Nothing is retrieved."
"""What works without a download."""
