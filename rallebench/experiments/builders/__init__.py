"""Datasets built in stages; each stage is a file of rows that a user can edit before continuing.

A builder is an experiment (:mod:`rallebench.core.experiments`). It yields a ``RowsRequest`` for each stage, receives the
stage's rows (``engine.rowfile.RowFile``), and returns a ``Report`` with the questions of the dataset::

    @EXPERIMENTS.register("build-titles", place="builders", form={"k": Setting(int, 1)})
    def titles(request):
        rows = yield RowsRequest("1-articles", "articles", lambda: read(request), make=lambda article: [article])
        return Report(questions=tuple(question_of(row) for row in rows if row["keep"]))

``settings["articles"]`` is a path or a corpus name; '' if unset.
"""
