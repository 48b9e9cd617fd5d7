"""CRUD-RAG (Lyu et al. 2024): six tasks on Chinese news, a grid over retrievers and models, and RAGQuestEval."""
