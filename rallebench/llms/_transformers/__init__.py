"""Parts of the ``transformers`` backend; modules that import torch are imported when a model is loaded."""
