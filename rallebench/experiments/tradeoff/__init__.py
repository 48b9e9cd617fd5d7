"""Quality and cost of indexes on the user's own corpus and questions: quality against time, memory and disk.

Each index is searched in its own process (``probe``) to measure its memory; ``running`` is the experiment.
"""
