"""RaLLe's experiment files are read unchanged, and written so that RaLLe could read them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from rallebench.chains.overrides import override
from rallebench.chains.ralle import (
    Experiment,
    experiment_from_json,
    experiment_to_json,
    load_chain_file,
)
from rallebench.chains.saved import chain_to_json, save_chain
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.types import Action, Chain
from rallebench.workspace.paths import WorkspaceFolder

REWRITE = "'What is \"' + '{}'.format(question).split('[START_ENT]')[1].split('[END_ENT]')[0][1:-1] + '\" ?'"
FIRST_TITLE = "'{}'.format(wiki_id_title[0]).split('; ')[0].split(', ')[0]"
READ = (
    'Referring to the following document, answer "{question}?" in 5 words or less.'
    "\n\n{response[0]}\n\nAnswer: "
)


def saved(function: str, template: str, dialect: str = "f-strings", **names: Any) -> dict[str, Any]:
    """An action in the form that RaLLe saves."""
    saved = {"prompt_template": template, "function": function, "f-strings_or_eval": dialect}
    return {**saved, **names}


def experiment(name: str, *actions: dict[str, Any], **dataset: Any) -> dict[str, Any]:
    """An experiment file of RaLLe's."""
    dataset = {"dataset_name": name, "num_evaluate": -1, "batch_size": 20, **dataset}
    return {"chain_config": {"dataset": dataset, "len_chain": len(actions), "chain": list(actions)}}


PYTHIA = "oasst-sft-1-pythia-12b"
RETRIEVE_READ = experiment(
    "NQ",
    saved("Retriever", "{question}", retriever_name="flat_subset_499992", npassage=5),
    saved("LLM", READ, llm_name="llama-2-13b-chat"),
)
ENTITY_LINKING = experiment(
    "AY2",
    saved("Retriever", REWRITE, "eval", retriever_name="hnsw_subset_499992", npassage=10),
    saved("Identity", FIRST_TITLE, "eval"),
    num_evaluate=10,
)
CLOSED_BOOK = experiment(
    "FEV", saved("LLM", "True or not: {question}", llm_name="gpt-35-turbo"), batch_size=1
)
THREE_ACTIONS = experiment(
    "T-REx",
    saved("Retriever", "{question}", retriever_name="bm25_subset_499992", npassage=2),
    saved("LLM", "Make a question of: {question}", llm_name=PYTHIA),
    saved("LLM", "response[0] + '\\n\\n' + response[1]", "eval", llm_name=PYTHIA),
)
RALLES_FILES = {
    "retrieve-read": RETRIEVE_READ,
    "entity-linking": ENTITY_LINKING,
    "closed-book": CLOSED_BOOK,
    "three-actions": THREE_ACTIONS,
}


def changed(place: str, value: Any, base: dict[str, Any] = RETRIEVE_READ) -> dict[str, Any]:
    """The experiment with one changed value; ``place`` is like ``chain.0.function`` inside ``chain_config``."""
    experiment = copy.deepcopy(base)
    *way, last = (int(part) if part.isdigit() else part for part in place.split("."))
    inside: Any = experiment["chain_config"]
    for part in way:
        inside = inside[part]
    if value is ...:
        del inside[last]
    else:
        inside[last] = value
    return experiment


# ── reading ──────────────────────────────────────────────────────────────────


def test_retriever_and_llm_become_retrieve_and_generate_with_their_names():
    experiment = experiment_from_json(RETRIEVE_READ, name="06_nq")

    assert experiment == Experiment(
        Chain(
            "06_nq",
            (
                Action("retrieve", "{question}", "fstring", "flat_subset_499992", 5),
                Action("generate", READ, "fstring", "llama-2-13b-chat"),
            ),
        ),
        dataset_name="NQ",
        num_evaluate=None,
        batch_size=20,
    )


def test_an_identity_with_an_eval_template_names_nobody():
    experiment = experiment_from_json(ENTITY_LINKING)

    assert experiment.chain.actions == (
        Action("retrieve", REWRITE, "eval", "hnsw_subset_499992", 10),
        Action("identity", FIRST_TITLE, "eval"),
    )
    assert experiment.num_evaluate == 10


@pytest.mark.parametrize(
    ("place", "written", "read"),
    [
        *(("dataset.num_evaluate", value, None) for value in (-1, 0, None)),
        *(("dataset.num_evaluate", value, 7) for value in (7, "7", 7.0)),
        *(("chain.0.npassage", value, 12) for value in ("12", " 12 ", 12, 12.0)),
        ("chain.0.npassage", ..., 5),
        *(("chain.1.f-strings_or_eval", value, "fstring") for value in (..., None)),
        ("chain.1.llm_name", ..., ""),
        ("len_chain", ..., 2),
    ],
)
def test_numbers_may_be_text_and_what_is_missing_has_a_default(place: str, written: Any, read: Any):
    experiment = experiment_from_json(changed(place, written))
    retrieve, generate = experiment.chain.actions
    values = {
        "num_evaluate": experiment.num_evaluate,
        "npassage": retrieve.k,
        "f-strings_or_eval": generate.dialect,
        "llm_name": generate.target,
        "len_chain": len(experiment.chain.actions),
    }
    assert values[place.split(".")[-1]] == read


def test_actions_beyond_the_chain_length_are_dropped_unread():
    longer = copy.deepcopy(RETRIEVE_READ)
    longer["chain_config"]["chain"] += [
        {"prompt_template": "", "function": "Identity"},
        "not even an action",
    ]
    assert experiment_from_json(longer) == experiment_from_json(RETRIEVE_READ)


@pytest.mark.parametrize("key", ["chain.0.comment", "dataset.seed", "dataset.resume", "note"])
def test_keys_that_nobody_knows_do_no_harm(key: str):
    assert experiment_from_json(changed(key, "x")) == experiment_from_json(RETRIEVE_READ)


ONE_OF, TEXT = "it must be one of", "it should be text."
WHOLE = "it should be a whole number."
FUNCTIONS = "LLM, Retriever, Identity."
HOW, DIALECTS = "f-strings_or_eval", "f-strings, eval."


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("chain", ..., ": 'chain' is missing; it should be a list of at least one action."),
        ("chain", [], ": 'chain' is []; it should be a list of at least one action."),
        ("len_chain", 3, ": 'len_chain' is 3; it must be 1 to 2, the actions listed."),
        ("len_chain", 0, ": 'len_chain' is 0; it must be 1 to 2, the actions listed."),
        ("len_chain", "two", ": 'len_chain' is 'two'; it should be a whole number."),
        ("chain.1", None, ", action 2 is missing; it should be a JSON object."),
        ("chain.1.function", "Ask", f", action 2: 'function' is 'Ask'; {ONE_OF} {FUNCTIONS}"),
        ("chain.1.function", ..., f", action 2: 'function' is missing; {ONE_OF} {FUNCTIONS}"),
        (f"chain.0.{HOW}", "x", f", action 1: {HOW!r} is 'x'; {ONE_OF} {DIALECTS}"),
        ("chain.0.prompt_template", ..., f", action 1: 'prompt_template' is missing; {TEXT}"),
        ("chain.0.prompt_template", 7, ", action 1: 'prompt_template' is 7; it should be text."),
        ("chain.1.llm_name", ["a"], ", action 2: 'llm_name' is ['a']; it should be text."),
        ("chain.0.npassage", "many", f", action 1: 'npassage' is 'many'; {WHOLE}"),
        ("chain.0.npassage", True, ", action 1: 'npassage' is True; it should be a whole number."),
        ("chain.0.npassage", 2.5, ", action 1: 'npassage' is 2.5; it should be a whole number."),
        ("chain.0.npassage", float("inf"), f", action 1: 'npassage' is inf; {WHOLE}"),
        ("chain.0.npassage", 0, ", action 1: 'npassage' is 0; it must be 1 to 10,000."),
        ("dataset", "NQ", ": 'dataset' is 'NQ'; it should be a JSON object."),
        ("dataset.dataset_name", 3, ": 'dataset_name' is 3; it should be text."),
        ("dataset.batch_size", 0, ": 'batch_size' is 0; it must be at least 1."),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(place: str, value: Any, message: str):
    with pytest.raises(BadFileError) as refused:
        experiment_from_json(changed(place, value), "exp.json")
    assert str(refused.value) == f"exp.json{message}"


@pytest.mark.parametrize(
    ("value", "message"), [([], "exp.json is []"), ({}, "exp.json: 'chain_config' is missing")]
)
def test_what_is_no_experiment_at_all_is_refused(value: Any, message: str):
    with pytest.raises(BadFileError) as refused:
        experiment_from_json(value, "exp.json")
    assert str(refused.value) == f"{message}; it should be a JSON object."


def test_more_than_eight_actions_are_refused():
    many = changed("chain", RETRIEVE_READ["chain_config"]["chain"] * 5)
    many["chain_config"]["len_chain"] = 10
    with pytest.raises(BadFileError, match="has 10 actions; a chain has at most 8"):
        experiment_from_json(many)


# ── writing ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", RALLES_FILES)
def test_ralles_file_read_and_written_again_is_the_same_file(name: str):
    experiment = experiment_from_json(RALLES_FILES[name])
    written = experiment_to_json(
        experiment.chain, experiment.dataset_name, experiment.num_evaluate, experiment.batch_size
    )
    assert written == RALLES_FILES[name]


def test_generation_settings_stand_under_an_extra_key_only_if_there_are_any():
    settings = {"max_tokens": 16, "stop": ["\n"], "top_p": 0.9}
    plain = Chain("c", (Action("generate", "{question}", target="m"),))
    warm = plain.replace_action(0, generation=settings)

    assert "generation" not in experiment_to_json(plain)["chain_config"]["chain"][0]
    written = experiment_to_json(warm, "NQ", 10, 5)
    assert written["chain_config"]["chain"][0]["generation"] == settings
    assert experiment_from_json(json.loads(json.dumps(written)), name="c") == Experiment(
        warm, "NQ", 10, 5
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_tokens": -1}, "max_tokens is -1"),
        ({"temperature": "hot"}, "temperature is 'hot'"),
        ({"stop": [1]}, "stop must be a list of texts"),
        ({"system": 3}, "system must be a text"),
    ],
)
def test_a_generation_setting_that_cannot_be_is_refused(settings: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=f"action 2: {message}"):
        experiment_from_json(changed("chain.1.generation", settings))


# ── files ────────────────────────────────────────────────────────────────────


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_a_chain_file_may_be_in_ralles_form_and_is_named_after_the_file(tmp_path: Path):
    chain = load_chain_file(write(tmp_path / "06_nq.json", RETRIEVE_READ))
    assert chain == experiment_from_json(RETRIEVE_READ, name="06_nq").chain


def test_a_chain_file_may_be_in_our_form_and_keeps_its_name(tmp_path: Path):
    chain = Chain("my chain", (Action("generate", "{question}", target="m"),), "what it is for")
    save_chain(chain, tmp_path / "file.json")
    assert load_chain_file(tmp_path / "file.json") == chain


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".YAML"])
def test_a_chain_file_may_be_yaml(tmp_path: Path, suffix: str):
    pytest.importorskip("yaml")
    text = """
        chain_config:
          dataset: {dataset_name: NQ, num_evaluate: -1, batch_size: 20}
          len_chain: 1
          chain:
            - function: LLM
              llm_name: mine
              prompt_template: |-
                Answer "{question}"

                Answer:
    """
    chain = load_chain_file(write(tmp_path / f"chain{suffix}", text))
    assert chain == Chain(
        "chain", (Action("generate", 'Answer "{question}"\n\nAnswer:', target="mine"),)
    )


def test_our_own_form_may_be_yaml_too(tmp_path: Path):
    yaml = pytest.importorskip("yaml")
    retrieve = Action("retrieve", "{question}", target="r", k=3)
    chain = Chain("c", (retrieve, Action("identity", "'{}'.format(1)", "eval")))
    assert load_chain_file(write(tmp_path / "c.yml", yaml.safe_dump(chain_to_json(chain)))) == chain


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 2",
        "a: !!python/object/apply:os.system ['true']",
        "a: 2020-13-45",
        "a: !!int ''",
        "a: !!bool perhaps",
        "a: !!timestamp soon",
        "{[]: 1}",
        "a: *nobody",
    ],
)
def test_bad_yaml_is_refused_and_nothing_in_it_is_run(tmp_path: Path, text: str):
    pytest.importorskip("yaml")
    with pytest.raises(BadFileError, match=r"bad\.yaml is not valid YAML \("):
        load_chain_file(write(tmp_path / "bad.yaml", text))


@pytest.mark.parametrize("value", [{"name": "x"}, [], "text", 3, None])
def test_a_file_that_is_no_chain_says_what_it_should_hold(tmp_path: Path, value: Any):
    path = write(tmp_path / "no.json", json.dumps(value))
    with pytest.raises(BadFileError, match=r"no\.json is not a chain: .*'chain_config'"):
        load_chain_file(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(BadFileError, match=r"none\.json does not exist"):
        load_chain_file(tmp_path / "none.json")
    with pytest.raises(BadFileError, match=r"none\.yaml does not exist"):
        load_chain_file(tmp_path / "none.yaml")


def test_every_visible_chain_file_of_a_folder_is_listed_with_its_path_as_name(tmp_path: Path):
    inside = tmp_path / "chains"
    write(inside / "retrieve-read" / "06_nq.json", RETRIEVE_READ)
    write(inside / "rewrite" / "04_ay2.yaml", "{}")
    write(inside / ".ipynb_checkpoints" / "default.json", "{")
    write(inside / "notes.txt", "no experiment")
    workspace = WorkspaceFolder(tmp_path / "workspace")
    assert workspace.chain_folder(str(inside)) == [
        ("retrieve-read-06_nq", inside / "retrieve-read" / "06_nq.json"),
        ("rewrite-04_ay2", inside / "rewrite" / "04_ay2.yaml"),
    ]
    assert workspace.chain_folder(str(inside / "notes.txt")) is None


# ── overriding ───────────────────────────────────────────────────────────────


def test_an_override_changes_every_action_that_has_such_a_thing_and_no_other():
    chain = experiment_from_json(THREE_ACTIONS).chain
    assert override(chain) == override(chain, llm="", retriever="") == chain
    other = override(chain, llm="mine", retriever="my-index", k=7)
    targets = [(a.kind, a.target) for a in other.actions]
    assert targets == [("retrieve", "my-index"), ("generate", "mine"), ("generate", "mine")]
    assert other.actions[0].k == 7
    assert [a.template for a in other.actions] == [a.template for a in chain.actions]
    linking = experiment_from_json(ENTITY_LINKING).chain
    assert override(linking, llm="mine", k=3).actions == (
        Action("retrieve", REWRITE, "eval", "hnsw_subset_499992", 3),
        Action("identity", FIRST_TITLE, "eval"),
    )


@pytest.mark.parametrize("k", [0, -1, 10_001])
def test_an_override_with_an_impossible_k_is_refused(k: int):
    with pytest.raises(UsageError, match="must be 1 to 10,000"):
        override(experiment_from_json(RETRIEVE_READ).chain, k=k)
