"""The training program: its training data, the data it must never see, and its reproducibility."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rallebench.core.errors import BadFileError, MismatchError
from rallebench.corpora.reading import read_corpus
from rallebench.encoders.minilm import WEIGHTS_SHA256
from rallebench.reader import delta
from tools.reader import generative, overlap, prompts, sources
from tools.reader import train as program
from tools.reader.batches import batches_of
from tools.reader.calibration import RIGHT_SHARE, Observed, fit, summary, threshold, trade_off
from tools.reader.examples import Group, Paragraphs, Stage, groups_of
from tools.reader.loop import Settings, train
from tools.reader.sources import Context, Question

TOWNS = ("Bath", "Bonn", "Cork", "Graz", "Lyon", "Oslo", "Pisa", "Riga", "Turin", "Zagreb")


def towns(title: str, count: int = 10) -> list[dict[str, Any]]:
    """Paragraphs of an article, each about a town, with an answerable and an unanswerable question."""
    rows = []
    for i, town in enumerate(TOWNS[:count]):
        text = f"In the article {title} the town of {town} lies on a river. It was founded in {1000 + i} by monks."
        year = str(1000 + i)
        qas = [
            {
                "id": f"{title}-{i}",
                "question": f"When was {town} founded?",
                "is_impossible": False,
                "answers": [{"text": year, "answer_start": text.index(year)}],
            },
            {
                "id": f"{title}-{i}-no",
                "question": f"Who burned down {town}?",
                "is_impossible": True,
                "answers": [],
            },
        ]
        rows.append({"source": "x", "title": title, "context": text, "qas": qas})
    return rows


def write_sets(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name, titles in (
        ("squad_dev", ("Rivers", "Teacher", "Normans")),
        ("squadshifts_new_wiki", ("Monks", "Istanbul")),
        ("qamr", ("Wiki:1",)),
        ("qed_nq", ("Gallbladder", "Fortnite", "Monks")),
    ):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            for row in (row for title in titles for row in towns(title)):
                file.write(json.dumps(row) + "\n")
    return folder


def contexts(title: str = "Rivers") -> list[Context]:
    return [
        Context(
            "squad_dev",
            title,
            row["context"],
            tuple(
                Question(
                    q["id"],
                    q["question"],
                    tuple((a["text"], a["answer_start"]) for a in q["answers"]),
                )
                for q in row["qas"]
            ),
        )
        for row in towns(title)
    ]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    from rallebench.encoders.minilm import model_folder

    return AutoTokenizer.from_pretrained(str(model_folder()), local_files_only=True)


STAGE = Stage(
    "small",
    rate=1e-4,
    shares={"squad_dev": 1.0},
    unanswerable=1.0,
    elsewhere=0.2,
    windows={1: 0.5, 3: 0.5},
    absent=0.2,
    width=(40, 50),
    falls=((40, 40),),
)


def made(tokenizer: Any, seed: str = "1") -> list[Group]:
    return groups_of(Paragraphs(contexts(), tokenizer), STAGE, random.Random(seed))


def test_an_article_belongs_to_one_part_only(tmp_path: Path) -> None:
    folder = write_sets(tmp_path / "sets")
    parts = sources.split(sources.read_source(folder, sources.SOURCES[0]))
    assert {c.title for c in parts["train"]} == {"Rivers"}
    assert {c.title for c in parts["development"]} == {"Teacher"}
    assert {c.title for c in parts["test"]} == {"Normans"}
    assert not sources.TEST_ARTICLES & sources.DEVELOPMENT_ARTICLES


def test_an_answer_that_is_not_in_its_context_is_reported_with_its_line(tmp_path: Path) -> None:
    rows = towns("Rivers", 2)
    rows[1]["qas"][0]["answers"][0]["answer_start"] += 1
    (tmp_path / "squad_dev.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(BadFileError, match="line 2: the answer of Rivers-1 does not stand at"):
        sources.read_source(tmp_path, sources.SOURCES[0])


def test_a_paragraph_with_a_sentence_of_an_excluded_corpus_is_left_out(tmp_path: Path) -> None:
    shared = contexts()[3].text.split(". ")[0] + "."
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text(
        f"id\ttext\ttitle\n1\tSome other words before. {shared.upper()}\tElsewhere\n",
        encoding="utf-8",
    )
    kept = overlap.without(contexts(), overlap.excluded_marks([corpus]), frozenset())
    assert [c.text for c in kept] == [c.text for i, c in enumerate(contexts()) if i != 3]
    assert overlap.without(contexts(), set(), frozenset({"Rivers"})) == []


def test_articles_of_search_questions_are_split_by_the_hash_of_their_names() -> None:
    names = [f"Article {i}" for i in range(2000)]
    parts = [sources.part_of(name, hashed=True) for name in names]
    assert abs(parts.count("test") / 2000 - sources.TEST_SHARE) < 0.03
    assert abs(parts.count("development") / 2000 - sources.DEVELOPMENT_SHARE) < 0.03
    assert {sources.part_of(name) for name in names} == {"train"}
    assert sources.part_of("Doctor_Who", hashed=True) == sources.part_of("Doctor Who") == "test"


def test_an_article_that_one_set_keeps_back_is_trained_on_from_no_set() -> None:
    kept_back = next(
        name
        for name in map("Town {}".format, range(99))
        if sources.part_of(name, hashed=True) == "test"
    )
    rows = [
        Context(source, kept_back, "A town.", ()) for source in ("squadshifts_new_wiki", "qed_nq")
    ]
    parts = sources.split([*rows, Context("squadshifts_new_wiki", "Rivers", "A river.", ())])
    assert [c.title for c in parts["train"]] == ["Rivers"]


def test_the_training_data_shares_no_sentence_with_what_is_reported_on(shared_data: Path) -> None:
    reported = [shared_data / "kilt" / f"{name}_corpus.tsv" for name in ("xquad_en", "qed_nq")]
    parts, described = program.contexts_of(shared_data / "qa-train", reported)
    trained = {sources.plain_title(c) for c in parts["train"]}
    marks = overlap.excluded_marks([program.STARTER])
    for corpus, hashed in zip(reported, (False, True)):
        for passage in read_corpus(corpus):
            title = passage.title.replace("_", " ")
            if sources.part_of(title, hashed) == "test" and title not in trained:
                marks |= overlap.marks(passage.text)
    assert len(marks) > 2000
    assert not any(overlap.marks(c.text) & marks for c in parts["train"])
    assert {d["name"] for d in described} == {"squad_dev", "squadshifts_new_wiki", "qamr", "qed_nq"}
    kept_back = {sources.plain_title(c) for part in ("test", "development") for c in parts[part]}
    assert not trained & (kept_back | sources.TEST_ARTICLES | sources.DEVELOPMENT_ARTICLES)


def test_a_group_holds_its_answer_and_distractors_never_do(tokenizer: Any) -> None:
    groups = made(tokenizer)
    assert {len(g.windows) for g in groups} == {1, 3}
    assert any(g.answer is None for g in groups)
    for group in groups:
        asked = tokenizer.decode(group.windows[0].ids[1 : group.windows[0].context - 1])
        assert all(w.ids[: w.context] == group.windows[0].ids[: w.context] for w in group.windows)
        assert all(len(w.ids) <= STAGE.width[1] for w in group.windows)
        if group.answer is None:
            continue
        number, first, last = group.answer
        answer = tokenizer.decode(group.windows[number].ids[first : last + 1])
        assert answer == str(1000 + TOWNS.index(asked.split()[2].capitalize()))
        others = [w for i, w in enumerate(group.windows) if i != number]
        assert not any(answer in tokenizer.decode(w.ids[w.context :]).split() for w in others)


def test_batches_lay_the_windows_of_a_group_side_by_side(tokenizer: Any) -> None:
    groups = made(tokenizer)
    batches = batches_of(groups, 400, random.Random(1))
    assert sum(len(b.first) for b in batches) == len(groups)
    for batch in batches:
        flat = batch.ids.reshape(len(batch.first), -1)
        for row, (first, last) in enumerate(zip(batch.first, batch.last)):
            if first >= 0:
                assert tokenizer.decode(flat[row, first : last + 1]).isdigit()
                assert batch.inside.reshape(flat.shape)[row, [first, last]].all()


def test_the_same_seed_makes_the_same_batches_and_another_one_others(tokenizer: Any) -> None:
    assert made(tokenizer) == made(tokenizer)
    assert made(tokenizer) != made(tokenizer, "2")


def trained(
    tokenizer: Any,
    work: Path,
    stop_after: int = 1000,
    falls: tuple[tuple[int, int], ...] = ((40, 40),),
) -> Any:
    from rallebench.encoders.minilm import model_folder
    from rallebench.reader.network import build

    network = build(model_folder(), attention="eager")
    for values in network.parameters():
        values.data = values.data.clone()
    settings = Settings(seed=5, every=1, stages=(replace(STAGE, falls=falls, tokens=400),))
    for progress in train(network, Paragraphs(contexts(), tokenizer), settings, work):
        if progress.step >= stop_after:
            break
    return network.state_dict()


@pytest.mark.slow
def test_training_repeats_itself_and_an_interrupted_run_ends_where_a_whole_one_does(
    tokenizer: Any, tmp_path: Path
) -> None:
    whole, again = (trained(tokenizer, tmp_path / name) for name in ("a", "b"))
    trained(tokenizer, tmp_path / "c", stop_after=2)
    resumed = trained(tokenizer, tmp_path / "c")
    for name, values in whole.items():
        assert np.array_equal(values.numpy(), again[name].numpy()), name
        assert np.array_equal(values.numpy(), resumed[name].numpy()), name
    with pytest.raises(MismatchError, match="is of another run"):
        for _ in train_with_other_seed(tokenizer, tmp_path / "c"):
            pass


def train_with_other_seed(tokenizer: Any, work: Path) -> Any:
    from rallebench.encoders.minilm import model_folder
    from rallebench.reader.network import build

    network = build(model_folder(), attention="eager")
    settings = Settings(seed=6, every=1, stages=(replace(STAGE, tokens=400),))
    return train(network, Paragraphs(contexts(), tokenizer), settings, work)


@pytest.mark.slow
def test_a_run_may_be_ended_sooner_and_its_rates_stay_same(tokenizer: Any, tmp_path: Path) -> None:
    longer, sooner = ((40, 40),), ((40, 40), (4, 4))
    trained(tokenizer, tmp_path / "a", stop_after=1, falls=longer)
    resumed = trained(tokenizer, tmp_path / "a", falls=sooner)
    for name, values in trained(tokenizer, tmp_path / "b", falls=sooner).items():
        assert np.array_equal(values.numpy(), resumed[name].numpy()), name
    trained(tokenizer, tmp_path / "c", stop_after=2, falls=longer)
    with pytest.raises(MismatchError, match="rates"):
        trained(tokenizer, tmp_path / "c", falls=((3, 300),))


@pytest.mark.slow
def test_one_command_makes_the_mean_of_trainings_and_a_card_and_goes_on_where_it_stopped(
    tmp_path: Path,
) -> None:
    from rallebench.reader.spans import load

    out, again = (tmp_path / name / "weights.safetensors" for name in ("a", "b"))
    flags = ["--data", str(write_sets(tmp_path / "sets")), "--seed", "1"]
    for path in (out, again):
        path.parent.mkdir()
        work = ["--work", str(tmp_path / "work")]  # the second time all trainings are finished
        assert program.main([*flags, *work, "--out", str(path)]) == 0
    (kept, about), (same, of_same) = (delta.read(path, WEIGHTS_SHA256) for path in (out, again))
    assert about == of_same and all(np.array_equal(kept[name], same[name]) for name in kept)
    card = out.with_name("MODEL_CARD.md").read_text(encoding="utf-8")
    for said in ("CC BY-SA 4.0", "squadshifts_new_wiki", "Teacher", "AUROC", "short (seed 3)"):
        assert said in card
    assert load("float32", out).about == about
    seeds = [("side-by-side", 1), ("mixed-1", 1), ("short", 1), ("mixed-2", 3), ("short", 2)]
    seeds += [("mixed-3", 4), ("short", 3), ("mixed-4", 5)]
    assert [(training["name"], training["seed"]) for training in about["stages"]] == seeds
    assert 0 < about["refuse_below"]["short"] < 1
    assert "Rivers" in about["trained_articles"] and "Normans" not in about["trained_articles"]
    head = [
        torch_file(tmp_path / "work" / f"seed-{seed}" / f"stage-0-{name}.pt")["network"][
            "head.weight"
        ].numpy()
        for name, seed in seeds
    ]
    mean, means = (head[0] + head[1]) / 2, []
    for short, mixed in zip(head[2::2], head[3::2]):
        means.append(((mean + short) / 2 + mixed) / 2)
        mean = means[-1]
    np.testing.assert_allclose(kept["head.weight"], (means[-2] + means[-1]) / 2, rtol=1e-5)


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_taken_up_ends_all_trainings_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--data", str(write_sets(tmp_path / "sets")), "--work", str(tmp_path / "work")]
    path = tmp_path / "work" / "seed-1" / "stage-0-side-by-side.pt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half of it")
    assert program.main([*flags, "--out", str(tmp_path / "weights.safetensors")]) == 2
    assert capsys.readouterr().err == f"The checkpoint {path} is damaged; delete it.\n"
    assert not active_children() and not (tmp_path / "weights.safetensors").exists()


def torch_file(path: Path) -> Any:
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


def test_missing_data_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--data", str(tmp_path), "--out", str(tmp_path / "x.safetensors")]) == 2
    said = capsys.readouterr().err
    assert "squad_dev.jsonl.gz is not in" in said and "Traceback" not in said
    assert program.main(["--out", str(tmp_path / "x.safetensors")]) == 2
    assert "--data FOLDER" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_area_under_the_curve_is_the_chance_of_a_right_order() -> None:
    assert prompts.auroc([2, 3], [0, 1]) == 1
    assert prompts.auroc([0, 1], [2, 3]) == 0
    assert prompts.auroc([1, 1], [1]) == 0.5


def observed() -> list[Observed]:
    drawn = np.random.default_rng(0)
    margins = drawn.normal(0, 1, 2000)
    right = drawn.random(2000) < 1 / (1 + np.exp(-(2 * margins - 0.5)))
    return [
        Observed({"margin": float(m), "noise": 0.3}, bool(r), bool(r or m > 0.5))
        for m, r in zip(margins, right)
    ]


def test_the_confidence_recovers_how_right_answers_arise_and_is_calibrated() -> None:
    weights = fit(observed())
    assert weights["margin"] == pytest.approx(2, abs=0.25)
    found = summary(observed(), weights)
    assert found["calibration_error"] < 0.03
    assert found["auroc_right"] > 0.85


def test_the_threshold_is_the_largest_that_keeps_the_right_answers() -> None:
    table = trade_off(observed(), fit(observed()))
    chosen = threshold(table)
    assert all(row["right_kept"] < RIGHT_SHARE for row in table if row["below"] > chosen)
    assert next(row for row in table if row["below"] == chosen)["right_kept"] >= RIGHT_SHARE
    shares = [row["absent_declined"] for row in table]
    assert shares == sorted(shares)


def read_examples(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file)
    return document


def test_a_generative_reader_learns_an_answer_only_where_a_passage_holds_it(tmp_path: Path) -> None:
    folder = write_sets(tmp_path / "sets")
    for name in ("first", "second"):
        generative.write_examples(folder, [], tmp_path / name, seed=1)
    document = read_examples(tmp_path / "first")
    assert read_examples(tmp_path / "second") == document
    paragraphs = document["paragraphs"]
    assert not [
        text for text in paragraphs if "article Normans" in text or "article Teacher" in text
    ]
    answered = [(numbers, answer) for _, numbers, answer in document["examples"] if answer]
    assert answered and len(answered) < len(document["examples"])
    for numbers, answer in answered:
        assert sum(answer in paragraphs[number] for number in numbers) == 1
    declined = [(q, numbers) for q, numbers, answer in document["examples"] if answer is None]
    for question, numbers in declined:
        if question.startswith("When was"):
            town = question.split()[2]
            assert not any(f"town of {town} " in paragraphs[number] for number in numbers)


@pytest.mark.slow
def test_the_loss_of_a_generative_reader_counts_the_answer_alone_and_no_padding() -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=50,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
    )
    batch = [([5, 6, 7, 8, 9], 3), ([11, 12, 13, 14, 15, 16, 17, 18], 4)]
    losses = []
    for tokens, start in batch:
        chances = model(torch.tensor([tokens])).logits[0].detach().log_softmax(-1)
        losses.append(-sum(float(chances[i - 1, tokens[i]]) for i in range(start, len(tokens))))
    assert float(generative.loss_of(model, batch, "cpu").detach()) == pytest.approx(
        sum(losses) / 2, rel=1e-4
    )
