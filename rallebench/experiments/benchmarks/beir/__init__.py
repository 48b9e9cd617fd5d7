"""BEIR: retrieval over sets of many kinds (Thakur et al. 2021)."""
