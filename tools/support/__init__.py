"""Training of the support head: claims about passages, and a logistic regression over their features."""
