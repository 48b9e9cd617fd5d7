"""After an import: ten questions with each of the new indexes, or the new index in the chain of Build."""

from __future__ import annotations

from contextlib import suppress

from rallebench.core.errors import RalleError
from rallebench.core.starter import DEFAULT_CHAIN
from rallebench.core.types import Chain
from rallebench.gui.addresses import GridAddress, QuestionAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places._bench import window_bench
from rallebench.gui.places._few_table import VariantGrid
from rallebench.services.imports import ImportResult


def open_trial(page: Page, event: Event, name: str, result: ImportResult, dataset: str) -> Patch:
    """Put the new indexes into Build. With questions, the grid opens and asks ten of them with every index; without, the chain
    opens with the last index. ``name``: of the import; ``dataset``: chosen questions, if none were imported with the corpus.
    """
    if not result.indexes:
        return Patch()
    bench = window_bench(page, event)
    chains = trial_chains(page, bench.chain, name, result.indexes)
    dataset = name if result.dataset else dataset
    if not dataset:
        bench.edit(chains[-1])
        return Patch(
            go=QuestionAddress().href, say=f"The chain retrieves from {result.indexes[-1]} now."
        )
    bench.edit(chains[0])
    bench.dataset = dataset
    bench.question = page.workspace.questions(dataset)[0].question.qid
    bench.forget_steps()
    grid = event.session.state(VariantGrid)
    grid.variants, grid.sample, grid.begins = chains[1:], "10", True
    return Patch(go=GridAddress().href)


def trial_chains(page: Page, chain: Chain, name: str, indexes: tuple[str, ...]) -> list[Chain]:
    """Return the chain with each index in its first Retrieve action, under the name of the import; the starter's chain, if this
    one does not retrieve and answer.
    """
    kinds = [action.kind for action in chain.actions]
    if "retrieve" not in kinds or not chain.produces_answer:
        with suppress(RalleError):
            chain = page.workspace.chain(DEFAULT_CHAIN)
            kinds = [action.kind for action in chain.actions]
    at = kinds.index("retrieve") if "retrieve" in kinds else 0
    saved = page.workspace.chain_paths()
    title = f"{name}-trial" if name in saved else name
    own = Chain(title, chain.actions)
    return [own.replace_action(at, target=index) for index in indexes]
