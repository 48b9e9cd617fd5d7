"""An OpenAI-compatible endpoint for chains."""
