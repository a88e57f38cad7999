"""How the help shows options: `--seed N` and not `--seed <int>`; many of them under headings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from typer.core import TyperArgument, TyperCommand, TyperGroup

__all__ = ["Command", "Group"]

_MANY = 20  # options; a list of more is read under headings
_PANELS = {
    "Model": "model output decision order noisy device max-batch trust trust-pickle",
    "Table": "protected target favorable schema constraint drop only held-out fit-rows table "
    "protected-from key rename fill privileged label-names redact show-personal",
    "Search": "method methods set generator twin keep twin-generator rate-rows rows seed seeds "
    "workers cluster near domain domain-seconds solver",
    "Budget": "max-rows max-queries max-findings max-seconds error seconds-each max-boxes",
    "Remote models": "header concurrency cache timeout price dry-run",
    "Output": "out force resume html junit sarif markdown inconclusive log plan volume verbose "
    "full config json width no-model onnx",
}
_PANEL_OF = {f"--{name}": panel for panel, names in _PANELS.items() for name in names.split()}

_PLACEHOLDERS = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


class Command(TyperCommand):
    """A command whose help names what stands behind each option."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All of them, the help's own among them."""
        params = _name_values(super().get_params(ctx))
        if len(params) > _MANY:
            for param in params:
                if getattr(param, "rich_help_panel", "") is None:
                    param.rich_help_panel = _PANEL_OF.get(param.opts[0])
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Without the braces that typer puts around what must be given."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Group(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All of them, the help's own among them."""
        return _name_values(super().get_params(ctx))


def _name_values(params: list[Any]) -> list[Any]:
    """Say what a parameter takes, unless it says so itself; earlier versions of typer do it."""
    for param in params:
        described = getattr(param, "type_descriptor", None)
        if param.metavar is not None or described is None or described.is_choice:
            continue
        if isinstance(param, TyperArgument):
            param.metavar = str(param.name).upper()
        elif param.is_flag:
            param.metavar = ""
        else:
            kind = get_args(described.annotation)[0] if described.is_list else described.annotation
            param.metavar = _PLACEHOLDERS.get(kind)
    return params
