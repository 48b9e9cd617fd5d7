"""What run folders say together: paired comparisons, where a chain loses its questions. Values, no widgets."""
