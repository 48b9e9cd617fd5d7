"""Read-only values for the front ends: runs, experiments, data, models and chains. Never HTML."""
