"""CRUD-RAG (Lyu et al. 2024): six tasks on Chinese news, its grid over retrievers and models, and RAGQuestEval."""

PAPER = "arXiv:2401.17043"
READY = "Without a download: BM25 in Chinese, the default retriever; choose a model, and an encoder for similarity, that reads Chinese."
"""What works without a download."""
