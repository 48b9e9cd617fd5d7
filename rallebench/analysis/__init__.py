"""Analyses of stored runs: paired comparisons, where a chain loses its questions, exports. No widgets."""
