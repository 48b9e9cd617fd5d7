"""BEIR: retrieval over many kinds of sets (Thakur et al. 2021)."""
