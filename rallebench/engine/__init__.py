"""Ask many questions: one loop, one memory, one run folder."""
