"""The pieces of RGB (Chen et al. 2023, arXiv:2309.01431): records, documents, prompts, scoring, judgements, files."""
