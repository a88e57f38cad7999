"""Chat models, as `chat:URL#MODEL?template=loans`: a row becomes a prompt, its answer a decision.

Spoken to is `/v1/chat/completions`, as OpenAI and many others have it. A template
(`limi.remote.prompts`) says what is asked, in several wordings, of which each further asking of a
row takes the next. `answer` says how to read the reply: `words` of the template, `json` (an object
with `decision` or `score`), or `logprobs`, the share of the favorable words among the first ones.
An answer that is neither favorable nor unfavorable is a refusal, which decides nothing.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, InvalidInput, nearest
from limi.models._base import Answers, Decision
from limi.models._offers import ModelOffers
from limi.models._remote import AtAddress, RemoteModel, dump, find, parse_json, say_where
from limi.remote.address import parse
from limi.remote.cells import Cells
from limi.remote.client import Malformed, Request
from limi.remote.exchange import Exchange
from limi.remote.options import Remote
from limi.remote.prompts import Prompts, read_prompts

__all__ = ["ChatModel", "load"]

OFFERS = ModelOffers(by_address=True)

_ANSWERS = ("json", "logprobs", "words")
_OPTIONS = ("answer", "max_tokens", "seed", "temperature", "template")
_UNDECIDED = 0.5  # the edge, which takes part in no flip
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


@dataclass(frozen=True)
class ChatModel(RemoteModel):
    """Decisions of a chat model; a refusal is a score on the edge."""

    def _answer(self, inputs: Any) -> NDArray[np.float64]:
        raw = [None if one is None else float(one) for one in self.exchange(inputs).tolist()]
        refused = sum(one is None for one in raw)
        self.exchange.tally.add(answers=len(raw), refused=refused)
        return np.array([_UNDECIDED if one is None else one for one in raw], dtype=np.float64)


@dataclass(frozen=True)
class _Chat(AtAddress):
    prompts: Prompts
    answer: str
    settings: dict[str, Any]
    most_rows: int | None = 1

    @property
    def url(self) -> str:
        base = urlsplit(self.address.url).path.rstrip("/")
        whole = "/v1/chat/completions"
        shorter = (
            whole.removeprefix("/v1") if base.endswith(("/v1", "/chat/completions")) else whole
        )
        return self.address.join(shorter)

    @property
    def identity(self) -> str:
        about = (self.address.name, self.answer, sorted(self.settings.items()), self.prompts.text)
        return f"chat {self.url} {about}"

    @property
    def by_chance(self) -> bool:
        """Do answers move by themselves, or with the wording?"""
        return len(self.prompts.texts) > 1 or self.settings.get("temperature", 1) > 0

    def request(self, cells: Cells) -> Request:
        turn = cells.turns[0] if cells.turns else 0
        said = [{"role": "user", "content": self.prompts.render(cells.records[0], turn)}]
        if self.prompts.system:
            said.insert(0, {"role": "system", "content": self.prompts.system})
        tree = {"model": self.address.name, "messages": said, **self.settings}
        if "seed" in tree:
            tree["seed"] += turn  # another asking is another draw
        if self.answer == "logprobs":
            tree |= {"logprobs": True, "top_logprobs": 20, "max_tokens": 1}
        return Request(self.url, dump(tree))

    def read(self, body: bytes, n: int) -> list[Any]:
        choice = find(parse_json(body), ["choices", "0"], "choices.0")
        if not isinstance(choice, dict):
            raise Malformed("a choice that is not an object")
        if choice.get("finish_reason") == "content_filter":
            return [None]
        if self.answer == "logprobs":
            return [self._share(choice)]
        message = find(choice, ["message"], "choices.0.message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str) or message.get("refusal"):
            return [None]
        return [self._read_json(content) if self.answer == "json" else self._side(content)]

    def _side(self, text: str) -> float | None:
        side = self.prompts.side(text)
        return None if side is None else float(side)

    def _read_json(self, text: str) -> float | None:
        """The score or decision of the JSON object in a reply."""
        found = _OBJECT.search(text)
        try:
            tree = json.loads(found[0]) if found else {}
        except (ValueError, RecursionError):
            return None
        score = tree.get("score")
        if isinstance(score, (int, float)) and not isinstance(score, bool):
            if not 0 <= score <= 1:
                raise BadModel(f"the chat model answers a score of {score}; it must lie in [0, 1]")
            return float(score)
        return self._side(str(tree.get("decision", "")))

    def _share(self, choice: dict[str, Any]) -> float | None:
        """What the favorable words have of the probability of all that decide."""
        try:
            first = choice["logprobs"]["content"][0]["top_logprobs"]
            pairs = [(str(one["token"]), math.exp(float(one["logprob"]))) for one in first]
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            raise BadModel(
                f"{self.host} returns no log-probabilities; leave out answer=logprobs"
            ) from None
        sides = [(self.prompts.side(token), share) for token, share in pairs]
        favorable = sum(share for side, share in sides if side is True)
        both = favorable + sum(share for side, share in sides if side is False)
        return favorable / both if both else None


def load(place: str, decision: Decision, *, remote: Remote | None = None) -> ChatModel:
    """The chat model behind an address."""
    form = "chat:http://HOST:PORT#MODEL?template=loans"
    address = parse(place, form, known=_OPTIONS, named=True)
    template = address.options.get("template")
    if template is None:
        raise InvalidInput(f"a chat model needs a template for its prompts; write {form}")
    answer = address.options.get("answer", "words")
    if answer not in _ANSWERS:
        raise InvalidInput(f"unknown way to read answers, {answer!r}; {nearest(answer, _ANSWERS)}")
    if remote is None or remote.max_queries is None:
        raise InvalidInput(
            "a chat model is charged per question; limit the questions with --max-queries N"
        )
    shape = _Chat(address, read_prompts(template), answer, _settings(address.options))
    meant = replace(decision, output="score")
    model = ChatModel(Exchange(shape, remote), Answers(meant), (say_where(shape.host),))
    if decision.output == "label":
        raise InvalidInput(
            "the template says how to read a chat model's answers; leave --output out"
        )
    return model


def _settings(options: dict[str, str]) -> dict[str, Any]:
    """What is passed on to the server."""
    settings: dict[str, Any] = {}
    for name, kind in (("temperature", float), ("seed", int), ("max_tokens", int)):
        if name not in options:
            continue
        try:
            settings[name] = kind(options[name])
        except ValueError:
            settings[name] = -1
        if not 0 <= settings[name] < math.inf:
            raise InvalidInput(f"{name}={options[name]} must be 0 or more")
    return settings
