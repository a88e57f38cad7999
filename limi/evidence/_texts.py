"""The texts of a pack: what it is, a section for a model card, and whose questions it answers.

The frameworks are named by the numbers of their lines, and what a line asks for stands here in our
own words. A pack is material for whoever has to answer; it claims no conformity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from limi.audits.summary import Summary
from limi.metrics._rate import Rate
from limi.report import wording
from limi.system.words import both, count, markdown

__all__ = ["card", "readme"]

_LONGEST_VALUES = 12  # values of a protected column that are listed


def readme(summary: Summary, manifest: Mapping[str, Any], files: list[str]) -> str:
    """What the pack is, what was and was not tested, and how to repeat it."""
    return "\n".join(
        [
            "# Evidence of a test for decisions that depend on protected values",
            "",
            f"**{markdown(str(wording.answer(summary)))}**",
            "",
            "This pack holds one run of limi: what it asked, what it found, and how to ask it "
            "again. It records measurements. It does not claim conformity with any law, standard "
            "or framework, and it is not a certificate of fairness. Examples and bookmarks in the "
            "report may be rows of the table, and therefore real people: protect the pack as you "
            "protect the table.",
            "",
            "## What was tested",
            "",
            *map(_item, _tested(summary)),
            "",
            "## What was not tested",
            "",
            *map(_item, _untested(summary)),
            "",
            "## What the numbers do not say",
            "",
            *map(_item, wording.limits(summary)),
            "",
            "## How to repeat it",
            "",
            *_repeat(summary, manifest),
            "",
            "## Files",
            "",
            *(f"- `{name}`: {_FILES[name]}" for name in files),
            "",
            "Unpacked, `sha256sum -c SHA256SUMS` checks every file. Send the checksum of the pack "
            "itself through another channel to anyone who must trust it.",
            "",
        ]
    )


_FILES = {
    "README.md": "this text",
    "report.html": "the report, which opens in any browser and loads nothing from elsewhere",
    "summary.json": "all numbers of the report",
    "metrics.json": "every metric with its interval",
    "schema.toml": "the columns of the table, the protected values that were tried, and rules",
    "manifest.json": "settings, seed, versions and checksums of everything that went into the run",
    "findings.parquet": "every finding: two people whom the model decides differently",
    "model-card.md": "a section for the model's card",
    "SHA256SUMS": "the checksums of all other files",
}


def _tested(summary: Summary) -> list[str]:
    told = [
        f"Model: {summary.model}{_sum(summary, 'model_sha256')}; a decision is favorable where it "
        f"is {summary.favorable}"
        + ("" if summary.decision == "favorable" else f", by the rule {summary.decision}"),
        f"Table: {summary.table}, {count(summary.n_rows)} rows, {summary.n_columns} columns"
        f"{_sum(summary, 'data_sha256')}",
        *(
            f"Protected column {name}: {_values(values)}"
            for name, values in summary.protected.items()
        ),
        f"Search: {summary.method}, seed {summary.seed}, {count(summary.rows_checked)} rows, "
        f"{count(summary.queries)} questions; {count(summary.findings)} findings",
    ]
    for name, rate in wording.listed_rates(summary):
        shown = wording.percent(rate)
        told.append(
            f"Flip rate of {wording.population(name)} ({_aid(name)}): {shown.estimate} %, "
            f"95 % interval {shown.low} to {shown.high}, {wording.sample_size(summary, name, rate)}"
        )
    if summary.held_out is not None:
        told.append(f"Rows that the model has not seen: {summary.held_out}")
    if summary.twins is not None:
        told.append("Twins: what the model does with what goes with the protected columns")
    return told


def _aid(name: str) -> str:
    """What a population is, for somebody whose table it is not."""
    return wording.aid(name).replace("your table", "the table").replace(", as you said", "")


def _values(values: list[str]) -> str:
    more = len(values) - _LONGEST_VALUES
    shown = ", ".join(values[:_LONGEST_VALUES])
    return f"{shown} and {more} more" if more > 0 else shown


def _sum(summary: Summary, name: str) -> str:
    digest = summary.hashes.get(name)
    return "" if digest is None else f" (sha256 {digest})"


def _untested(summary: Summary) -> list[str]:
    told = [
        f"Columns other than {both(summary.protected)}, and values of "
        f"{'it' if len(summary.protected) == 1 else 'them'} other than those listed",
        *wording.unmeasured(summary),
        *(f"{name}: {why}" for name, why in summary.cut.items()),
    ]
    if summary.hashes.get("model_sha256") is None:
        told.append(
            "Which file holds the model: it was not read from a file, so it has no checksum"
        )
    if summary.held_out is None:
        told.append(
            "Rows that the model has not seen: none were given, and it may have been trained on "
            "rows of the table"
        )
    if summary.twins is None:
        told.append(
            "What the model does with columns that go along with the protected ones, such as a "
            "district that stands in for origin (limi test --twin)"
        )
    if wording.is_unsteady(summary.steadiness):
        told.append(
            "Single answers: the model's answers vary, so only flips that were seen every time "
            "count"
        )
    told.append("Future data, other versions of the model, and the process around its decisions")
    return told


def _repeat(summary: Summary, manifest: Mapping[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {number}" for name, number in sorted(summary.versions.items()))
    if summary.hashes.get("model_sha256") is None:
        have = (
            "Get the same table, whose checksum is above and in `manifest.json`, and the same "
            "model, which was not read from a file and therefore has no checksum."
        )
    else:
        have = (
            "Get the same table and the same model; their checksums are above and in "
            "`manifest.json`."
        )
    return [
        f"1. Install limi {summary.versions.get('limi', '')} (the run used {versions}).",
        f"2. {have}",
        *_start(summary),
        "",
        *map(_item, _settings(manifest)),
        *map(_item, _used(summary)),
        "",
        f"The same seed ({manifest.get('seed', summary.seed)}) gives the same findings.",
    ]


def _start(summary: Summary) -> list[str]:
    """How the run was started, down to the list of its settings."""
    if not summary.command:
        return ["3. The run was started from Python: call `limi.audit` with these settings."]
    return [
        "3. In the folder that the command's paths are relative to, run:",
        "",
        *(f"       {wording.clean(line)}" for line in summary.command.splitlines()),
        "",
        "Anything the command leaves out came from a `limi.toml` next to it, or from limi's "
        "defaults. These settings applied:",
    ]


_SETTINGS = {
    "table": "table",
    "model": "model",
    "target": "target",
    "favorable": "favorable",
    "protected": "protected",
    "protected_from": "protected from",
    "key": "key",
    "output": "output",
    "decision": "decision",
    "order": "order",
    "held_out": "held-out rows",
    "generator": "generator",
    "method": "method",
    "settings": "settings of the method",
    "budget": "budget",
    "rate_rows": "rate rows",
    "twin": "twins",
    "noisy": "noisy",
    "seed": "seed",
}
"""What a manifest says of a run, and what options call it."""


def _settings(manifest: Mapping[str, Any]) -> list[str]:
    """What somebody has to give to have the run again, as far as it was given."""
    # Leaving the generator out would choose one.
    given = {**manifest, "generator": manifest.get("generator") or "none"}
    told = [f"{words}: {_spell(given.get(name))}" for name, words in _SETTINGS.items()]
    return [
        *(line for line in told if not line.endswith(": ")),
        "columns and rules: those of schema.toml, which --schema takes",
    ]


def _used(summary: Summary) -> Iterator[str]:
    """Settings that follow from the budget, and need not be given."""
    for name, value in summary.used.items():
        yield f"of {name} the budget left {_spell(value)}, and will again"


def _spell(value: Any) -> str:
    """A value of a manifest in words; nothing where there is none."""
    if value is None:
        return ""
    if isinstance(value, dict):
        parts = ((name, _spell(inner)) for name, inner in value.items())
        return "; ".join(f"{name} = {words}" for name, words in parts if words)
    if isinstance(value, list):
        return ", ".join(map(_spell, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def card(summary: Summary) -> str:
    """A section for a model card, under the headings of Hugging Face's layout."""
    rates = wording.listed_rates(summary)
    where = wording.places(summary)
    return "\n".join(
        [
            "## Bias, Risks, and Limitations",
            "",
            f"{markdown(str(wording.answer(summary)))}.",
            "",
            *map(_item, wording.limits(summary)),
            "",
            "## Evaluation",
            "",
            "### Testing Data, Factors & Metrics",
            "",
            "#### Testing Data",
            "",
            _item(f"{summary.table}: {count(summary.n_rows)} rows, {summary.n_columns} columns"),
            *(
                _item(
                    f"{wording.population(name)}: {_aid(name)} "
                    f"({wording.sample_size(summary, name, rate)})"
                )
                for name, rate in rates
            ),
            "",
            "#### Factors",
            "",
            *(_item(f"{name}: {_values(values)}") for name, values in summary.protected.items()),
            "",
            "#### Metrics",
            "",
            "The flip rate: the share of people who would be decided differently if only "
            "protected values changed, together with what the rules of the table, if any, change "
            "along with them; 95 % intervals.",
            "",
            "### Results",
            "",
            "| people | flip rate | 95 % interval | rows |",
            "|---|---|---|---|",
            *(_rate_line(summary, name, rate) for name, rate in rates),
            "",
            "#### Summary",
            "",
            _item(f"{count(summary.findings)} findings by {summary.method}, seed {summary.seed}"),
            *(_item(f"Where: {region}") for region in map(str, where[:3])),
            f"- Measured with limi {markdown(summary.versions.get('limi', ''))}",
            "",
        ]
    )


def _rate_line(summary: Summary, name: str, rate: Rate) -> str:
    shown = wording.percent(rate)
    cells = (
        wording.population(name),
        f"{shown.estimate} %",
        f"{shown.low} to {shown.high} %",
        wording.sample_size(summary, name, rate).removeprefix("n = "),
    )
    return "| " + " | ".join(map(markdown, cells)) + " |"


def _item(text: str) -> str:
    return f"- {markdown(text)}"
