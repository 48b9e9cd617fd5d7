"""Training of the embedded reader: the same data, seed and steps give the same weights.

``sources`` names the data and their licences, ``overlap`` keeps evaluation paragraphs out,
``examples`` and ``batches`` make what ``loop`` trains on, ``calibration`` fits the confidence, ``card`` documents
the training. ``python -m tools.reader.train`` runs them in this order.
"""
