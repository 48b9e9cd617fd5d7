"""The chain of a run as an MLflow model, for ``mlflow.pyfunc.load_model`` and ``mlflow models serve``.

The model contains the chain and three lines of code, but no weights or indexes: it needs an installed rallebench and
a workspace. The function that opens a chain belongs to a higher layer, so the model stores its name.
"""

from __future__ import annotations

import importlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from rallebench.chains.saved import chain_to_json
from rallebench.core.errors import UsageError
from rallebench.core.files import read_json, write_json, write_text
from rallebench.core.types import Chain
from rallebench.engine.run_files import RunDescription
from rallebench.engine.store import RunFolder
from rallebench.tracking import content
from rallebench.tracking.connection import connect, find_tracking_uri, import_mlflow, mlflow_errors


class ChainAnswer(TypedDict):
    """The answer of a logged chain, and the pages that it retrieved."""

    answer: str
    error: str
    pages: list[str]


Ask = Callable[[str, Sequence[Mapping[str, str]]], ChainAnswer]
"""A function (question, earlier messages) → the answer."""

COLUMNS = ("answer", "error", "pages")

_CODE = '''"""The chain of a rallebench run; load it with model_config={"workspace": FOLDER}."""

from mlflow.models import set_model

from rallebench.tracking.models import chain_model

set_model(chain_model())
'''


def log_model(
    run_folder: Path, run_id: str, opener: str, *, workspace: Path, tracking_uri: str | None = None
) -> str:
    """Log a run's chain as a model of the MLflow run ``run_id``; return the model's id.

    If the chain was logged before, its model is kept. ``opener``: ``module:function`` that takes (chain as JSON, the
    model's config) and returns an Ask. Raises UsageError if the run has no chain, BackendError if MLflow cannot be
    reached or written to.
    """
    run = RunFolder(run_folder).description()
    chain = run.chain
    if chain is None:
        raise UsageError(f"The run {run_folder.name!r} has no chain, so there is no model to log.")
    uri = find_tracking_uri(workspace, tracking_uri)
    client = connect(uri)
    with mlflow_errors(uri):
        from mlflow.entities import LoggedModelOutput

        mlflow_run = client.get_run(run_id)
        fingerprint = run.fingerprint
        for output in getattr(mlflow_run.outputs, "model_outputs", None) or ():
            logged = client.get_logged_model(output.model_id)
            if logged.tags.get("rallebench.fingerprint") == fingerprint:
                return str(output.model_id)
        name = re.sub(r"[/:.%\"'\s]+", "-", chain.name).strip("-")[:200]
        model = client.create_logged_model(
            mlflow_run.info.experiment_id,
            name=name or "chain",
            source_run_id=run_id,
            tags={"rallebench.run": run_folder.name, "rallebench.fingerprint": fingerprint},
            model_type="chain",
        )
        try:
            with tempfile.TemporaryDirectory(prefix="rallebench-") as folder:
                _save(Path(folder), run, chain, opener, run_id, model.model_id)
                client.log_model_artifacts(model.model_id, str(Path(folder) / "model"))
        except BaseException:
            client.finalize_logged_model(model.model_id, "FAILED")
            raise
        client.finalize_logged_model(model.model_id, "READY")
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, 0)])
    return str(model.model_id)


def _save(
    folder: Path,
    run: RunDescription,
    chain: Chain,
    opener: str,
    run_id: str,
    model_id: str,
) -> None:
    """Write the model to ``folder/model``."""
    mlflow = import_mlflow()
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, DataType, Schema
    from mlflow.types.schema import Array

    write_text(folder / "rallebench_chain.py", _CODE)
    write_json(folder / "chain.json", content.without_secrets(chain_to_json(chain)))
    columns = Schema(
        [
            ColSpec(DataType.string, "answer"),
            ColSpec(DataType.string, "error"),
            ColSpec(Array(DataType.string), "pages"),
        ]
    )
    mlflow.pyfunc.save_model(
        str(folder / "model"),
        python_model=str(folder / "rallebench_chain.py"),
        artifacts={"chain": str(folder / "chain.json")},
        model_config={"workspace": "", "base_settings": "", "opener": opener},
        # With an input schema, MLflow would refuse plain lists of questions.
        signature=ModelSignature(outputs=columns),
        # Without this list, MLflow loads the model in another process to find its requirements.
        pip_requirements=[
            f"{name}=={version}"
            for name, version in run.versions.items()
            if name not in ("python", "rallebench")
        ],
        metadata={
            "run": run.name,
            "fingerprint": run.fingerprint,
            "rallebench": run.versions.get("rallebench", ""),
        },
        mlflow_model=Model(run_id=run_id, model_id=model_id),
    )


def chain_model() -> Any:
    """A loaded chain as an ``mlflow.pyfunc.PythonModel``."""
    from mlflow.pyfunc import PythonModel
    from pandas import DataFrame

    class ChainModel(PythonModel):  # type: ignore[misc]
        """``predict`` takes questions and returns a DataFrame with the columns COLUMNS, one row per question."""

        def load_context(self, context: Any) -> None:
            """Open the chain. Raises RalleError if the workspace lacks one of its models or retrievers."""
            module, _, name = context.model_config["opener"].partition(":")
            open_chain = getattr(importlib.import_module(module), name)
            chain = read_json(Path(context.artifacts["chain"]))
            self.ask: Ask = open_chain(chain, context.model_config)

        def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
            """Answer the questions; for their format, see ``turns``."""
            answers = [self.ask(question, history) for question, history in turns(model_input)]
            return DataFrame(answers, columns=list(COLUMNS))

        # Without a type hint, MLflow warns at each load; it reads the type, not its name.
        predict.__annotations__["model_input"] = DataFrame

    return ChainModel()


_NO_QUESTIONS = "Give a question, a list of questions, or a table with the column 'question'."


def turns(model_input: Any) -> list[tuple[str, list[Mapping[str, str]]]]:
    """Return (question, earlier messages) for each row of the input of ``predict``. Raises UsageError.

    The input is a question, or a list, array or Series of questions. It may also be a list of objects or a DataFrame
    with ``question`` and optionally ``history``: a list of ``{"role": …, "content": …}``, or its JSON text.

    >>> turns(["Who?", {"question": "And he?", "history": [{"role": "user", "content": "Who?"}]}])
    [('Who?', []), ('And he?', [{'role': 'user', 'content': 'Who?'}])]
    """
    rows = model_input
    if isinstance(rows, Mapping) and not isinstance(rows.get("question"), str):
        try:  # the columns that MLflow's server passes as ``inputs``
            rows = [dict(zip(rows, row)) for row in zip(*rows.values(), strict=True)]
        except (TypeError, ValueError):
            raise UsageError(_NO_QUESTIONS) from None
    elif isinstance(rows, (str, Mapping)):
        rows = [rows]
    elif hasattr(rows, "columns"):
        rows = rows.to_dict("records")
    elif hasattr(rows, "tolist"):
        rows = rows.tolist()
    if not isinstance(rows, Iterable):
        raise UsageError(_NO_QUESTIONS)
    return [_turn(row, number) for number, row in enumerate(rows, 1)]


def _turn(row: Any, number: int) -> tuple[str, list[Mapping[str, str]]]:
    question = row.get("question") if isinstance(row, Mapping) else row
    history: Any = row.get("history") if isinstance(row, Mapping) else None
    if not isinstance(question, str) or not question.strip():
        raise UsageError(f"Row {number} has no question; give text, or an object with 'question'.")
    if isinstance(history, str):
        try:
            history = json.loads(history) if history.strip() else None
        except ValueError:
            raise UsageError(f"The history of row {number} is not valid JSON.") from None
    elif hasattr(history, "tolist"):
        history = history.tolist()
    # an empty DataFrame cell is NaN
    messages = history if isinstance(history, (list, tuple)) else []
    if not all(_is_message(message) for message in messages):
        raise UsageError(
            f"The history of row {number} must hold messages with 'role' (user, assistant) and "
            "'content'."
        )
    return question, [
        {"role": message["role"], "content": message["content"]} for message in messages
    ]


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, Mapping)
        and isinstance(message.get("content"), str)
        and message.get("role") in ("user", "assistant")
    )
