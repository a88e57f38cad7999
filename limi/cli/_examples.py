"""Examples that the help of each command ends with, and the reference shows."""

from __future__ import annotations

__all__ = ["EXAMPLES", "epilog"]

_MODEL = "--model onnx:model.onnx --target approved --favorable yes --protected sex"

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("limi demo", "limi demo --out runs/demo"),
    "init": ("limi init people.csv --model onnx:model.onnx",),
    "test": (
        f"limi test people.csv {_MODEL} --out runs/first",
        "limi test people.csv --model python:model.py:decide --protected age=18-80:5",
        "limi test adult --model demo:income --protected sex --max-queries 20000 --json",
    ),
    "images": (
        "limi images fit --images photos --labels labels.csv --out faces.npz",
        "limi images test --images photos --labels labels.csv --target onnx:smile.onnx "
        "--protected sex --out runs/smile",
    ),
    "schema": (
        "limi schema people.csv --out schema.toml",
        "limi schema people.csv --mine --protected sex --target approved",
    ),
    "certify": (
        "limi certify people.csv --model xgboost:model.json --target approved --protected sex "
        "--near age=5",
    ),
    "report": ("limi report runs/first", "limi report runs/first --full"),
    "explore": (
        "limi explore runs/first",
        "limi explore people.csv --model skops:model.skops --protected sex",
    ),
    "metrics": ("limi metrics runs/first", "limi metrics runs/first --volume 100000"),
    "explain": ("limi explain ATN", "limi explain twin"),
    "list": ("limi list methods", "limi list methods --verbose", "limi list datasets"),
    "doctor": ("limi doctor",),
    "repair": ("limi repair runs/first --out runs/repaired",),
    "gate": ("limi gate", "limi gate --junit gate.xml --markdown summary.md"),
    "replay": ("limi replay runs/first --model onnx:newer.onnx",),
    "diff": ("limi diff runs/first --model onnx:newer.onnx",),
    "export": ("limi export runs/first --pytest tests/fairness",),
    "pack": ("limi pack runs/first --out evidence.zip",),
    "compare": (f"limi compare people.csv {_MODEL} --methods limi,guided,natural",),
    "fit": ("limi fit people.csv --target approved --out people.limi",),
    "sample": ("limi sample people.limi -n 1000 --out more.csv",),
    "datasets": ("limi datasets show adult",),
}
"""By command; a line each."""


def epilog(name: str) -> str | None:
    """The examples of a command as the end of its help; None where it has none."""
    lines = EXAMPLES.get(name)
    # A single line break would be joined to a space.
    return None if lines is None else "\n\n".join(["Examples:", *(f"  {line}" for line in lines)])
