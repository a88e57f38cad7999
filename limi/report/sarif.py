"""The answer of a gate as SARIF 2.1.0, for code scanning.

One result for each broken rule, and one for each region in which a rule is broken beyond doubt. The
place of a result is the file that holds the rules. Ids and fingerprints hold no numbers, so that
the same trouble is the same alert in the next build.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import quote

from limi.gates import Gate, Judged
from limi.report.gate import why
from limi.system.shown import clean, to_json

__all__ = ["render"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_REGION = "limi/region"


def render(gate: Gate, file: str, text: str | None = None) -> str:
    """The JSON; `file` is where the rules stand, as seen from the project, `text` its content."""
    results = []
    described: dict[str, str] = {}
    for judged in gate.broken:
        metric = f"limi/{judged.rule.metric}"
        described[metric] = (
            f"The gate limits {judged.rule.metric}, and the model exceeds the limit."
        )
        place = _place(file, text, judged)
        results.append(_result(metric, why(judged), place, _key(gate, judged), _numbers(judged)))
        for region in judged.broken_in:
            described[_REGION] = "Decisions flip too often in a group of people."
            said = (
                f"{region.hits:,} of {region.n:,} rows flip where {region.words}; the rate is at "
                f"least {100 * region.low:.2f} %, and the gate allows {100 * judged.rule.limit:g} %"
            )
            key = [*_key(gate, judged), region.words]
            numbers = {"low": region.low, "high": region.high, "rows": region.n}
            results.append(_result(_REGION, said, place, key, numbers))
    order = list(described)
    for result in results:
        result["ruleIndex"] = order.index(result["ruleId"])
    driver = {
        "name": "limi",
        "semanticVersion": gate.versions["limi"],
        "rules": [_descriptor(name, words) for name, words in described.items()],
    }
    run = {
        "tool": {"driver": driver},
        "results": results,
        "properties": {"answer": str(gate.answer), "queries": gate.queries, "error": gate.error},
    }
    return to_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _descriptor(name: str, words: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": words},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["fairness"]},
    }


def _result(
    rule: str, message: str, place: dict[str, Any], key: list[str], numbers: dict[str, Any]
) -> dict[str, Any]:
    sum_of_key = hashlib.sha256("\0".join([rule, *key]).encode("utf-8", "surrogatepass"))
    return {
        "ruleId": rule,
        "level": "error",
        "message": {"text": clean(message)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"limi/v1": sum_of_key.hexdigest()},
        "properties": numbers,
    }


def _key(gate: Gate, judged: Judged) -> list[str]:
    """What makes a result the same in the next build: who is bound, not by how much."""
    return [judged.rule.name, judged.rule.population, *sorted(gate.protected)]


def _numbers(judged: Judged) -> dict[str, Any]:
    known = judged.estimate
    return {
        "value": known.value,
        "low": known.low,
        "high": known.high,
        "limit": judged.rule.limit,
        "rows": known.n,
        "queries": judged.queries,
    }


def _place(file: str, text: str | None, judged: Judged) -> dict[str, Any]:
    """The line of a rule in its file, the first where it is not found."""
    line = 1
    for number, words in enumerate((text or "").splitlines(), start=1):
        name = re.match(r"\s*[\"']?([\w .-]+?)[\"']?\s*=", words)
        if name and re.sub(r"[\s-]+", "_", name[1]).casefold() == judged.rule.metric:
            line = number
            break
    uri = quote(file.encode("utf-8", "surrogateescape"), safe="/:")
    return {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
