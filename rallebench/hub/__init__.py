"""Datasets of the Hugging Face hub as local files: their data files alone are fetched, and no code of a repository is run.

``huggingface_hub`` downloads into its own cache, in a program of its own (``program``) that can be stopped at any moment;
``fetching`` starts it. Nothing here is called unless a user names a dataset of the hub.
"""
