"""CRUD-RAG (Lyu et al. 2024): six tasks on Chinese news, its grid over retrievers and models, and RAGQuestEval."""
