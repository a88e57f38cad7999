"""Gates: does a model keep the rules of a build? Pass, fail, or not known yet."""

from __future__ import annotations

from limi.gates._result import Answer, Gate, Judged
from limi.gates._rules import METRICS, Rule, Rules, is_metric, parse_rules, rule_texts
from limi.gates._run import gate

__all__ = [
    "METRICS",
    "Answer",
    "Gate",
    "Judged",
    "Rule",
    "Rules",
    "gate",
    "is_metric",
    "parse_rules",
    "rule_texts",
]
