"""KILT (Petroni et al. 2021) with RaLLe's chains and tables: the eleven sets, their files, their chains."""

PAPER = "arXiv:2009.02252"
READY = "Without a download: BM25, MiniLM and the embedded reader in English; in Chinese BM25, with a model that you choose."
"""What works without a download."""
