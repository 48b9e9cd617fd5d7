"""The pieces of CRUD-RAG (Lyu et al. 2024, arXiv:2401.17043): tasks, records, retrieval, RAGQuestEval, files, tables."""
