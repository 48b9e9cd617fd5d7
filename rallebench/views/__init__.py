"""Runs, experiments, data, models and chains as they are read: values for the front ends, never HTML."""
