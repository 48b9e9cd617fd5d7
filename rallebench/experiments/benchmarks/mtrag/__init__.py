"""MTRAG: conversations of several turns over four domains (Katsis et al. 2025)."""
