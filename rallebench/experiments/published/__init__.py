"""Tables printed in papers: their values, their drawings, our rows beside theirs, and the papers' own questions."""
