"""The rule by which one variant is above another."""

from lab.files import StandSpec, load
from lab.results import Results
from lab.rule import draw_stands, find_first, stand, stand_before_all, tell_stand
from tests.lab.small import outcome


def results(numbers):
    """Findings by benchmark and variant, a list of seeds each."""
    cells = {
        name: outcome(name, findings=value)
        for place, line in numbers.items()
        for seed, value in enumerate(line)
        for name in [f"{place}/{seed}"]
    }
    return Results("dnn", "small", cells)


KNOWN = results(
    {
        "a-sex/limi": [5, 6],
        "a-sex/sg": [1, 4],
        "b-sex/limi": [1, 2],
        "b-sex/sg": [3, 4],
        "c-sex/limi": [1, 5],
        "c-sex/sg": [3, 4],
        "d-sex/limi": [9],
        "d-sex/sg": [1, 2],
        "e-sex/limi": [9],
    }
)


def test_every_seed_stands_beside_every_seed_and_one_decides_nothing():
    assert stand(KNOWN, "findings", "limi", "sg") == {
        "a-sex": "higher",
        "b-sex": "lower",
        "c-sex": "not told apart",
        "d-sex": "not told apart",
    }


def test_where_a_variant_stands_in_words():
    found = stand(KNOWN, "findings", "limi", "sg")
    assert tell_stand(found) == "higher on 1 of 4 benchmarks, lower on 1, not told apart on 2"
    assert tell_stand({"a": "lower"}) == "lower"
    assert tell_stand({"a": "lower", "b": "lower"}) == "lower on both benchmarks"
    assert tell_stand(dict.fromkeys("abc", "lower")) == "lower on all 3 benchmarks"
    apart = "not told apart"
    assert tell_stand(dict.fromkeys("ab", apart)) == "not told apart on either benchmark"
    assert tell_stand(dict.fromkeys("abc", apart)) == "not told apart on any of 3 benchmarks"


def test_few_benchmarks_stand_beside_one_another_and_many_below():
    spec = StandSpec(title="t", measure="findings", pairs=(("limi", "sg"), ("adf", "sg")))
    many = draw_stands(load("dnn"), spec, KNOWN)
    assert many.headings == ("benchmark", "sg", "limi", "limi beside sg")
    assert many.rows[0] == ("a-sex", "2 (1 to 4, 2)", "6 (5 to 6, 2)", "higher")
    assert many.rows[-1][-1].startswith("higher on 1 of 4")
    kept = {n: c for n, c in KNOWN.outcomes.items() if n.startswith(("a-", "b-"))}
    few = draw_stands(load("dnn"), spec, Results("dnn", "small", kept))
    assert few.headings == ("findings", "beside", "a-sex", "b-sex", "by the rule")
    assert few.rows == (
        (
            "limi",
            "sg",
            "6 (5 to 6, 2) against 2 (1 to 4, 2): higher",
            "2 (1 to 2, 2) against 4 (3 to 4, 2): lower",
            "higher on 1 of 2 benchmarks, lower on 1",
        ),
    )


def test_the_model_before_is_called_one_training_where_it_is_one():
    cells = {}
    for variant, value in (("before", 0.2), ("findings", 0.1), ("limi", 0.1)):
        for seed in (0, 1):
            cell = outcome(f"census-sex/{variant}/{seed}", if_n=value)
            cells[cell.cell] = cell
    notes = {}
    for name, first in (("repair-dnn", "limi"), ("repairs-dnn", "findings")):
        spec = StandSpec(title="t", measure="if_n", pairs=((first, "before"),))
        notes[name] = " ".join(draw_stands(load(name), spec, Results(name, "small", cells)).notes)
    assert "The model before is one training" in notes["repair-dnn"]
    assert "one training" not in notes["repairs-dnn"]


def test_a_table_of_nothing_has_no_rows():
    spec = StandSpec(title="t", measure="findings", pairs=(("adf", "eidig"),))
    assert draw_stands(load("dnn"), spec, KNOWN).rows == ()


def test_one_stands_before_all_of_its_rivals_only_before_each():
    assert stand_before_all(["held", "held"]) == "held"
    assert stand_before_all(["held", "open"]) == "open"
    assert stand_before_all(["held", "open", "lost"]) == "lost"


def test_where_several_have_the_largest_nobody_is_first():
    assert find_first({"limi": 2.0, "sg": 1.0}) == "limi"
    assert find_first({"limi": 2.0, "sg": 2.0}) == "a tie"
