"""Datasets built in stages: every stage is a file of rows that a person may edit and continue from.

A builder is an experiment (:mod:`rallebench.core.experiments`) that yields a ``RowsRequest`` for each stage, is sent its rows
(``engine.rowfile.RowFile``), and returns a ``Report`` with the dataset's questions::

    @EXPERIMENTS.register("build-titles", place="builders", form={"k": Setting(int, 1)})
    def titles(request):
        rows = yield RowsRequest("1-articles", "articles", lambda: read(request), make=lambda article: [article])
        return Report(questions=tuple(question_of(row) for row in rows if row["keep"]))

``settings["articles"]`` is a path or a corpus's name, '' if none was given.
"""
