"""A model as it lies on the disk or on the Hugging Face hub: is it whole, what names it, why does it not load."""
