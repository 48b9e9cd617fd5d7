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


def support_folds(shown: Sequence[ShownSupport]) -> Markup:
    """Draw a collapsed section for each model that checked the answer."""
    return Markup().join(support_fold(of_model, place) for place, of_model in enumerate(shown))


def support_fold(shown: ShownSupport, place: int = 0) -> Markup:
    """Draw the sentences of an answer with their verdicts."""
    about = f"by {shown.checker or EMBEDDED}"
    if shown.note:
        return html.fold(
            "Support", html.note(f"Not checked: {shown.note}."), gist=about, id=f"support-{place}"
        )
    rows = Markup().join(map(sentence_row, shown.sentences))
    quotes = Markup().join(
        Markup('<li><q dir="auto">{}</q> {}</li>').format(
            quoted.text,
            tag("good", f"word for word in passage {quoted.passage}")
            if quoted.passage
            else tag("bad", "in no passage"),
        )
        for quoted in shown.quotations
    )
    body = Markup('<ol class="support">{}</ol>').format(rows)
    if quotes:
        body += html.heading("Quotations") + Markup('<ul class="support">{}</ul>').format(quotes)
    wrong = shown.count("wrong")
    gist = html.join_facts(
        f"{shown.count('supported')} of {plural(len(shown.sentences), 'sentence')} supported",
        f"{wrong} with a wrong citation" if wrong else "",
        about,
    )
    return html.fold("Support", body, gist=gist, id=f"support-{place}", opened=place == 0)


def sentence_row(shown: ShownSentence) -> Markup:
    """Draw a sentence with its verdict, its citations, and the passage that supports it best."""
    kind, words = STATES[shown.state]
    sentence = shown.sentence
    if sentence.wrong:
        words += " " + ", ".join(f"[{number}]" for number in dict.fromkeys(sentence.wrong))
        if sentence.supported is not None:
            words += ", supported" if sentence.supported else ", unsupported"
    cited = ", ".join(f"[{number}]" for number in dict.fromkeys(sentence.cited))
    return Markup('<li class="{}"><span dir="auto">{}</span> {}{}{}</li>').format(
        shown.state,
        sentence.text,
        tag(kind, words),
        Markup(" <small>cites {}</small>").format(cited) if cited else "",
        passage_fold(shown),
    )


def passage_fold(shown: ShownSentence) -> Markup:
    """Draw the passage that supports a sentence best, collapsed; "" for a sentence that was not checked."""
    if shown.passage is None:
        return Markup()
    score = text(shown.sentence.scores[shown.number - 1], "quantity")
    title = shown.passage.title or shown.passage.doc_id
    label = "Passage" if shown.sentence.supported else "Nearest passage"
    inside = Markup('<p dir="auto">{}</p>').format(shown.passage.text)
    return html.fold(f"{label} {shown.number}", inside, gist=f"{title} · {score}")


def tag(kind: str, words: str) -> Markup:
    """Draw a small label."""
    return Markup('<em class="{}">{}</em>').format(f"tag {kind}".strip(), words)
