"""torch.export and TorchScript files, read only where they hold nothing but arithmetic.

Both formats are programs. A .pt2 archive may also bring pickles, compiled libraries and texts that
torch evaluates while it reads them, and TorchScript can write files. So what a file says is held
against what a network needs before torch sees it; whatever else it holds is refused.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from limi.errors import BadModel
from limi.models._files import unreadable

__all__ = ["read"]

_RECORDS = re.compile(
    r"archive_format|archive_version|byteorder|version|\.data/\w+|models/model\.json|"
    r"data/(weights|constants)/(model_\w+_config\.json|weight_\d+|tensor_\d+)|"
    r"data/sample_inputs/model\.pt"
)
_OPERATION = re.compile(
    r"torch\.ops\.aten\.(?!save\b|from_file\b)[a-z_]\w*\.[A-Za-z]\w*|torch\.sym_\w+|"
    r"_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|neg|pow|eq|ne|lt|le|gt|ge|and_|or_|not_)"
)
_NAME = re.compile(r"[\w.]*")
_FUNCTIONS = {"Symbol", "Integer", "Add", "Mul", "Pow", "Max", "Min", "Mod", "FloorDiv", "CeilDiv"}
_SCRIPT_DANGER = re.compile(r"\b(torch\.(save|load|from_file)|ops\.(?!aten\b|prim\b))")


def read(path: Path) -> Any:
    """The program in a file: an ExportedProgram or a ScriptModule."""
    import torch

    content = path.read_bytes()
    try:
        archive = torch._C.PyTorchFileReader(io.BytesIO(content))
        names = archive.get_all_records()
    except Exception as error:
        raise unreadable(str(path), "a torch.export or TorchScript program", error) from error
    if "models/model.json" in names:
        _check_exported(path, archive, names)
        loader = torch.export.load
    elif "constants.pkl" in names:
        code = b"\n".join(archive.get_record(n) for n in names if n.endswith(".py"))
        found = _SCRIPT_DANGER.search(code.decode(errors="replace"))
        if found:
            raise _refused(path, f"it calls {found[0]}")
        loader = torch.jit.load
    elif "serialized_exported_program.json" in names:
        raise BadModel(
            f"{str(path)!r} was exported by an older torch, in a format that holds pickles; export "
            "the module anew with torch 2.8 or later"
        )
    else:
        raise BadModel(
            f"{str(path)!r} holds no program but pickled objects, as torch.save writes them; limi "
            "does not open those: export the module by torch.export.save, or pass it in Python"
        )
    try:
        with _weights_only(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            # Up to torch 2.11 reading an archive warns of torch's own buffers.
            warnings.filterwarnings("ignore", "The given buffer is not writable")
            return loader(io.BytesIO(content))
    except Exception as error:
        raise unreadable(str(path), "a torch program", error) from error


@contextmanager
def _weights_only() -> Iterator[None]:
    """torch.export reads some tensors by unpickling; this holds torch.load to tensors alone."""
    switch = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(switch)
    os.environ[switch] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before


def _check_exported(path: Path, archive: Any, names: list[str]) -> None:
    for name in names:
        if not _RECORDS.fullmatch(name):
            raise _refused(path, f"it holds {name!r}")
        if name.endswith("_config.json"):
            payloads = json.loads(archive.get_record(name))["config"].values()
            if any(p["use_pickle"] or not p["tensor_meta"] for p in payloads):
                raise _refused(path, "it holds pickled tensors")
    _check_texts(path, json.loads(archive.get_record("models/model.json")), "")


def _check_texts(path: Path, part: Any, key: str) -> None:
    """Each text of a program is an operation, a size or a name."""
    if isinstance(part, dict):
        for name, value in part.items():
            # What an operation's metadata say is for people: stack traces, names of layers.
            words = isinstance(value, dict) and all(isinstance(w, str) for w in value.values())
            if name == "metadata" and "target" in part and words:
                continue
            _check_texts(path, name, "name")
            _check_texts(path, value, name)
    elif isinstance(part, list):
        for value in part:
            _check_texts(path, value, key)
    elif isinstance(part, str):
        if key == "target":
            plain = _OPERATION.fullmatch(part) is not None
        elif key == "expr_str":
            plain = _is_size(part)
        elif key in ("in_spec", "out_spec"):
            plain = set(re.findall(r'"type": "([^"]*)"', part)) <= {
                "builtins.tuple",
                "builtins.list",
                "builtins.dict",
            }
        elif key == "torch_version":
            plain = True
        else:
            plain = _NAME.fullmatch(part) is not None
        if not plain:
            raise _refused(path, f"its {key} is {part[:60]!r}")


def _is_size(text: str) -> bool:
    """Whether a text is arithmetic of sizes, such as `Symbol('s0', integer=True)`."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    arithmetic = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.keyword)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            plain = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        elif isinstance(node, ast.Name):
            plain = node.id in _FUNCTIONS or re.fullmatch(r"[su]\d+", node.id) is not None
        elif isinstance(node, ast.Constant):
            plain = not isinstance(node.value, str) or re.fullmatch(r"\w+", node.value) is not None
        else:
            plain = isinstance(node, (*arithmetic, ast.Load))
        if not plain:
            return False
    return True


def _refused(path: Path, why: str) -> BadModel:
    return BadModel(
        f"{str(path)!r} was not opened: {why}, which a network has no use for and which could run "
        "code; export the module anew, or give it as ONNX"
    )
