"""Imports point down (methods and metrics never see files, models never see methods), the root is
small, and no function is longer than a reader can hold."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "limi"

# A module may import from its own layer or a lower one. `_registry` and the package itself are
# below everything; a name stands for a module or for a folder of them.
LAYERS = [
    ["errors", "types", "defaults", "decisions", "streams", "system", "workers", "_registry"],
    ["table"],
    ["data", "generators", "remote"],
    ["search", "gpu", "models", "trees"],
    ["metrics", "methods", "twins"],
    ["audits", "gates", "changes", "proofs"],
    ["report"],
    ["repairs", "evidence", "images"],
    ["testing", "integrations", "explore"],
    ["cli"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Folders whose modules must not import each other: shared parts are the modules with a leading
# underscore.
ISLANDS = ["methods", "models", "generators", "metrics", "cli"]

# Modules that stand beside the islands of their folder and see all of them.
APART = {
    "models": {"gradients", "target", "trial"},
    "metrics": {"collect", "group_lines", "privileged", "rates", "regions"},
}

HEAVY = {
    "torch",
    "onnxruntime",
    "skops",
    "xgboost",
    "lightgbm",
    "catboost",
    "polars",
    "joblib",
    "ortools",
    "PIL",
    "ray",
    "starlette",
    "uvicorn",
}

MOST_AT_THE_ROOT = 8
MOST_LINES = 80

# Functions that are longer, and why; ruff counts their branches (C901 in pyproject.toml).
LONG = {
    ("audits/audit.py", "audit"): "the public signature and what each argument means",
    ("audits/problem.py", "prepare"): "whatever may be said of a model and a table, in its order",
    ("changes/_diff.py", "diff"): "the public signature and what each argument means",
    ("gates/_run.py", "gate"): "the public signature and what each argument means",
    ("proofs/_run.py", "certify"): "the public signature and what each argument means",
    ("repairs/_repair.py", "repair"): "the public signature and what each argument means",
    ("cli/certify.py", "certify"): "every option of the command with its help",
    ("cli/compare.py", "compare"): "every option of the command with its help",
    ("cli/diff.py", "diff"): "every option of the command with its help",
    ("cli/explore.py", "explore"): "every option of the command with its help",
    ("cli/gate.py", "gate"): "every option of the command with its help",
    ("cli/images.py", "test"): "every option of the command with its help",
    ("cli/repair.py", "repair"): "every option of the command with its help",
    ("cli/test.py", "test"): "every option of the command with its help",
}

MODULES = sorted(p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py"))

OUTSIDE = {"lab", "tests", "tools", "benchmarks"}


def imports(path, *, top_only):
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    nodes = tree.body if top_only else ast.walk(tree)
    for node in nodes:
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module.startswith("limi"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def home(path):
    return path.parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_point_down(path):
    here = home(path)
    if here in ("__init__", "__main__"):
        return
    assert here in LEVEL, f"{here} has no layer; add it to LAYERS"
    for name in imports(path, top_only=True):
        parts = name.split(".")
        if parts[0] == "limi" and len(parts) > 1 and parts[1] in LEVEL:
            assert LEVEL[parts[1]] <= LEVEL[here], f"{path} imports {name}, which lies above it"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_the_package_knows_of_nothing_beside_it(path):
    assert not OUTSIDE & {name.split(".")[0] for name in imports(path, top_only=False)}


def test_the_lab_knows_of_no_tests():
    """But for the row-by-row programs, which the study `plain` times and imports by name."""
    modules = (PACKAGE.parent / "lab").rglob("*.py")
    found = {name.split(".")[0] for path in modules for name in imports(path, top_only=False)}
    assert "limi" in found
    assert not found & {"tests", "tools", "benchmarks"}


@pytest.mark.parametrize("path", [p for p in MODULES if p.parts[0] in ISLANDS], ids=str)
def test_neighbours_share_only_underscored_modules(path):
    folder = path.parts[0]
    if path.name in ("__init__.py", "_app.py") or len(path.parts) != 2:
        return
    if path.stem in APART.get(folder, ()):
        return
    known = {p.stem for p in MODULES if p.parts[0] == folder}
    for name in imports(path, top_only=False):
        parts = name.split(".")
        if parts[:2] == ["limi", folder] and len(parts) > 2 and parts[2] in known:
            shared = parts[2].startswith("_") or (folder, parts[2]) == ("cli", "test")
            assert shared, f"{path} imports its neighbour {name}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_heavy_packages_are_imported_late(path):
    assert not HEAVY & {name.split(".")[0] for name in imports(path, top_only=True)}


def long_functions(path):
    for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and node.end_lineno - node.lineno + 1 > MOST_LINES:
            yield path.as_posix(), node.name


def test_a_function_is_short_or_has_a_reason():
    assert {name for path in MODULES for name in long_functions(path)} == set(LONG)


def test_modules_have_rooms():
    assert len([path for path in MODULES if len(path.parts) == 1]) <= MOST_AT_THE_ROOT
