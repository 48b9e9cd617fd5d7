"""MTRAG: multi-turn conversations in four domains (Katsis et al. 2025)."""
