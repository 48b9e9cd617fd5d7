"""Folders that hold no usable support model: one sentence each, which names the mend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_support import change_config, save_classifier, save_hhem, save_writer

from rallebench.core.errors import RalleError
from rallebench.core.support import AnswerClaim
from rallebench.metrics.support.folder import open_support_model
from rallebench.metrics.support.models import read_support_model

LETTERS = ["A", "B", "C"]


def refusal(option: str) -> str:
    with pytest.raises(RalleError) as error:
        open_support_model(read_support_model(option))
    return str(error.value)


def test_other_label_names_are_listed_and_can_be_mapped(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "m", LETTERS)
    text = refusal(str(folder))
    assert "has the labels A, B, C" in text and f"{folder}?supported=A" in text
    assert "has no label 'D'; it has A, B, C" in refusal(f"{folder}?supported=D")
    assert read_support_model(f"{folder}?supported=b").place == 1


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], 2),
        (["entailment", "not_entailment"], 0),
        (["hallucinated", "consistent"], 1),
        (["Hallucination", "other"], 1),
    ],
)
def test_usual_labels_are_known(tmp_path: Path, labels: list[str], place: int) -> None:
    assert read_support_model(str(save_classifier(tmp_path / "m", labels))).place == place


def test_labels_without_names_are_those_of_the_named_format_alone(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "m", ["LABEL_0", "LABEL_1"])
    assert "?supported=LABEL_0" in refusal(str(folder))
    assert read_support_model(f"{folder}?format=minicheck").place == 1
    tokens = save_classifier(tmp_path / "t", ["LABEL_0", "LABEL_1"], "BertForTokenClassification")
    assert read_support_model(f"{tokens}?format=lettucedetect").place == 0


def test_a_re_ranker_is_no_support_model_unless_a_threshold_is_named(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "m", ["LABEL_0"])
    text = refusal(str(folder))
    assert "gives one number and no label" in text and "?above=0.5" in text


def test_a_folder_without_weights(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "m", ["entailment", "neutral"])
    (folder / "model.safetensors").unlink()
    assert "contains no weights" in refusal(str(folder))


def test_weights_without_the_head_of_the_labels(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_classifier(tmp_path / "m", ["entailment", "neutral"])
    file = folder / "model.safetensors"
    state = {k: v for k, v in load_file(file).items() if not k.startswith("classifier")}
    save_file(state, file, {"format": "pt"})
    assert "lack classifier.bias, so its labels would be random" in refusal(str(folder))


def test_no_code_of_a_folder_is_run(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "m", ["entailment", "neutral"])
    (folder / "modeling_mine.py").write_text("raise SystemExit('the code was run')\n")
    mine: dict[str, Any] = {"auto_map": {"AutoConfig": "modeling_mine.Mine"}, "model_type": "mine"}
    change_config(folder, **mine)
    assert "no code of a model's folder is run" in refusal(str(folder))
    change_config(folder, model_type="bert")
    assert open_support_model(read_support_model(str(folder))).max_length == 64


def test_hhem_without_its_base(tmp_path: Path) -> None:
    folder = save_hhem(tmp_path / "hhem", tmp_path / "flan")
    assert f"{folder}?base=/models/flan-t5-base" in refusal(str(folder))


def test_a_t5_of_unknown_format(tmp_path: Path) -> None:
    folder = save_writer(tmp_path / "m", "mine")
    assert "?format=minicheck or" in refusal(str(folder))
    assert read_support_model(f"{folder}?format=autoais").format == "autoais"


def test_other_kinds_of_models_formats_and_settings(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "m", ["entailment", "neutral"])
    assert "does not read the format hhem" in refusal(f"{folder}?format=hhem")
    assert "has no setting 'batch'" in refusal(f"{folder}?batch=3")
    assert "above" in refusal(f"{folder}?above=7")
    change_config(folder, architectures=["BertModel"])
    assert "is a BertModel, which has no labels of support" in refusal(str(folder))
    assert "does not exist" in refusal("/no/such/folder")
    (folder / "config.json").write_text(json.dumps([1]))
    assert refusal(str(folder))


def test_a_sentence_longer_than_the_model(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "m", ["entailment", "neutral"])
    checker = open_support_model(read_support_model(str(folder)))
    reason = checker.refuses(AnswerClaim("the old city " * 20 + "."))
    assert "of the 64 tokens that the model reads" in reason
    assert not checker.refuses(AnswerClaim("the old city."))


def test_scores_that_are_not_numbers(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file
    from tiny_support import passage

    from rallebench.metrics.support.checker import SupportPair

    folder = save_classifier(tmp_path / "m", ["entailment", "neutral"])
    file = folder / "model.safetensors"
    state = load_file(file)
    state["classifier.bias"][:] = float("nan")
    save_file(state, file, {"format": "pt"})
    checker = open_support_model(read_support_model(str(folder)))
    with pytest.raises(RalleError, match="scores that are not numbers"):
        checker.score([SupportPair((passage(1, "a"),), AnswerClaim("b."))])
