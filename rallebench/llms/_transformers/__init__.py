"""The parts of the ``transformers`` backend; those that import torch are imported when a model is loaded."""
