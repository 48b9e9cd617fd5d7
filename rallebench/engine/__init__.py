"""Ask many questions: one loop, one reply cache, one run folder."""
