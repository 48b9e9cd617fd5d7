"""Draw the support of an answer: its sentences with their verdicts, citations and passages, and its quotations."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rallebench.core.numbers import plural
from rallebench.gui import html
from rallebench.render.numbers import text
from rallebench.views.support import ShownSentence, ShownSupport

STATES = {
    "supported": ("good", "supported"),
    "unsupported": ("bad", "unsupported"),
    "wrong": ("bad", "wrong citation"),
    "unchecked": ("", "not checked"),
}
"""State of a sentence → the kind of its tag, and its words."""
EMBEDDED = "the embedded head"


def support_folds(every: Sequence[ShownSupport]) -> Markup:
    """Draw a collapsed section for each model that checked the answer."""
    return Markup().join(support_fold(of_model, place) for place, of_model in enumerate(every))


def support_fold(answer: ShownSupport, place: int = 0) -> Markup:
    """Draw the sentences of an answer with their verdicts."""
    about = f"by {answer.checker or EMBEDDED}"
    if answer.note:
        return html.fold(
            "Support", html.note(f"Not checked: {answer.note}."), gist=about, id=f"support-{place}"
        )
    rows = Markup().join(map(sentence_row, answer.sentences))
    quotes = Markup().join(
        Markup('<li><q dir="auto">{}</q> {}</li>').format(
            quoted.text,
            tag("good", f"word for word in passage {quoted.passage}")
            if quoted.passage
            else tag("bad", "in no passage"),
        )
        for quoted in answer.quotations
    )
    body = Markup('<ol class="support">{}</ol>').format(rows)
    if quotes:
        body += html.heading("Quotations") + Markup('<ul class="support">{}</ul>').format(quotes)
    wrong = answer.count("wrong")
    gist = html.join_facts(
        f"{answer.count('supported')} of {plural(len(answer.sentences), 'sentence')} supported",
        f"{wrong} with a wrong citation" if wrong else "",
        about,
    )
    return html.fold("Support", body, gist=gist, id=f"support-{place}", opened=place == 0)


def sentence_row(row: ShownSentence) -> Markup:
    """Draw a sentence with its verdict, its citations, and the passage that supports it best."""
    kind, words = STATES[row.state]
    sentence = row.sentence
    if sentence.wrong:
        words += " " + ", ".join(f"[{number}]" for number in dict.fromkeys(sentence.wrong))
        if sentence.supported is not None:
            words += ", supported" if sentence.supported else ", unsupported"
    cited = ", ".join(f"[{number}]" for number in dict.fromkeys(sentence.cited))
    return Markup('<li class="{}"><span dir="auto">{}</span> {}{}{}</li>').format(
        row.state,
        sentence.text,
        tag(kind, words),
        Markup(" <small>cites {}</small>").format(cited) if cited else "",
        passage_fold(row),
    )


def passage_fold(row: ShownSentence) -> Markup:
    """Draw the passage that supports a sentence best, collapsed; "" for a sentence that was not checked."""
    if row.passage is None:
        return Markup()
    score = text(row.sentence.scores[row.number - 1], "quantity")
    title = row.passage.title or row.passage.doc_id
    label = "Passage" if row.sentence.supported else "Nearest passage"
    inside = Markup('<p dir="auto">{}</p>').format(row.passage.text)
    return html.fold(f"{label} {row.number}", inside, gist=f"{title} · {score}")


def tag(kind: str, words: str) -> Markup:
    """Draw a small label."""
    return Markup('<em class="{}">{}</em>').format(f"tag {kind}".strip(), words)
