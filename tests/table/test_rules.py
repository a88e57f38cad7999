"""Rules as data, and what they make of rows."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limi.errors import InvalidInput
from limi.table.rows import keys, uniform
from limi.table.rules import Derived, Role, Rules
from limi.table.schema import Column, Schema
from tests.table.ruled import AGES, COLUMNS, GRADE, RULED, RULED_AGE, RULES, TIE, TITLE

torch = pytest.importorskip("torch", reason="needs limi[torch]")

MALE, WIFE, HUSBAND = 1.0, 0.0, 2.0


def rows_of(schema, n, seed=0):
    return schema.enforcer.complete(uniform(schema, n, np.random.default_rng(seed)))


def naive_level(level, sex, under, one, other):
    """What a Wife or a Husband is under another sex, told by hand."""
    swapped = {one: other, other: one}
    turns = (sex == MALE) != (under == MALE)
    return swapped.get(level, level) if turns else level


def test_a_partner_has_the_level_that_is_the_same_thing_under_its_protected_value():
    rows = rows_of(RULED, 500)
    partners = RULED.enforcer.expand(rows, RULED.combinations)
    for row, pair in zip(rows, partners, strict=True):
        for cells, (under,) in zip(pair, RULED.combinations, strict=True):
            assert cells[0] == under
            tie = naive_level(row[1], row[0], under, WIFE, HUSBAND)
            np.testing.assert_equal(cells[1], tie)
            assert cells[6] == naive_level(row[6], row[0], under, 0.0, 1.0)
            np.testing.assert_array_equal(cells[2:6], row[2:6])


def test_derived_cells_follow_the_protected_value():
    rows = rows_of(RULED_AGE, 200)
    partners = RULED_AGE.enforcer.expand(rows, RULED_AGE.combinations)
    ages = partners[:, :, 2]
    expected = np.where(ages < 25, 0.0, np.where(ages < 50, 1.0, 2.0))
    np.testing.assert_array_equal(partners[:, :, 3], expected)
    np.testing.assert_array_equal(
        partners[:, :, 5], np.array([0, 9, 13])[rows[:, None, 4].astype(int)] + 0 * ages
    )


@given(seed=st.integers(0, 10_000))
def test_a_row_and_its_partners_have_one_key_and_are_partners_of_each_other(seed):
    for schema in (RULED, RULED_AGE):
        rows = rows_of(schema, 8, seed)
        cells = schema.combinations
        partners = schema.enforcer.expand(rows, cells)
        flat = partners.reshape(-1, len(schema))
        of = keys(schema, rows)
        np.testing.assert_array_equal(keys(schema, flat), np.repeat(of, len(cells), axis=0))
        again = schema.enforcer.expand(flat, cells).reshape(len(rows), len(cells), len(cells), -1)
        np.testing.assert_array_equal(again, np.repeat(partners[:, None], len(cells), axis=1))
        own = schema.enforcer.change(rows, rows[:, schema.protected_index])
        np.testing.assert_array_equal(own, rows)
        left = schema.enforcer.change(rows, np.full((len(rows), len(schema.protected)), np.nan))
        np.testing.assert_array_equal(left, rows)


def test_rows_have_one_key_only_if_they_are_partners():
    rows = rows_of(RULED, 3000)
    row_keys = [tuple(key) for key in keys(RULED, rows)]
    canonical = [
        tuple(row)
        for row in np.nan_to_num(RULED.enforcer.canonical(rows)[:, RULED.key_index], nan=-1)
    ]
    assert (
        len(set(row_keys)) == len(set(canonical)) == len(set(zip(row_keys, canonical, strict=True)))
    )
    assert set(RULED.key_index) == {1, 2, 4, 6}


def test_tensors_are_treated_as_arrays_are():
    rows = rows_of(RULED_AGE, 300)
    there = torch.tensor(rows)
    enforcer = RULED_AGE.enforcer
    cells = RULED_AGE.combinations
    np.testing.assert_array_equal(
        enforcer.expand(there, torch.tensor(cells)).numpy(), enforcer.expand(rows, cells)
    )
    np.testing.assert_array_equal(enforcer.canonical(there).numpy(), enforcer.canonical(rows))
    drawn = uniform(RULED_AGE, 300, np.random.default_rng(1))
    np.testing.assert_array_equal(
        enforcer.complete(torch.tensor(drawn)).numpy(), enforcer.complete(drawn)
    )
    np.testing.assert_array_equal(
        enforcer.disagrees(torch.tensor(drawn)).numpy(), enforcer.disagrees(drawn)
    )


def test_chains_of_several_values_close_to_permutations():
    columns = (
        Column(name="land", kind="categorical", levels=("A", "B", "C")),
        Column(name="coin", kind="categorical", levels=("w", "x", "y", "z")),
    )
    role = Role(
        protected="land",
        column="coin",
        things=(
            (("A", "w"), ("B", "x"), ("C", "y")),
            (("A", "x"), ("B", "z")),
        ),
    )
    schema = Schema(columns, rules=Rules(roles=(role,))).protect(["land"])
    under = schema.enforcer.expand(
        np.array([[0.0, level] for level in range(4)]), schema.combinations
    )[:, :, 1]
    # As A, as B (w to x to z and back), as C (w and y trade places).
    np.testing.assert_array_equal(under.T, [[0, 1, 2, 3], [1, 3, 2, 0], [2, 1, 0, 3]])


def test_the_columns_that_may_change_are_known():
    assert [RULED.names[i] for i in RULED.moving_index] == ["sex", "tie", "title"]
    assert [RULED_AGE.names[i] for i in RULED_AGE.moving_index] == [
        *("sex", "tie", "age", "ages", "title"),
    ]
    assert RULED.unruled.moving_index.tolist() == [0]


def test_rules_go_where_their_columns_go():
    chosen = RULED.select(["age", "sex", "tie", "ages"])
    assert chosen.rules == Rules(derived=(AGES,), roles=(TIE,))
    assert chosen.protected == ("sex",)
    assert not RULED.select(["sex", "age", "grade"]).rules
    assert RULED.protect(["age"]).rules == RULES
    assert pickle.loads(pickle.dumps(RULED)) == RULED  # noqa: S301


def test_a_protected_column_with_a_role_of_its_own_changes_by_itself():
    schema = Schema(COLUMNS, rules=RULES).protect(["sex=Female,Male", "tie"])
    rows = rows_of(schema, 100)
    partners = schema.enforcer.expand(rows, schema.combinations)
    np.testing.assert_array_equal(partners[:, :, :2], np.tile(schema.combinations, (100, 1, 1)))


def test_derived_cells_that_disagree_are_seen():
    rows = rows_of(RULED, 10)
    rows[3, 3] = (rows[3, 3] + 1) % 3
    rows[7, 5] = 1
    assert np.flatnonzero(RULED.enforcer.disagrees(rows)).tolist() == [3, 7]
    assert RULED.enforcer.disagrees(RULED.enforcer.complete(rows)).sum() == 0


def test_missing_sources_make_missing_cells():
    columns = (
        Column(name="x", kind="numerical", low=0, high=9, missing=True),
        Column(name="band", kind="ordered", levels=("low", "high"), missing=True),
        Column(name="a", kind="boolean", levels=(False, True), missing=True),
        Column(name="both", kind="categorical", levels=("p", "q"), missing=True),
        Column(name="sex", kind="boolean", levels=(False, True)),
    )
    rules = Rules(
        derived=(
            Derived(
                column="both",
                sources=("band", "a"),
                lookup=tuple(
                    ((band, a), "p" if a else "q")
                    for band in ("low", "high")
                    for a in (False, True)
                ),
            ),
            Derived(column="band", sources=("x",), steps=(4.5,), values=("low", "high")),
        )
    )
    schema = Schema(columns, rules=rules).protect(["sex"])
    rows = np.array(
        [[4.0, 9, 1, 9, 0], [4.5, 9, 0, 9, 0], [np.nan, 9, 0, 9, 1], [1, 9, np.nan, 9, 1]]
    )
    told = schema.enforcer.complete(rows)
    np.testing.assert_array_equal(told[:, 1], [0, 1, np.nan, 0])
    np.testing.assert_array_equal(told[:, 3], [0, 1, np.nan, np.nan])


def bad(rules, *, protected=("sex",)):
    with pytest.raises(InvalidInput) as error:
        Schema(COLUMNS, rules=rules() if callable(rules) else rules).protect(list(protected))
    return str(error.value)


def derive(column, *sources, **how):
    return lambda: Rules(derived=(Derived(column=column, sources=sources, **how),))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (derive("ages", "aeg", steps=(25,), values=("young", "old")), "did you mean 'age'"),
        (
            derive("ages", "age", steps=(25,), values=("young", "ancient")),
            "'ancient' is not a value",
        ),
        (derive("ages", "age", steps=(25,), values=("young",)), "one value more than steps"),
        (derive("ages", "age", steps=(50, 25), values=("young", "old", "old")), "do not ascend"),
        (derive("ages", "school", steps=(1,), values=("young", "old")), "numerical column"),
        (
            derive("ages", "age", "sex", steps=(1,), values=("young", "old")),
            "steps need exactly one",
        ),
        (derive("ages", "ages", steps=(1,), values=("young", "old")), "derived from itself"),
        (derive("ages", "age"), "needs either a value for each level"),
        (derive("ages"), "names no column"),
        (derive("grade", "school", lookup=((("none",), 0), (("high",), 9))), "such as college"),
        (
            derive("grade", "school", lookup=((("none",), 0), (("none",), 9), (("high",), 9))),
            "two values for none",
        ),
        (derive("grade", "tie", lookup=((("Wife",), 0),)), "may be missing"),
        (derive("grade", "school", "sex", lookup=((("none",), 0),)), "one level for each"),
        (lambda: Rules(derived=(AGES, AGES)), "one way; derived twice: ages"),
        (
            lambda: Rules(
                derived=(
                    Derived(column="grade", sources=("school",), lookup=((("none",), 0),)),
                    Derived(column="school", sources=("grade",), lookup=(((0,), "none"),)),
                )
            ),
            "derived from each other: grade, school",
        ),
        (lambda: Rules(roles=(TIE, TIE)), "one role for a protected column"),
        (lambda: Rules(constraints=(("a", "x"), ("a", "y"))), "different names; used twice: a"),
        (
            lambda: Rules(
                roles=(
                    Role(
                        protected="sex",
                        column="tie",
                        things=(
                            (("Female", "Wife"), ("Male", "Husband")),
                            (("Female", "Wife"), ("Male", "Child")),
                        ),
                    ),
                )
            ),
            "names a level twice",
        ),
        (
            lambda: Rules(
                roles=(
                    Role(
                        protected="sex",
                        column="tie",
                        things=(
                            (("Female", "Wife"), ("Male", "Husband")),
                            (("Other", "Wife"), ("Other", "Child")),
                        ),
                    ),
                )
            ),
            "two levels of the same thing",
        ),
        (
            lambda: Rules(
                roles=(
                    Role(
                        protected="sex",
                        column="tie",
                        things=((("Female", "Wife"), ("Male", "Spouse")),),
                    ),
                )
            ),
            "'Spouse' is not a value",
        ),
        (
            lambda: Rules(
                roles=(
                    Role(
                        protected="sex",
                        column="ages",
                        things=((("Female", "young"), ("Male", "old")),),
                    ),
                ),
                derived=(AGES,),
            ),
            "is derived, so it has no role",
        ),
        (
            lambda: Rules(
                roles=(Role(protected="sex", column="tie", things=((("Male", "Wife"),),)),)
            ),
            "at least two",
        ),
    ],
)
def test_rules_that_do_not_fit_are_told_in_a_sentence(rules, words):
    assert words in bad(rules)


def test_a_derived_column_cannot_be_protected():
    said = bad(RULES, protected=["ages"])
    assert said == (
        "column 'ages' is derived from age and cannot change on its own; protect 'age' instead"
    )


def test_without_rules_only_protected_cells_change_and_nothing_is_refused():
    plain = Schema(COLUMNS).protect(["sex"])
    rows = uniform(plain, 50, np.random.default_rng(0))
    enforcer = plain.enforcer
    assert enforcer.complete(rows) is enforcer.canonical(rows) is rows
    assert not (enforcer.disagrees(rows) | enforcer.breaks(rows)).any()
    assert not enforcer.binds_partners
    asked = enforcer.expand(rows, plain.combinations)
    assert enforcer.find_open(rows, asked) is None
    expected = np.repeat(rows[:, None], len(plain.combinations), axis=1)
    expected[:, :, plain.protected_index] = plain.combinations
    np.testing.assert_array_equal(asked, expected)
    assert plain.unruled is plain
    assert not Rules()
    assert GRADE in RULES.in_order
    assert TITLE in RULES.roles
