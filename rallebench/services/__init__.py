"""What the front ends call: models, runs, data, questions, and the work that goes on in threads."""
