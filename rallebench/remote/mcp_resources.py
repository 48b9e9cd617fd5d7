"""Reports of runs, and cards of metrics, judges, corpora and the built-in reader, as resources of MCP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain

import anyio.to_thread
from mcp import MCPError, UriTemplate, types
from mcp.server import ServerRequestContext

from rallebench.core.errors import NotFoundError
from rallebench.core.surrogates import without_halves
from rallebench.remote.calls import Calls
from rallebench.remote.wording import CallError, in_one_sentence
from rallebench.services.workbench import Workbench
from rallebench.views import cards

REPORT = UriTemplate.parse("rallebench://runs/{name}/report")
CARD = UriTemplate.parse("rallebench://cards/{kind}/{name}")
PAGE = 100
"""Resources of one page of the list, and completions of one answer."""
JSON = "application/json"


class Resources:
    """The resources over one workbench."""

    def __init__(self, workbench: Workbench) -> None:
        self._bench, self._workspace = workbench, workbench.workspace

    async def list(
        self, _: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Handle ``resources/list``: reports first, newest first. A cursor is the number of resources before its page."""
        cursor = (params.cursor if params else None) or "0"
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
            raise MCPError(types.INVALID_PARAMS, f"The cursor {cursor[:60]!r} is of no page.")
        every = await anyio.to_thread.run_sync(lambda: [*self._resources()])
        end = int(cursor) + PAGE
        following = str(end) if end < len(every) else None
        return types.ListResourcesResult(resources=every[int(cursor) : end], next_cursor=following)

    async def list_templates(
        self, _: ServerRequestContext, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Handle ``resources/templates/list``."""
        kinds = ", ".join(cards.CARDS)
        report = types.ResourceTemplate(
            name="report",
            uri_template=str(REPORT),
            description="Results of a run: metrics with intervals and counts, costs, losses by stage.",
            mime_type=JSON,
        )
        card = types.ResourceTemplate(
            name="card",
            uri_template=str(CARD),
            description=f"Definition, source and traps of a name. kind: {kinds}.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[report, card])

    async def read(
        self, _: ServerRequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Handle ``resources/read``. Raises MCPError with one sentence."""
        uri = str(params.uri)
        try:
            contents = await anyio.to_thread.run_sync(in_one_sentence(self._read, CallError), uri)
        except CallError as error:
            sentence = without_halves(str(error))
            raise MCPError(types.INVALID_PARAMS, sentence, {"uri": uri}) from None
        return types.ReadResourceResult(contents=[contents])

    async def complete(
        self, _: ServerRequestContext, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Handle ``completion/complete`` for the parts of an address."""
        known = await anyio.to_thread.run_sync(lambda: [*self._values(params)])
        typed = params.argument.value.casefold()
        fitting = [value for value in known if value.casefold().startswith(typed)]
        return types.CompleteResult(
            completion=types.Completion(
                values=fitting[:PAGE], total=len(fitting), has_more=len(fitting) > PAGE
            )
        )

    def _resources(self) -> Iterator[types.Resource]:
        for name, line in cards.reported_runs(self._workspace).items():
            uri = REPORT.expand({"name": name})
            yield types.Resource(
                uri=uri, name=f"report of {name}", description=without_halves(line), mime_type=JSON
            )
        for kind, card in cards.CARDS.items():
            for name, line in card.names(self._workspace).items():
                uri = CARD.expand({"kind": kind, "name": name})
                yield types.Resource(
                    uri=uri,
                    name=f"card of {name}",
                    description=without_halves(line),
                    mime_type=card.media_type,
                )

    def _read(self, uri: str) -> types.TextResourceContents:
        media_type = JSON
        if parts := REPORT.match(uri):
            (name,) = map(str, parts.values())
            text = json.dumps(Calls(self._bench).report(name), ensure_ascii=False)
        elif parts := CARD.match(uri):
            kind, name = (str(parts[part]) for part in CARD.variable_names)
            card = cards.card_kind(kind)
            text, media_type = card.read(self._workspace, name), card.media_type
        else:
            raise NotFoundError(f"There is no resource {uri[:200]!r}; see {REPORT} and {CARD}.")
        return types.TextResourceContents(uri=uri, text=without_halves(text), mime_type=media_type)

    def _values(self, params: types.CompleteRequestParams) -> Iterable[str]:
        ref, part = params.ref, params.argument.name
        if not isinstance(ref, types.ResourceTemplateReference):
            return ()
        if (ref.uri, part) == (str(REPORT), "name"):
            return cards.reported_runs(self._workspace)
        if (ref.uri, part) == (str(CARD), "kind"):
            return cards.CARDS
        if (ref.uri, part) == (str(CARD), "name"):
            chosen = (params.context.arguments if params.context else None) or {}
            kinds = [card for kind, card in cards.CARDS.items() if kind == chosen.get("kind", kind)]
            return chain.from_iterable(card.names(self._workspace) for card in kinds)
        return ()
