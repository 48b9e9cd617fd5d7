"""The calls of the front ends: models, runs, data, questions, and the jobs in threads."""
