"""A person's card: what the model says, beside the oracle; cells that cannot be; broken rules."""

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.explore.person import Questions, change_cells, describe_cells, find_broken_rules
from limi.search.check import check_rows
from tests.explore.conftest import decide, people


def test_scores_are_the_model_s_and_flips_the_oracle_s(opened):
    x = opened()
    rows = x.rows[:60]
    checked = check_rows(x.asker.target.score, x.schema, rows, keep_scores=True)
    frame = people().loc[lambda f: (f.age >= 20) | (f.job == "clerk")].iloc[:60]
    for k, row in enumerate(rows):
        met = x.ask_person(row)
        assert met.own.answer == pytest.approx(decide(frame.iloc[[k]])[0], abs=1e-12)
        assert met.flips == checked.flips[k]
        assert [v.answer for v in met.groups[0].variants] == pytest.approx(
            checked.scores[k].tolist(), nan_ok=True
        )
        assert met.partner.row.tolist() == checked.partner[k].tolist()
        for variant in met.groups[0].variants:
            other = frame.iloc[[k]].assign(sex=variant.label.removeprefix("sex "))
            assert variant.answer == pytest.approx(decide(other)[0], abs=1e-12)


def test_naturalness_is_that_of_the_run(opened):
    x = opened()
    for place in range(0, len(x.found), 7):
        met = x.ask_person(x.who(f"f{place}").row)
        told = x.found.sheet["naturalness"].values[place]
        assert met.own.natural == pytest.approx(told, abs=1e-12)


def test_what_is_known_is_not_asked_again(opened):
    x = opened()
    before = x.meter.asked
    first = x.ask_person(x.rows[3])
    assert x.meter.asked - before == first.queries == 2
    assert x.ask_person(x.rows[3]).queries == 0


def test_broken_rules_are_told_in_their_own_words(opened):
    x = opened()
    clerk = x.rows[x.rows[:, 0] < 20][0].copy()
    clerk[x.schema.position("job")] = 1.0
    met = x.ask_person(clerk)
    assert [rule.text for rule in met.broken] == ['age < 20 implies job == "clerk"']
    assert [cell.name for cell in met.cells if cell.broken] == ["age", "job"]
    assert find_broken_rules(x.schema, x.rows[0]) == ()


@pytest.mark.parametrize(
    ("position", "text", "words"),
    [
        (0, "200", "outside the range of column 'age'"),
        (0, "30.5", "steps of 1"),
        (0, "old", "is not a number"),
        (0, "", "cannot be missing"),
        (2, "9", "is not a value of column 'job'"),
        (2, "-1", "is not a value of column 'job'"),
        (2, "clerk", "is not a value of column 'job'"),
        (99, "1", "there is no cell 99"),
    ],
)
def test_a_cell_that_cannot_be_is_one_sentence(opened, position, text, words):
    x = opened(read_only=True)
    with pytest.raises(InvalidInput, match=words):
        change_cells(x.schema, x.rows[0], {position: text})


def test_hidden_cells_are_neither_shown_nor_changed(opened):
    x = opened(read_only=True)
    row = change_cells(x.schema, x.rows[0], {0: "55", 2: "1"}, hidden=("age",))
    assert row[0] == x.rows[0][0]
    assert row[2] == 1
    cell = describe_cells(x.schema, row, x.rows[0], (), ("age",))[0]
    assert (cell.shown, cell.start, cell.value, cell.options) == ("hidden", "hidden", "", ())


def test_several_protected_columns_are_asked_alone_and_together():
    from limi.table.schema import Column, Schema

    levels = {"a": ("0", "1"), "b": ("0", "1", "2")}
    columns = [Column(name=n, kind="categorical", levels=v) for n, v in levels.items()]
    free = Column(name="x", kind="numerical", low=0, high=9, step=1)
    schema = Schema((free, *columns)).protect(["a", "b"])
    questions = Questions.of(schema, np.array([4.0, 1.0, 2.0]))
    assert [title for title, _, _ in questions.titles] == ["a", "b", "together"]
    assert len(questions.asked) == 1 + 2 + 3 + 6
    assert questions.label(1) == "a 0"
    assert questions.label(6) == "a 0, b 0"
    assert questions.asked[3].tolist() == [4, 1, 0]
