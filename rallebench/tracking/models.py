"""The chain of a run as a model of MLflow's: ``mlflow.pyfunc.load_model`` and ``mlflow models serve`` answer with it.

The model holds the chain and three lines of code, no weights and no index: whoever loads it has rallebench installed
and names the workspace. Who opens a chain there lies above this package, so its name is handed in and kept.
"""

from __future__ import annotations

import importlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.files import read_json, write_json, write_text
from rallebench.engine.store import RunFolder
from rallebench.tracking import content
from rallebench.tracking.connection import connect, explained, import_mlflow, tracking_uri_of

Ask = Callable[[str, Sequence[Mapping[str, str]]], Mapping[str, Any]]
"""(question, earlier messages) → ``answer``, ``error``, ``pages``."""

COLUMNS = ("answer", "error", "pages")

_CODE = '''"""The chain of a rallebench run; load it with model_config={"workspace": FOLDER}."""

from mlflow.models import set_model

from rallebench.tracking.models import chain_model

set_model(chain_model())
'''


def log_model(
    run_folder: Path, run_id: str, opener: str, *, workspace: Path, tracking_uri: str | None = None
) -> str:
    """Log a run's chain as a model of the MLflow run ``run_id`` and return the model's id; once logged, it is kept.

    ``opener``: ``module:function`` that takes (chain as JSON, the model's config) and returns an Ask. Raises
    UsageError for a run without a chain and BackendError if MLflow cannot be reached or written.
    """
    run = RunFolder(run_folder).spec()
    chain = run["spec"]["settings"].get("chain")
    if not chain:
        raise UsageError(
            f"The run {run_folder.name!r} is of no chain, so there is no model to log."
        )
    uri = tracking_uri_of(workspace, tracking_uri)
    client = connect(uri)
    with explained(uri):
        from mlflow.entities import LoggedModelOutput

        logged = client.get_run(run_id)
        outputs = getattr(logged.outputs, "model_outputs", None) or ()
        fingerprint = str(run["fingerprint"])
        for output in outputs:
            if (
                client.get_logged_model(output.model_id).tags.get("rallebench.fingerprint")
                == fingerprint
            ):
                return str(output.model_id)
        name = (
            re.sub(r"[/:.%\"'\s]+", "-", str(chain.get("name") or "chain")).strip("-")[:200]
            or "chain"
        )
        tags = {"rallebench.run": run_folder.name, "rallebench.fingerprint": fingerprint}
        made = client.create_logged_model(
            logged.info.experiment_id,
            name=name,
            source_run_id=run_id,
            tags=tags,
            model_type="chain",
        )
        try:
            with tempfile.TemporaryDirectory(prefix="rallebench-") as folder:
                _save(Path(folder), run, chain, opener, run_id, made.model_id)
                client.log_model_artifacts(made.model_id, str(Path(folder) / "model"))
        except BaseException:
            client.finalize_logged_model(made.model_id, "FAILED")
            raise
        client.finalize_logged_model(made.model_id, "READY")
        client.log_outputs(run_id, [LoggedModelOutput(made.model_id, 0)])
    return str(made.model_id)


def _save(
    folder: Path,
    run: Mapping[str, Any],
    chain: Mapping[str, Any],
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
    write_json(folder / "chain.json", content.without_secrets(chain))
    told = Schema(
        [
            ColSpec(DataType.string, "answer"),
            ColSpec(DataType.string, "error"),
            ColSpec(Array(DataType.string), "pages"),
        ]
    )
    versions = run.get("versions", {})
    mlflow.pyfunc.save_model(
        str(folder / "model"),
        python_model=str(folder / "rallebench_chain.py"),
        artifacts={"chain": str(folder / "chain.json")},
        model_config={"workspace": "", "base_settings": "", "opener": opener},
        signature=ModelSignature(
            outputs=told
        ),  # one for the input would refuse plain lists of questions
        # Given, because MLflow would load the model in another process to find them out.
        pip_requirements=[
            f"{name}=={version}"
            for name, version in versions.items()
            if name not in ("python", "rallebench")
        ],
        metadata={
            "run": run.get("name", ""),
            "fingerprint": run["fingerprint"],
            "rallebench": versions.get("rallebench", ""),
        },
        mlflow_model=Model(run_id=run_id, model_id=model_id),
    )


def chain_model() -> Any:
    """The model that a logged chain becomes when it is loaded: an ``mlflow.pyfunc.PythonModel``."""
    from mlflow.pyfunc import PythonModel
    from pandas import DataFrame

    class ChainModel(PythonModel):  # type: ignore[misc]
        """``predict`` takes questions and returns a DataFrame: ``answer``, ``error``, ``pages``, a row for each."""

        def load_context(self, context: Any) -> None:
            """Open the chain; raises RalleError for a workspace that lacks what it names."""
            module, _, name = context.model_config["opener"].partition(":")
            opened = getattr(importlib.import_module(module), name)
            self.ask: Ask = opened(
                read_json(Path(context.artifacts["chain"])), context.model_config
            )

        def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
            """See ``turns``."""
            answers = [self.ask(question, history) for question, history in turns(model_input)]
            return DataFrame(answers, columns=list(COLUMNS))

        # Without a hint MLflow warns everybody who loads the model; it reads an object, not a word.
        predict.__annotations__["model_input"] = DataFrame

    return ChainModel()


def turns(given: Any) -> list[tuple[str, list[Mapping[str, str]]]]:
    """(question, earlier messages) of whatever ``predict`` was given. Raises UsageError for anything else.

    A question, several in a list, an array or a Series; objects or a DataFrame with ``question`` and perhaps
    ``history``: a list of ``{"role": …, "content": …}``, or the same as JSON text.

    >>> turns(["Who?", {"question": "And he?", "history": [{"role": "user", "content": "Who?"}]}])
    [('Who?', []), ('And he?', [{'role': 'user', 'content': 'Who?'}])]
    """
    if isinstance(given, Mapping) and isinstance(given.get("question"), str):
        given = [given]
    elif isinstance(given, Mapping):
        given = _by_columns(given)
    if isinstance(given, str):
        given = [given]
    elif hasattr(given, "columns"):
        given = given.to_dict("records")
    elif hasattr(given, "tolist"):
        given = given.tolist()
    if not isinstance(given, Iterable):
        raise UsageError(
            "Give a question, a list of questions, or a table with the column 'question'."
        )
    return [_turn(one, number) for number, one in enumerate(given, 1)]


def _by_columns(given: Mapping[str, Any]) -> Any:
    """Columns, as MLflow's server hands over its ``inputs``, as a DataFrame."""
    from pandas import DataFrame

    try:
        return DataFrame({name: list(column) for name, column in given.items()})
    except (TypeError, ValueError):
        raise UsageError(
            "Give a question, a list of questions, or a table with the column 'question'."
        ) from None


def _turn(one: Any, number: int) -> tuple[str, list[Mapping[str, str]]]:
    question = one.get("question") if isinstance(one, Mapping) else one
    history: Any = one.get("history") if isinstance(one, Mapping) else None
    if not isinstance(question, str) or not question.strip():
        raise UsageError(f"Row {number} has no question; give text, or an object with 'question'.")
    if isinstance(history, str):
        try:
            history = json.loads(history) if history.strip() else None
        except ValueError:
            raise UsageError(f"The history of row {number} is no valid JSON.") from None
    elif hasattr(history, "tolist"):
        history = history.tolist()
    messages = (
        history if isinstance(history, (list, tuple)) else []
    )  # an empty cell of a DataFrame is NaN
    for message in messages:
        if (
            not isinstance(message, Mapping)
            or not isinstance(message.get("content"), str)
            or message.get("role") not in ("user", "assistant")
        ):
            raise UsageError(
                f"The history of row {number} must hold messages with 'role' (user, assistant) and 'content'."
            )
    return question, [
        {"role": message["role"], "content": message["content"]} for message in messages
    ]
