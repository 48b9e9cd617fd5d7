"""Every public format of support models: a tiny random model scores as a direct call of transformers does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_bert import CROSS_WORDS
from tiny_support import passage, save_classifier, save_hhem, save_writer

from rallebench.core.support import AnswerClaim
from rallebench.metrics.support.checker import CachedChecker, SupportPair
from rallebench.metrics.support.folder import FolderChecker, open_support_model
from rallebench.metrics.support.models import read_support_model

EXACT = "dtype=float32"
PAIRS = [
    SupportPair(
        (passage(1, "the old city , the new river and the king"),),
        AnswerClaim("the old river", "who ?"),
    ),
    SupportPair((passage(2, "a b c d"),), AnswerClaim("text of king and c .", "")),
    SupportPair(
        (passage(1, "the old city"), passage(2, "a b c d", "title")), AnswerClaim("the b .")
    ),
]


def open_option(option: str) -> FolderChecker:
    return open_support_model(read_support_model(option))


def parts(folder: Path, kind: str, base: Path | None = None) -> tuple[Any, Any]:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(base or folder)
    return tokenizer, getattr(transformers, kind).from_pretrained(folder).eval()


def premise(pair: SupportPair) -> str:
    """The passages as ALCE gives them to its model."""
    return "\n".join(f"Title: {p.title}\n{p.text}" if p.title else p.text for p in pair.premise)


def statement(pair: SupportPair) -> str:
    short = not pair.claim.text.endswith(".") and pair.claim.question
    return f"{pair.claim.question} {pair.claim.text}" if short else pair.claim.text


@torch.inference_mode()
def test_an_nli_model_gives_the_probability_of_entailment(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "nli", ["contradiction", "entailment", "neutral"])
    tokenizer, model = parts(folder, "AutoModelForSequenceClassification")
    expected = [
        model(**tokenizer(premise(p), statement(p), return_tensors="pt")).logits.softmax(-1)[0, 1]
        for p in PAIRS
    ]
    scores = open_option(f"{folder}?{EXACT}").score(PAIRS)
    assert scores == pytest.approx([float(x) for x in expected], abs=1e-5)
    assert len(set(scores)) == 3


@torch.inference_mode()
def test_one_label_gives_a_logistic_value_where_a_threshold_is_named(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "hhem1", ["LABEL_0"])
    tokenizer, model = parts(folder, "AutoModelForSequenceClassification")
    expected = [
        float(model(**tokenizer(premise(p), statement(p), return_tensors="pt")).logits.sigmoid())
        for p in PAIRS
    ]
    checker = open_option(f"{folder}?above=0.3&{EXACT}")
    assert checker.threshold == 0.3
    assert checker.score(PAIRS) == pytest.approx(expected, abs=1e-5)


@torch.inference_mode()
def test_minicheck_reads_passage_and_claim_as_one_text(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "mc", ["LABEL_0", "LABEL_1"])
    tokenizer, model = parts(folder, "AutoModelForSequenceClassification")
    texts = [f"{premise(p)}{tokenizer.sep_token}{statement(p)}" for p in PAIRS]
    expected = [
        float(model(**tokenizer(t, return_tensors="pt")).logits.softmax(-1)[0, 1]) for t in texts
    ]
    assert open_option(f"{folder}?format=minicheck&{EXACT}").score(PAIRS) == pytest.approx(
        expected, abs=1e-5
    )


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("lytang/MiniCheck-Flan-T5-Large", lambda p: f"predict: {premise(p)}</s>{statement(p)}"),
        (
            "google/t5_xxl_true_nli_mixture",
            lambda p: f"premise: {premise(p)} hypothesis: {statement(p)}",
        ),
    ],
)
@torch.inference_mode()
def test_a_t5_is_asked_for_its_first_token(
    tmp_path: Path, name: str, layout: Callable[[SupportPair], str]
) -> None:
    folder = save_writer(tmp_path / "t5", name)
    tokenizer, model = parts(folder, "AutoModelForSeq2SeqLM")
    no, yes = (tokenizer(word, add_special_tokens=False).input_ids[0] for word in "01")
    start = torch.zeros((1, 1), dtype=torch.long)
    expected = []
    for pair in PAIRS:
        encoded = tokenizer(layout(pair), return_tensors="pt")
        logits = model(
            input_ids=encoded.input_ids,
            attention_mask=encoded.attention_mask,
            decoder_input_ids=start,
        ).logits[0, 0]
        expected.append(float(logits[[no, yes]].softmax(-1)[1]))
    assert open_option(f"{folder}?{EXACT}").score(PAIRS) == pytest.approx(expected, abs=1e-5)


@torch.inference_mode()
def test_lettucedetect_counts_the_weakest_token_of_the_sentence(tmp_path: Path) -> None:
    folder = save_classifier(
        tmp_path / "lettuce", ["supported", "hallucinated"], "BertForTokenClassification", 256
    )
    tokenizer, model = parts(folder, "AutoModelForTokenClassification")
    expected = []
    for pair in PAIRS:
        texts = [f"Title: {p.title}\n{p.text}" if p.title else p.text for p in pair.premise]
        numbered = "\n".join(f"passage {i}: {text}" for i, text in enumerate(texts, 1))
        prompt = (
            f"Briefly answer the following question:\n{pair.claim.question}\nBear in mind that your response should be "
            f"strictly based on the following {len(texts)} passages:\n{numbered}\nIn case the passages do not contain the "
            'necessary information to answer the question, please reply with: "Unable to answer based on given passages."'
            "\noutput:"
        )
        if not pair.claim.question:
            prompt = "Summarize the following text:\n" + "\n".join(texts) + "\noutput:"
        encoded = tokenizer(prompt, pair.claim.text, return_tensors="pt")
        size = len(tokenizer(pair.claim.text, add_special_tokens=False).input_ids)
        start = encoded.input_ids.shape[1] - size - 1
        tokens = model(**encoded).logits.softmax(-1)[0, start : start + size, 0]
        expected.append(float(tokens.min()))
    assert open_option(f"{folder}?{EXACT}").score(PAIRS) == pytest.approx(expected, abs=1e-5)


@torch.inference_mode()
def test_hhem_is_read_from_its_weights_without_its_code(tmp_path: Path) -> None:
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer, T5ForTokenClassification

    folder, base = tmp_path / "hhem", tmp_path / "flan"
    save_hhem(folder, base)
    model = T5ForTokenClassification(AutoConfig.from_pretrained(base, num_labels=2)).eval()
    state = {k.removeprefix("t5."): v for k, v in load_file(folder / "model.safetensors").items()}
    model.load_state_dict(state, strict=False)
    tokenizer = AutoTokenizer.from_pretrained(base)
    expected = []
    for pair in PAIRS:
        prompt = (
            "<pad> Determine if the hypothesis is true given the premise?\n\n"
            f"Premise: {premise(pair)}\n\nHypothesis: {statement(pair)}"
        )
        encoded = tokenizer(prompt, return_tensors="pt")
        logits = model(input_ids=encoded.input_ids, attention_mask=encoded.attention_mask).logits
        expected.append(float(logits[0, 0].softmax(-1)[1]))
    scores = open_option(f"{folder}?base={base}&{EXACT}").score(PAIRS)
    assert scores == pytest.approx(expected, abs=1e-5)


def test_batches_of_mixed_lengths_change_no_score(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "nli", ["entailment", "neutral"])
    words = CROSS_WORDS[4:18]
    pairs = [
        SupportPair((passage(i, " ".join(words[: 1 + i % 14])),), AnswerClaim(f"{words[i % 14]} ."))
        for i in range(40)
    ]
    checker = open_option(f"{folder}?{EXACT}")
    together = checker.score(pairs)
    assert together == pytest.approx([checker.score([pair])[0] for pair in pairs], abs=1e-5)


def test_a_long_passage_counts_by_its_best_window(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "nli", ["entailment", "neutral"])
    checker = open_option(f"{folder}?max_length=24&{EXACT}")
    sentences = ["the old city . ", "a b c d the river . ", "king and king and king . "] * 6
    claim = AnswerClaim("the river .")
    long = SupportPair((passage(1, "".join(sentences)),), claim)
    (score,) = checker.score([long])
    windows = [text for text, _ in checker._cut(long)]
    assert len(windows) > 3 and "".join(windows) == "".join(sentences)
    alone = checker.score([SupportPair((passage(1, window),), claim) for window in windows])
    assert score == pytest.approx(max(alone), abs=1e-5)


def test_a_pair_is_scored_once(tmp_path: Path) -> None:
    class Counting:
        name, threshold, seen = "counting", 0.5, 0

        def score(self, pairs: list[SupportPair]) -> list[float]:
            self.seen += len(pairs)
            return [float(len(pair.claim.text)) for pair in pairs]

        def refuses(self, claim: AnswerClaim) -> str:
            return ""

    counting = Counting()
    checker = CachedChecker(counting, capacity=2)
    assert checker.score([PAIRS[0], PAIRS[1], PAIRS[0]]) == checker.score([*PAIRS[:2], PAIRS[0]])
    assert counting.seen == 2
    checker.score([PAIRS[2]])
    checker.score([PAIRS[1]])
    assert counting.seen == 3, "of two pairs, the one used last stays"
    checker.score([PAIRS[0]])
    assert counting.seen == 4
