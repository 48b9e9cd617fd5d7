"""Support of tools and response formats by one server, learned from its refusals, omissions, reports and token counts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.formats import SCHEMA, Format
from rallebench.core.types import Generate, Message, ToolSpec, digest
from rallebench.http.client import Server
from rallebench.http.endpoint import is_openai
from rallebench.http.failures import Failure, reported_tokens
from rallebench.http.refusals import is_tool_refusal
from rallebench.llms import tool_json
from rallebench.llms._openai.refusals import Key, Refusals
from rallebench.llms._openai.requests import Settings, request_body

SECONDS = 30.0
"""Longest wait for an answer about tools; after it the server is assumed to support them."""

LEFT_OUT = ("response_format", "tool_choice", "tools")
"""Fields of ``extra_body`` that would change the meaning of the small request, or need tools."""

_WORD = {"word": {"type": "string", "description": "the word to look up"}}
TOOL = tool_json(
    ToolSpec("look_up", "Looks up a word in a dictionary and returns its definition.", {}),
    {"type": "object", "properties": _WORD, "required": ["word"]},
)
IGNORED = "The server ignores response_format"
PLAIN = "Plain completions take no response_format"


class Abilities:
    """The abilities of one server.

    Threads may share it: learning a fact twice does no harm. ``takes_tools``: None until :meth:`ask_for_tools`.
    ``ignores_format``: True once the server was seen to ignore ``response_format``.
    """

    def __init__(self, settings: Settings, server: Server, refusals: Refusals) -> None:
        self._settings, self._server, self._refusals = settings, server, refusals
        self._formats_refused: dict[str, str] = {}
        self._probing = threading.Lock()
        self.ignores_format = False
        self.takes_tools: bool | None = None

    def why_no_format(self, form: Format) -> str:
        """Return the reason to describe this format in the prompt, '' if it is sent as ``response_format``."""
        if self._settings.plain:
            return PLAIN
        return IGNORED if self.ignores_format else self._formats_refused.get(digest(form.value), "")

    def learn_no_format(self, form: Format, reason: str) -> None:
        """Remember that this format is refused or ignored, while the same request without it is answered."""
        if reason == IGNORED:  # a fact about one schema holds for all schemas
            self.ignores_format = True
        else:
            self._formats_refused[digest(form.value)] = reason

    def ask_for_tools(self) -> bool:
        """Return whether the model reads the tools that it is sent. Asks the server once; True if that cannot be
        determined.

        llama.cpp reports it in ``/props?model=…``. For any other server, the prompt tokens of one small request are
        compared with and without a tool: equal counts mean that the chat template drops the tool.
        """
        with self._probing:
            if self.takes_tools is None and self._settings.plain:
                self.takes_tools = False
            if self.takes_tools is None:
                self.takes_tools = is_openai(self._settings.base_url) or self._found_to_take_tools()
            return self.takes_tools

    def _found_to_take_tools(self) -> bool:
        path = f"//props?model={quote(self._settings.model, safe='')}"
        capabilities = self._answer("GET", path).get("chat_template_caps")
        reported = capabilities.get("supports_tools") if isinstance(capabilities, Mapping) else None
        if isinstance(reported, bool):
            return reported
        request = Generate("", (Message("user", "Hi"),), max_tokens=1)
        try:
            body = request_body(self._server.name, request, self._settings)
        except RalleError:
            return True
        alone = {field: body[field] for field in body if field not in LEFT_OUT}
        counts = []
        for body in (alone, {**alone, "tools": [TOOL]}):
            usage = self._post(body).get("usage")
            counts.append(reported_tokens(usage, "prompt_tokens"))
            if self.takes_tools is False:
                return False
            if not counts[-1]:
                return True
        return counts[0] != counts[1]

    def refuses_tools(self, failure: Failure, sent: Mapping[str, Any]) -> bool:
        """Return whether a failure says that the server takes no tools, and remember it."""
        refuses = "tools" in sent and is_tool_refusal(failure)
        if refuses:
            self.takes_tools = False
        return refuses

    def _post(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a small request, without the fields that the server refuses."""
        keys: list[Key] = []
        while True:
            sent = self._refusals.fit(body, False, keys).body
            answer, failure = self._response("POST", self._settings.path, sent)
            if failure is None:
                self._refusals.learn(keys)
                return answer
            key = self._refusals.read(failure, sent, keys)
            if self.refuses_tools(failure, sent) or key is None:
                return {}
            keys.append(key)

    def _answer(self, method: str, path: str) -> Mapping[str, Any]:
        return self._response(method, path, None)[0]

    def _response(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[Mapping[str, Any], Failure | None]:
        """Return the JSON object of the server's answer, or {} and the failure."""
        seconds = min(self._settings.timeout, SECONDS)
        try:
            document = self._server.document(method, path, body, seconds)[0]
            return (document if isinstance(document, Mapping) else {}), None
        except StoppedError:  # otherwise the result would be taken for an answer
            raise
        except Failure as failure:
            return {}, failure
        except RalleError:
            return {}, Failure("was not asked")


def in_prompt(body: Mapping[str, Any], form: Format) -> dict[str, Any]:
    """Return ``body`` with the format described in the last message, or before a plain prompt, instead of in
    ``response_format``.
    """
    alone = f"Answer with JSON alone, which must fit this JSON schema:\n{form.text}"
    wish = alone if form.kind == SCHEMA else form.wish
    fields = {key: value for key, value in body.items() if key != "response_format"}
    if "prompt" in body:  # the last line is often the beginning of the answer
        return {**fields, "prompt": f"{wish}\n\n{body['prompt']}"}
    *before, last = body["messages"]
    if last["role"] in ("user", "system"):
        messages = [*before, {**last, "content": f"{last['content']}\n\n{wish}"}]
    else:
        messages = [*before, last, {"role": "user", "content": wish}]
    return {**fields, "messages": messages}
