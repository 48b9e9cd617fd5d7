"""The Config tab: a chain goes out in every form, comes back the same, and has its command line."""

from __future__ import annotations

import json
import shlex
import tempfile
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
import yaml
from gradio.utils import get_upload_folder

from rallebench.chains.ralle import load_chain_file
from rallebench.chains.saved import MAX_ACTIONS
from rallebench.cli.main import main
from rallebench.core.prompts import prompts_folder
from rallebench.core.types import Action, Chain
from rallebench.gui import develop_output as executed
from rallebench.gui import form, views_config
from rallebench.gui.tabs import config
from rallebench.services.workbench import Workbench

WHOLE = Chain(
    "whole",
    (
        Action("retrieve", "{question}", "fstring", "starter-bm25", 7),
        Action("identity", "'; '.join(d['title'] for d in documents[0])", "eval"),
        Action(
            "generate",
            'Two lines: "{response[1]}"\n  \n日本 {question}: yes\nAnswer: ',
            "fstring",
            "echo",
            generation={
                "max_tokens": 7,
                "temperature": 0.5,
                "seed": 3,
                "stop": ["\n"],
                "system": "no\n",
                "top_p": 0.9,
            },
        ),
    ),
)
SHIPPED = sorted((prompts_folder() / "chains").glob("*.json"))


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    (tmp_path / "llms.json").write_text(
        '{"echo": {"backend": "scripted", "settings": {"echo": true}}}'
    )
    return Workbench(tmp_path)


def form_of(chain: Chain) -> list[Any]:
    """The values that the form in Develop has for a chain."""
    values: list[Any] = [chain.name, len(chain.actions), chain.about]
    for index in range(MAX_ACTIONS):
        action = chain.actions[index] if index < len(chain.actions) else Action("identity", "")
        values += form.action_values(action).values()
    return values


def shown(updates: list[Any]) -> dict[str, Any]:
    """What ``exported`` fills, by name; updates as their values."""
    names = [
        "json file",
        "yaml file",
        "ralle file",
        "python file",
        "json",
        "yaml",
        "ralle",
        "python",
        "note",
        "command",
        "unsaved",
        "name",
    ]
    assert len(updates) == len(names) == config.SHOWN
    return dict(
        zip(names, [u["value"] if isinstance(u, dict) else u for u in updates], strict=True)
    )


def filled(updates: list[Any]) -> tuple[str, dict[str, Any], Chain]:
    """(message, this tab, the chain that the form in Develop now holds) after a chain was brought in."""
    filled = updates[1 + config.SHOWN : -executed.SIZE]
    values = [u["value"] if isinstance(u, dict) and "value" in u else u for u in filled]
    return updates[0]["value"], shown(updates[1 : 1 + config.SHOWN]), form.read_chain(values)


# ── out ──────────────────────────────────────────────────────────────────────


def test_the_tab_shows_the_chain_of_develop_in_every_form(bench: Workbench) -> None:
    status, *rest = config.on_tab(bench, "starter-qa", *form_of(WHOLE))
    seen = shown(rest)
    assert status["visible"] is False
    assert json.loads(seen["json"]) == yaml.safe_load(seen["yaml"])
    assert json.loads(seen["json"])["format"] == "rallebench-chain/1"
    saved = json.loads(seen["ralle"])["chain_config"]
    assert (saved["len_chain"], saved["dataset"]["dataset_name"]) == (3, "starter-qa")
    assert (
        saved["chain"][0]["retriever_name"] == "starter-bm25" and saved["chain"][0]["npassage"] == 7
    )
    assert seen["name"] == "whole"


@pytest.mark.parametrize("key", ["json file", "yaml file", "ralle file"])
@pytest.mark.parametrize("path", [None, *SHIPPED], ids=lambda p: p.stem if p else "whole")
def test_every_download_reads_back_as_the_same_actions(
    bench: Workbench, key: str, path: Path | None
) -> None:
    chain = load_chain_file(path) if path else WHOLE
    file = Path(shown(config.exported(bench, "starter-qa", chain))[key])
    back = load_chain_file(file)
    assert back.actions == chain.actions
    assert key == "ralle file" or back.name == chain.name
    assert file.name.startswith(chain.name)


def test_yaml_shows_a_template_of_several_lines_as_lines() -> None:
    text = views_config.as_yaml(
        Chain("c", (Action("identity", "one {question}\ntwo: yes\nthree"),))
    )
    assert "template: |-\n    one {question}\n    two: yes\n    three\n" in text


def test_files_of_two_visitors_do_not_meet_though_their_chains_share_a_name(
    bench: Workbench,
) -> None:
    mine, yours = (
        shown(config.exported(bench, "starter-qa", Chain("same", (Action("identity", secret),))))
        for secret in ("mine {question}", "yours {question}")
    )
    assert mine["json file"] != yours["json file"]
    assert Path(mine["json file"]).read_text() == mine["json"] and "yours" not in mine["json"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "..", "?", "x\0y"])
def test_a_download_is_named_as_a_file_whatever_the_chain_is_called(
    bench: Workbench, name: str
) -> None:
    file = Path(
        shown(config.exported(bench, "starter-qa", Chain(name, WHOLE.actions)))["json file"]
    )
    assert file.suffix == ".json" and set(file.stem) <= set("etcpasswdabxychain-."), file
    assert file.parent.parent == Path(get_upload_folder()).resolve()


def test_what_ralle_cannot_run_is_said(bench: Workbench) -> None:
    assert "do not know {documents}" in shown(config.exported(bench, "", WHOLE))["note"]
    plain = Chain("p", (Action("identity", "{question}"),))
    assert shown(config.exported(bench, "", plain))["note"] == ""


def test_a_form_that_is_no_chain_shows_why_and_offers_nothing(bench: Workbench) -> None:
    values = form_of(WHOLE)
    values[values.index('{"top_p": 0.9}')] = "{broken"
    status, *rest = config.on_tab(bench, "starter-qa", *values)
    assert (
        status["visible"] and "Action 3: the other settings are not valid JSON" in status["value"]
    )
    assert [u["interactive"] for u in rest[:4]] == [False] * 4 and rest[4:8] == [""] * 4
    assert len(rest) == config.SHOWN


# ── in ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [views_config.as_json, views_config.as_yaml])
def test_a_pasted_chain_fills_the_form(bench: Workbench, make: Any) -> None:
    message, seen, chain = filled(config.on_import(bench, make(WHOLE), "starter-qa"))
    assert chain == WHOLE
    assert (
        "Develop now holds &#x27;whole&#x27; (3 actions)." in message and "Not known" not in message
    )
    assert json.loads(seen["json"])["name"] == "whole", "this tab shows at once what Develop holds"


def test_a_chain_that_was_brought_in_blanks_what_the_one_before_it_answered(
    bench: Workbench,
) -> None:
    updates = config.on_import(bench, views_config.as_json(WHOLE), "starter-qa")
    assert updates[-executed.SIZE :] == executed.blank()


def test_what_a_chain_is_for_comes_in_and_goes_out_with_it(bench: Workbench) -> None:
    told = Chain("told", WHOLE.actions, "Reads two lines.")
    _, _, chain = filled(config.on_import(bench, views_config.as_json(told), "starter-qa"))
    assert chain == told
    assert (
        json.loads(shown(config.on_tab(bench, "starter-qa", *form_of(chain))[1:])["json"])["about"]
        == told.about
    )


def test_a_ralle_experiment_fills_the_form_and_what_is_missing_here_is_named(
    bench: Workbench, tmp_path: Path
) -> None:
    written = {
        "chain_config": {
            "dataset": {"dataset_name": "NQ", "num_evaluate": -1, "batch_size": "20"},
            "len_chain": 2,
            "chain": [
                {
                    "prompt_template": "{question}",
                    "function": "Retriever",
                    "retriever_name": "bm25_subset",
                    "npassage": "3",
                },
                {
                    "prompt_template": "response[0]",
                    "function": "LLM",
                    "llm_name": "llama",
                    "f-strings_or_eval": "eval",
                },
                {"prompt_template": "dropped", "function": "Identity"},
            ],
        }
    }
    for updates in (
        config.on_import(bench, json.dumps(written), ""),
        config.on_upload(bench, str(wrote(tmp_path / "nq.json", json.dumps(written))), ""),
        config.on_upload(bench, str(wrote(tmp_path / "nq.yml", yaml.safe_dump(written))), ""),
    ):
        message, _, chain = filled(updates)
        assert [action.kind for action in chain.actions] == ["retrieve", "generate"]
        assert (chain.actions[0].k, chain.actions[1].dialect) == (3, "eval")
        assert "action 1 names bm25_subset; action 2 names llama" in message
    assert chain.name == "nq", "RaLLe's form has no name: the file's is taken"


def wrote(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no text to read"),
        ("  \n", "There is no text to read"),
        ("{oops", "The pasted text is not valid JSON (line 1: Expecting property name"),
        ('{"format": 1,\n "name": }', "The pasted text is not valid JSON (line 2"),
        ("a: [b", "The pasted text is not valid YAML (line 1"),
        ("!!python/object/apply:os.system ['true']", "The pasted text is not valid YAML"),
        ("[1, 2]", "The pasted text is no chain: it should hold"),
        ("just words", "The pasted text is no chain"),
        (
            '{"name": "x", "actions": [{"kind": "search", "template": ""}]}',
            "The pasted text: 'actions.0.kind' is wrong",
        ),
        ('{"name": "x", "actions": []}', "The pasted text: 'actions' is wrong"),
        (
            '{"name": "x", "actions": [{"kind": "generate", "template": "", "generation": {"seed": -1}}]}',
            "The pasted text, action 1: seed is -1",
        ),
        (
            '{"chain_config": {"chain": [{"function": "Reader"}]}}',
            "The pasted text, action 1: 'function'",
        ),
        ("x" * 200_001 + ": [", "The pasted text is not valid YAML"),
    ],
)
def test_a_bad_paste_is_one_sentence_and_the_form_stays(
    bench: Workbench, text: str, said: str
) -> None:
    message, *rest = config.on_import(bench, text, "starter-qa")
    assert said in message["value"].replace("&#x27;", "'") and message["visible"]
    assert tempfile.gettempdir() not in message["value"] and "Traceback" not in message["value"]
    assert rest == [gr.skip()] * len(rest)
    assert len(rest) == len(config.on_import(bench, views_config.as_json(WHOLE), "")) - 1


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00\x01", b"", b"{"])
@pytest.mark.parametrize("name", ["chain.json", "chain.yaml"])
def test_a_bad_file_is_named_by_its_name_and_not_by_where_the_page_put_it(
    bench: Workbench, tmp_path: Path, name: str, content: bytes
) -> None:
    message, *_ = config.on_upload(bench, str(wrote(tmp_path / name, content)), "starter-qa")
    assert name in message["value"] and str(tmp_path) not in message["value"]


# ── saving and the command line ──────────────────────────────────────────────


@pytest.mark.parametrize(
    "name", ["", "  ", "../up", "a/b", "a\\b", "/etc/x", ".hidden", "c:x", "x\0"]
)
def test_only_a_name_is_saved_and_only_in_the_workspace(bench: Workbench, name: str) -> None:
    message, *rest = config.on_save(bench, name, "starter-qa", *form_of(WHOLE))
    assert "cannot be a file name" in message["value"] and rest == [gr.skip()] * (config.SHOWN + 1)
    assert (
        not list(bench.workspace.path.glob("**/*.yaml"))
        and not (bench.workspace.path / "chains").exists()
    )


def test_saving_writes_the_chain_names_it_in_develop_and_the_command_line_finds_it(
    bench: Workbench,
) -> None:
    before = shown(config.on_tab(bench, "starter-qa", *form_of(WHOLE))[1:])
    assert "save it first" in before["unsaved"]
    message, name, *rest = config.on_save(bench, "renamed", "starter-qa", *form_of(WHOLE))
    path = bench.workspace.path / "chains" / "renamed.json"
    assert f"Saved as {path}." in message["value"] and name == "renamed"
    assert load_chain_file(path) == Chain("renamed", WHOLE.actions)
    after = shown(rest)
    assert after["unsaved"] == "" and "--chain renamed " in after["command"]
    unsaved = Chain("🏙️ new", WHOLE.actions)
    command = shown(config.exported(bench, "starter-qa", unsaved))["command"]
    assert f"--chain {shlex.quote('🏙️ new')} " in command, "it stands there once it is saved"
    edited = Chain("renamed", WHOLE.actions[:1])
    assert "save it first" in shown(config.exported(bench, "starter-qa", edited))["unsaved"]


def test_the_shipped_chain_needs_no_saving(bench: Workbench) -> None:
    seen = shown(config.exported(bench, "starter-qa", bench.workspace.chain("starter")))
    assert seen["unsaved"] == "" and "--chain starter --dataset starter-qa" in seen["command"]


def test_the_shown_command_lines_do_what_they_say(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bench = Workbench(tmp_path / "a folder; rm -rf x")
    bench.asking.save_chain(Chain("it's", (Action("identity", "said: {question}"),)), "it's")
    command = shown(config.exported(bench, "starter-qa", bench.workspace.chain("it's")))["command"]
    run, ask = (
        shlex.split(line)
        for line in command.splitlines()
        if line.startswith("python -m rallebench")
    )
    assert main([*ask[3:], "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["answer"] == "said: Your question"
    assert main([*run[3:], "--json", "--limit", "2", "--no-mlflow"]) == 0
    assert json.loads(capfd.readouterr().out)["n"] == 2


def test_a_retriever_and_a_model_that_are_written_out_are_known(bench: Workbench) -> None:
    chain = Chain(
        "written",
        (
            Action(
                "retrieve", "{question}", target="rrf:starter-bm25,starter-minilm?weights=0.7,0.3"
            ),
            Action("generate", "{question}", target="scripted:?echo=true"),
            Action("retrieve", "{question}", target="rrf:starter-bm25,nowhere"),
        ),
    )
    message = config.filled_with(bench, "starter-qa", chain)[0]["value"]
    assert "Not known in this workspace: action 3 names rrf:starter-bm25,nowhere." in message
