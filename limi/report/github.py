"""What a workflow of GitHub shows beside a build: annotations, as lines on standard output."""

from __future__ import annotations

from limi.gates import Answer, Gate
from limi.report.gate import sentence, why

__all__ = ["annotate"]


def annotate(gate: Gate, file: str) -> list[str]:
    """A line for each broken rule, and one where the gate does not know; none where it passes."""
    if gate.answer == Answer.INCONCLUSIVE:
        return [_command("warning", file, "Fairness gate: inconclusive", sentence(gate))]
    return [
        _command("error", file, f"Fairness gate: {judged.rule.text}", why(judged))
        for judged in gate.broken
    ]


def _command(level: str, file: str, title: str, message: str) -> str:
    return f"::{level} file={_property(file)},title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Text that cannot end the line or begin another command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
