"""A run whose parts do not describe the same test is not evidence."""

from __future__ import annotations

from limi.audits import run_folder
from limi.audits.problem import protected_values
from limi.audits.reopen import Run, count_findings
from limi.audits.summary import read_flips
from limi.errors import CorruptStore

__all__ = ["require_agreement"]

# What manifest and summary both tell.
_TOLD_TWICE = (
    *("table", "model", "target", "method", "seed", "decision", "protected", "held_out"),
    *("command", "versions"),
)


def require_agreement(run: Run) -> None:
    """CorruptStore where a part of a run is damaged, or was edited and now disagrees with another.

    This tells damage and slips. Whoever changes all parts alike is told by nobody but the table and
    the model, which the sums in the manifest name.
    """
    _agree_on_settings(run)
    summary, folder = run.summary, run.folder
    schema = run_folder.read_schema(folder)
    if (protected_values(schema), len(schema)) != (summary.protected, summary.n_columns):
        _refuse(run, "schema.toml and summary.json disagree about the columns or protected values")
    with run_folder.reading("summary", folder):
        for name, rate in summary.rates.items():
            if not 0 <= rate.low <= rate.high <= 1 or rate.n < 0:
                _refuse(run, f"the rate of {name} rows in summary.json is missing")
        for name, kept in summary.rate_flips.items():
            read_flips(kept, summary.rates[name])
    held = count_findings(run)
    if held != summary.findings:
        _refuse(
            run,
            f"summary.json counts {summary.findings:,} findings, and findings.parquet holds "
            f"{held:,}",
        )


def _agree_on_settings(run: Run) -> None:
    summary, manifest = run.summary, run.tree
    pairs = {name: getattr(summary, name) for name in _TOLD_TWICE} | summary.hashes
    for name, told in pairs.items():
        # Earlier manifests tell less.
        if name in manifest and manifest[name] != told:
            _refuse(run, f"manifest.json and summary.json differ in {name}")


def _refuse(run: Run, why: str) -> None:
    raise CorruptStore(
        f"the run in {str(run.folder)!r} was damaged or edited: {why}; run the test again"
    )
