"""Text and JSON as they are shown: nothing in them steers a terminal."""

import json
from pathlib import Path

import numpy as np
import pytest

from limi.system.shown import clean, clean_lines, to_json

UNSAFE = "a\x1b[31m\x9b31m\x7f\u202eb\u2066c\u2028d\x00e\udcff"


def test_unsafe_characters_are_spelled():
    shown = clean(UNSAFE)
    assert shown.isprintable()
    assert shown == r"a\x1b[31m\x9b31m\x7f\u202eb\u2066c\u2028d\x00e\udcff"
    assert clean("Größe 漢字 👩‍👩‍👧 عربى") == "Größe 漢字 👩‍👩‍👧 عربى"
    assert clean_lines("a\nb\x1b") == "a\nb\\x1b"


def test_json_is_valid_without_nan_and_reads_back_the_same():
    tree = {
        UNSAFE: [UNSAFE, "漢字"],
        "numbers": (float("nan"), float("-inf"), np.float64("nan"), 1.5, np.int64(3)),
        "array": np.array([1.0, np.inf]),
        "flag": np.bool_(True),
        "path": Path("x"),
        2: None,
    }
    for ascii_only in (False, True):
        text = to_json(tree, ascii_only=ascii_only)
        assert clean_lines(text) == text

        def refuse(word):
            pytest.fail(f"{word} is not JSON")

        assert json.loads(text, parse_constant=refuse) == {
            UNSAFE: [UNSAFE, "漢字"],
            "numbers": [None, None, None, 1.5, 3],
            "array": [1.0, None],
            "flag": True,
            "path": "x",
            "2": None,
        }
