"""Tables printed in papers: their values and plots, our rows beside them, and the papers' own questions."""
