"""Rules that are found in a table that was made to keep them, and in no shuffled one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from limi import data
from limi.table import schema_files
from limi.table.constraints import Constraint
from limi.table.files import infer
from limi.table.frames import Codec
from limi.table.mining import Mined, mine
from limi.table.never_seen import find_never_seen
from limi.table.rules import Rules

N = 4000


def make_people():
    """People with every kind of rule, each known from how they are made."""
    rng = np.random.default_rng(5)
    sex = rng.choice(["Female", "Male"], N)
    married = rng.random(N) < 0.5
    spouse = np.where(sex == "Male", "Husband", "Wife")
    tie = np.where(married, spouse, rng.choice(["Child", "Alone"], N))
    age = rng.integers(18, 80, N)
    works = rng.random(N) < 0.8
    job = np.where(works, rng.choice(["clerk", "smith", "cook"], N), None)
    pay = np.where(works, rng.integers(1000, 9000, N), 0)
    school = rng.choice(["none", "high", "college"], N)
    low = rng.integers(0, 500, N)
    return pd.DataFrame(
        {
            "sex": sex,
            "tie": tie,
            "marital": np.where(married, "yes", rng.choice(["no", "once"], N)),
            "age": age,
            "ages": np.where(age < 25, "young", np.where(age < 60, "middle", "old")),
            "job": job,
            "pay": pay,
            "school": school,
            "grade": pd.Series(school).map({"none": 1, "high": 9, "college": 13}),
            "low": low,
            "top": low + rng.integers(0, 90, N),
            "same": low + 5,
        }
    )


def coded(frame):
    schema = infer(frame)
    return schema, Codec.learn(frame, schema).encode(frame)


def shuffled(rows):
    rng = np.random.default_rng(11)
    return np.stack([rng.permutation(column) for column in rows.T], axis=1)


@pytest.fixture(scope="module")
def people():
    return coded(make_people())


@pytest.fixture(scope="module")
def mined(people):
    return mine(*people, ["sex"])


def test_rules_of_a_table_that_keeps_them_are_found_and_no_others(mined):
    assert sorted(text for _, text in mined.rules.constraints) == sorted(
        [
            'tie == "Husband" implies sex == "Male"',
            'tie == "Wife" implies sex == "Female"',
            'marital == "yes" implies tie in ["Husband", "Wife"]',
            'marital == "no" implies tie in ["Alone", "Child"]',
            'marital == "once" implies tie in ["Alone", "Child"]',
            "job is missing implies pay == 0",
            "pay == 0 implies job is missing",
        ]
    )


def test_derived_columns_are_found_as_lookups_and_as_steps(mined):
    ages, grade = sorted(mined.rules.derived, key=lambda derived: derived.column)
    assert (ages.column, ages.sources, ages.steps) == ("ages", ("age",), (25, 60))
    assert ages.values == ("young", "middle", "old")
    assert (grade.column, grade.sources) == ("grade", ("school",))
    assert dict(grade.lookup) == {("none",): 1, ("high",): 9, ("college",): 13}


def test_the_role_of_spouses_is_found_for_the_protected_column_alone(people, mined):
    (role,) = mined.rules.roles
    assert (role.protected, role.column) == ("sex", "tie")
    assert role.things == ((("Female", "Wife"), ("Male", "Husband")),)
    assert mine(*people).rules.roles == ()
    assert mine(*people, ["school"]).rules.roles == ()


def test_counts_are_those_of_the_rules(people, mined):
    schema, rows = people
    for name, text in mined.rules.constraints:
        constraint = Constraint.read(name, text, schema)
        broken = int(constraint.broken(rows).sum())
        assert mined.comments["constraints", name].startswith(f"broken by {broken:,} of ")


def test_expected_counts_come_near_those_of_a_shuffled_table(people, mined):
    schema, rows = people
    for name, text in mined.rules.constraints:
        said = mined.comments["constraints", name].rpartition(" ")[2]
        seen = Constraint.read(name, text, schema).broken(shuffled(rows)).sum()
        assert seen == pytest.approx(int(said.replace(",", "")), rel=0.15)


def test_nothing_is_found_in_a_shuffled_table(people):
    schema, rows = people
    assert mine(schema, shuffled(rows), ["sex"]) == Mined(Rules())


def test_a_few_exceptions_do_not_hide_a_rule_but_a_derived_column_must_be_exact(people):
    schema, rows = people
    rows = rows.copy()
    sex, grade = rows[:, schema.position("sex")], rows[:, schema.position("grade")]
    at = np.flatnonzero(rows[:, schema.position("tie")] == schema["tie"].code("Husband"))[:1]
    sex[at] = 1 - sex[at]
    grade[:3] = np.where(grade[:3] == 9, 13, 9)
    found = mine(schema, rows, ["sex"])
    assert ("husband_sex", 'tie == "Husband" implies sex == "Male"') in found.rules.constraints
    assert "broken by 1 of" in found.comments["constraints", "husband_sex"]
    assert [derived.column for derived in found.rules.derived] == ["ages"]
    assert any(remark.startswith("school decides grade in all but") for remark in found.remarks)


def test_of_columns_that_decide_each_other_the_protected_one_stays():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 600)
    frame = pd.DataFrame({"word": np.array(["a", "b", "c"])[code], "code": code})
    frame["code"] = pd.Categorical(frame["code"], categories=[0, 1, 2], ordered=True)
    schema, rows = coded(frame.assign(noise=rng.integers(0, 9, 600)))
    assert [d.column for d in mine(schema, rows).rules.derived] == ["code"]
    assert [d.column for d in mine(schema, rows, ["code"]).rules.derived] == ["word"]


def test_roles_of_several_values_and_things_need_one_value_in_common():
    rng = np.random.default_rng(0)
    who, tie = rng.integers(0, 3, 3000), rng.integers(0, 3, 3000)
    titles = np.array([["Ms", "Mr", "Mx"], ["Nun", "Monk", "Friar"], ["any", "any", "any"]])
    frame = pd.DataFrame(
        {
            "sex": np.array(["F", "M", "X"])[who],
            "title": titles[tie, who],
            "home": np.array(["flat", "cloister", "house"])[
                np.where(rng.random(3000) < 0.05, rng.integers(0, 3, 3000), tie)
            ],
        }
    )
    (role,) = mine(*coded(frame), ["sex"]).rules.roles
    assert sorted(sorted(thing) for thing in role.things) == [
        [("F", "Ms"), ("M", "Mr"), ("X", "Mx")],
        [("F", "Nun"), ("M", "Monk"), ("X", "Friar")],
    ]
    assert mine(*coded(frame.drop(columns="home")), ["sex"]).rules.roles == ()


@pytest.mark.parametrize(
    ("protected", "expected"), [("low", {"low <= top", "low == same - 5"}), ("sex", set())]
)
def test_relations_are_those_of_protected_numbers(people, protected, expected):
    texts = dict(mine(*people, [protected]).rules.constraints).values()
    assert {text for text in texts if "implies" not in text} == expected


@pytest.mark.parametrize("protected", ["kind", "age", "other"])
def test_bounds_of_protected_columns_are_remarks(protected):
    rng = np.random.default_rng(0)
    kind = rng.choice(["pupil", "other"], 2000)
    age = np.where(kind == "pupil", rng.integers(6, 20, 2000), rng.integers(0, 90, 2000))
    frame = pd.DataFrame({"kind": kind, "age": age, "other": rng.integers(0, 2, 2000)})
    found = mine(*coded(frame), [protected])
    assert not found.rules
    said = [remark for remark in found.remarks if 'kind == "pupil" implies age <= 19' in remark]
    assert len(said) == (protected != "other")


def test_what_is_mined_survives_its_file_with_its_counts(people, mined):
    schema, _ = people
    written = schema_files.dump(schema.protect(["sex"]), mined)
    assert "# broken by 0 of " in written
    read = schema_files.parse(written)
    assert read.rules == mined.rules
    assert read.protected == ("sex",)
    assert "No rules were found" in schema_files.dump(schema, Mined(Rules()))


def test_odd_names_and_levels_are_mined_into_rules_that_can_be_read():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 2, 1000)
    frame = pd.DataFrame(
        {
            "a`b \x1b": np.array(['x"\n\\', "in"])[level],
            "in": np.where(level & (rng.random(1000) < 0.9), "it's", "`"),
            "nearly gone": np.where(np.arange(1000) < 3, 1.5, np.nan),
        }
    )
    schema, rows = coded(frame)
    found = mine(schema, rows)
    assert len(found.rules.constraints) == 1
    assert schema_files.parse(schema_files.dump(schema, found)).rules == found.rules


def test_large_and_wide_tables_are_mined_from_some_of_their_rows(monkeypatch):
    from limi.table import mining

    monkeypatch.setattr(mining, "_MOST_ROWS", 1500)
    schema, rows = coded(make_people())
    looked = set(np.random.default_rng(0).choice(N, 1500, replace=False).tolist())
    exception = next(row for row in range(N) if row not in looked)
    rows[exception, schema.position("grade")] = 5
    found = mine(schema, rows)
    assert [derived.column for derived in found.rules.derived] == ["ages"]
    assert 'tie == "Husband" implies sex == "Male"' in dict(found.rules.constraints).values()
    husbands = int((rows[:, 1] == schema["tie"].code("Husband")).sum())
    said = found.comments["constraints", "husband_sex"]
    assert abs(int(said.split()[4].rstrip(";").replace(",", "")) - husbands) < 0.1 * husbands


def test_adult_gives_its_rules_its_derived_column_and_its_role():
    adult = data.load("adult")
    rows = Codec.learn(adult.frame, adult.schema).encode(adult.frame)
    found = mine(adult.schema, rows, ["sex"])
    texts = dict(found.rules.constraints)
    assert texts["husband_sex"] == 'relationship == "Husband" implies sex == "Male"'
    assert found.comments["constraints", "husband_sex"] == (
        "broken by 1 of 13,193; by chance 4,364"
    )
    assert "workclass is missing implies occupation is missing" in texts.values()
    assert "capital_gain != 0 implies capital_loss == 0" in texts.values()
    assert [derived.column for derived in found.rules.derived] == ["education_num"]
    assert [role.things for role in found.rules.roles] == [
        ((("Female", "Wife"), ("Male", "Husband")),)
    ]
    assert len(texts) + len(found.rules.derived) + len(found.remarks) <= 20
    assert mine(adult.schema, shuffled(rows), ["sex"]) == Mined(Rules())


def make_spouses(n, odd, seed=0):
    """As many wives and husbands, so many of the wives Male, and as many again who are neither."""
    rng = np.random.default_rng(seed)
    tie = np.repeat(["Wife", "Husband", "Child", "Alone"], n)
    sex = np.where(tie == "Wife", "Female", np.where(tie == "Husband", "Male", ""))
    sex = np.where(sex == "", rng.choice(["Female", "Male"], len(tie)), sex)
    sex[:odd] = "Male"
    married = np.where((np.arange(len(tie)) < 2 * n) ^ (rng.random(len(tie)) < 0.03), "yes", "no")
    return coded(pd.DataFrame({"sex": sex, "tie": tie, "married": married}))


@pytest.mark.parametrize(
    ("n", "odd", "sure", "possible"),
    [
        (300, 0, 1, 0),
        (300, 1, 1, 0),  # 0.3 %, as 0.2 % of people would make by chance
        (300, 2, 0, 1),
        (300, 5, 0, 1),
        (300, 9, 0, 0),  # more than 2 %
        (60, 0, 0, 1),  # too few to be sure
        (30, 0, 0, 0),
    ],
)
def test_a_role_with_few_exceptions_is_one_or_possible_by_their_number(n, odd, sure, possible):
    schema, rows = make_spouses(n, odd)
    found = mine(schema, rows, ["sex"])
    assert (len(found.rules.roles), len(found.possible)) == (sure, possible)
    assert not mine(schema, shuffled(rows), ["sex"]).possible
    if possible:
        ((role, words),) = found.possible
        assert role.things == ((("Female", "Wife"), ("Male", "Husband")),)
        assert words.endswith(f"0 of {n} Husband not Male, {odd} of {n} Wife not Female")


# -- the warning of a run without rules -----------------------------------------------------


def test_partners_that_hold_what_nobody_does_are_counted(people):
    schema, rows = people
    found = find_never_seen(schema.protect(["sex"]), rows)
    spouses = np.isin(rows[:, 1], [schema["tie"].code(tie) for tie in ("Husband", "Wife")])
    assert found.share == pytest.approx(spouses.mean())
    assert {found.column, found.protected} == {"tie", "sex"}
    assert found.seen == 0
    words = found.describe()
    assert f"{100 * spouses.mean():.0f} % of partners have a combination that the table" in words
    assert "`limi schema TABLE --mine --protected sex` suggests a rule" in words
    command = "`limi schema 'my people.csv' --mine --protected sex --target paid` suggests a rule"
    assert command in found.describe("my people.csv", "paid")
    assert "sex`, with both columns in TABLE, suggests a rule" in found.describe(None)


@pytest.mark.parametrize("tried", ["age", "age=20-75:11", "age=21,70"])
def test_numbers_are_held_against_the_people_nearest_to_them(people, tried):
    schema, rows = people
    schema = schema.protect([tried])
    found = find_never_seen(schema, rows)
    assert (found.protected, found.column, found.cell) == ("age", "ages", "middle")
    assert found.seen == 0
    assert found.near >= 400
    assert f"ages middle with age about {found.value} (" in found.describe()
    assert f"0 seen among the {found.near} people nearest to it)" in found.describe()
    # Partners of whom the group of ages is another than that of their age: but for those about
    # the ages at which groups begin, each is seen.
    ages = np.array(schema.protected_codes[0])
    groups, own = np.digitize(ages, [25, 60]), np.digitize(rows[:, 3], [25, 60])
    other = (groups != own[:, None])[ages != rows[:, [3]]]
    assert other.mean() - 0.1 < found.share <= other.mean() + 1e-9
    assert find_never_seen(schema, shuffled(rows)) is None


def test_missing_and_few_numbers_have_no_people_near(people):
    schema, rows = people
    schema = schema.protect(["age=20,70"])
    assert find_never_seen(schema, rows[:30]) is None
    lost = rows.copy()
    lost[:, 3] = np.nan
    assert find_never_seen(schema, lost) is None


def test_with_several_protected_columns_every_partner_counts(people):
    schema, rows = people
    schema = schema.protect(["sex", "school"])
    found = find_never_seen(schema, rows)
    spouses = np.isin(rows[:, 1], [schema["tie"].code(tie) for tie in ("Husband", "Wife")])
    # Five partners each: three of a spouse have the other sex. Every one with another school has
    # the grade of his own, which nobody with that school has: four of the five.
    other_sex_same_school, other_school = 1, 4
    odd = np.where(spouses, other_sex_same_school + other_school, other_school)
    assert found.share == pytest.approx(odd.mean() / 5)


def test_rules_of_other_columns_do_not_silence_the_warning(people):
    schema, rows = people
    elsewhere = Rules((("sums", "low <= top"),))
    told = Rules(
        (
            ("husbands", 'tie == "Husband" implies sex == "Male"'),
            ("wives", 'tie == "Wife" implies sex == "Female"'),
        )
    )
    found = find_never_seen(replace(schema, rules=elsewhere).protect(["sex"]), rows)
    assert (found.column, found.protected) == ("tie", "sex")
    assert find_never_seen(replace(schema, rules=told).protect(["sex"]), rows) is None


def test_there_is_nothing_to_warn_of_in_a_shuffled_table(people):
    schema, rows = people
    assert find_never_seen(schema.protect(["sex"]), shuffled(rows)) is None
