"""Tables that commands take: what they made of a file is said."""

import numpy as np
import pytest

MODEL = """
def score(frame):
    return (frame["alter"] + 10 * (frame["sex"] == "m") > 45) * 0.8 + 0.1
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table as a spreadsheet of another country writes it, and a model."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [";alter;einkommen;sex;leer;y"]
    for n in range(300):
        age, income, sex = rng.integers(20, 70), rng.integers(1_000, 90_000) / 10, "mw"[n % 2]
        euros = f"{income:,.1f}".translate(str.maketrans(",.", ".,"))
        lines.append(f"{n};{age};{euros};{sex};;{int(age > 40)}")
    (tmp_path / "leute.csv").write_bytes("\n".join(lines).encode("utf-16"))
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def test_a_run_says_how_the_table_was_read(folder, limi):
    words = ["test", "leute.csv", "--model", "python:model.py:score", "--target", "y"]
    words += ["--favorable", "1", "--protected", "sex", "--max-rows", "200", "--method", "natural"]
    code, out, err = limi(*words)
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    for part in (
        "read as utf-16",
        "counts the rows, so it was left out",
        "'einkommen' is written with a decimal comma",
        "in 'leer' every cell is missing, so this column was left out",
    ):
        assert part in said


def test_schema_says_it_on_standard_error(folder, limi):
    code, out, err = limi("schema", "leute.csv", "--target", "y")
    assert code == 0
    assert "read as utf-16" in err
    assert "leer" not in out
    assert "Unnamed" not in out
