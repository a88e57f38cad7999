"""The public names exist, and importing the package stays light."""

import subprocess
import sys

import limi


def test_every_public_name_resolves():
    for name in limi.__all__:
        assert getattr(limi, name) is not None
    assert set(limi.__all__) <= set(dir(limi))


def test_unknown_names_are_attribute_errors():
    assert not hasattr(limi, "no_such_thing")


def test_importing_limi_imports_nothing_heavy():
    code = (
        "import sys, limi, limi.table.schema, limi.search.check, limi.models, limi.methods;"
        "heavy = {'torch', 'pandas', 'sklearn', 'pyarrow', 'onnxruntime', 'jinja2', 'typer'};"
        "print(sorted(heavy & set(sys.modules)));"
        "import limi.explore.opening;"  # which a browser waits for
        "print(sorted({'torch', 'pandas', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["[]", "[]"]
