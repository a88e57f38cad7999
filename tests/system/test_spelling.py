"""Errors name parameters to whoever calls a function, and options to whoever types a command."""

import re

import pandas as pd
import pytest

import limi
from limi.cli import main
from limi.errors import LimiError
from limi.system.spelling import in_python


@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("choose another --out, or replace it with --force", "another out, or .* with force=True"),
        ("say which with --output label", "with output='label'$"),
        ("leave --generator none out", "leave generator=None out"),
        ("leave --domain out, start without --resume", "leave domain out, start without resume$"),
        ("name it: --model KIND:PLACE (model= in Python)", r"name it: model='KIND:PLACE'$"),
        ("use --decision 'difference > D', or", "use decision='difference > D', or"),
        ("--protected-from FILE --key COLUMN", "^protected_from='FILE', key='COLUMN'$"),
        ("give trust_pickle=True (--trust-pickle)", "give trust_pickle=True$"),
        ("--rename age=years, not more", "^rename='age=years', not"),
        ("needs a --header to log in", r"a remote=Remote\(headers=...\) to log in"),
        ("use --workers 1, not max-batch", "use workers=1, not max_batch"),
        ("run limi test --twin, or add --keep", "run limi test --twin, or add keep$"),
        ("held-out rows are not a --held-out FILE", "held-out rows .* held_out='FILE'"),
    ],
)
def test_a_sentence_is_spelled_for_python(typed, called):
    assert re.search(called, in_python(typed)), in_python(typed)
    assert in_python(in_python(typed)) == in_python(typed)


def test_functions_and_commands_say_the_same_in_their_own_words(tmp_path, monkeypatch, capsys):
    frame = pd.DataFrame({"age": [20, 30] * 20, "sex": ["f", "m", "m", "f"] * 10})
    frame.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "model.py").write_text("def decide(frame):\n    return frame['age'] > 25\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").touch()
    model, out = f"python:{tmp_path / 'model.py'}:decide", tmp_path / "run"
    with pytest.raises(LimiError, match="choose another out, or replace it with force=True"):
        limi.audit(model, frame, protected="sex", out=out)
    table = str(tmp_path / "table.csv")
    typed = ["limi", "test", table, "--model", model, "--protected", "sex", "--out", str(out)]
    monkeypatch.setattr("sys.argv", typed)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "choose another --out, or replace it with --force" in capsys.readouterr().err
