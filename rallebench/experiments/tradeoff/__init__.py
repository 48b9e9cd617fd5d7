"""Quality and cost of indexes on one's own corpus and questions: quality against time, memory and disk.

Each index is searched in a process of its own (``probe``), so that its memory can be measured; ``running`` is the
experiment.
"""
