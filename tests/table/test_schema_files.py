"""Schemas as files: read back the same, merged with what the table shows, or refused."""

from dataclasses import replace

import pandas as pd
import pytest

from limi.errors import InvalidInput
from limi.table import files, schema_files
from limi.table.mining import Mined
from limi.table.rule_checks import set_target_aside
from limi.table.rules import Role, Rules
from limi.table.schema import Column, Schema
from tests.table.mixed import arrow_table, pandas_frame, polars_frame


@pytest.mark.parametrize("frame", [pandas_frame(), polars_frame(), arrow_table()])
def test_a_schema_survives_its_file(frame, tmp_path):
    schema = files.infer(frame).protect(["text"])
    path = tmp_path / "schema.toml"
    path.write_text(schema_files.dump(schema), encoding="utf-8")
    assert schema_files.load(path) == schema


def test_hostile_names_survive_too():
    nasty = 'a"b\\c\n[x]\t\u2028é'
    schema = Schema(
        (Column(name=nasty, kind="categorical", levels=(nasty, "1", 1.5, 2), meaning=nasty),)
    )
    assert schema_files.parse(schema_files.dump(schema)) == schema


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = ", "not valid TOML"),
        ("format = 9", "this limi reads formats 1 and 2"),
        ("format = 1", "lists no columns"),
        ("[columns.a]\nlow = 1", "needs a kind"),
        ('[columns.a]\nkind = "numerical"\nhigth = 1', "did you mean 'high'"),
        ('[columns.a]\nkind = "numerical"\nlow = "x"', "cannot be read"),
        ('[protcted]\nsex = ["F"]\n[columns.a]\nkind = "boolean"', "did you mean 'protected'"),
        ('[colums.a]\nkind = "boolean"', "has 'colums'; did you mean 'columns'"),
        ('formt = 1\n[columns.a]\nkind = "boolean"', "has 'formt'; did you mean 'format'"),
        ('[columns.a]\nkind = "numerical"\nlevels = [1, 2]', "is numerical and has 'levels'"),
        ('[columns.a]\nkind = "ordered"\nlevels = [1, 2]\nlow = 1', "is ordered and has 'low'"),
        ('[columns.a]\nkind = "numericl"\nlow = 1\nhigh = 2', "has kind 'numericl'; kinds are"),
        ('[protected]\nsx = ["F"]\n[columns.sex]\nkind = "categorical"\nlevels = ["F"]', "'sex'"),
    ],
)
def test_schema_files_that_cannot_be_used(text, words):
    with pytest.raises(InvalidInput, match=words):
        schema_files.parse(text)


def test_edited_columns_win_and_others_are_inferred(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [0, 1], "y": [0, 1]})
    path = tmp_path / "s.toml"
    path.write_text('[columns.b]\nkind = "categorical"\nlevels = [0, 1]\n', encoding="utf-8")
    schema = schema_files.read_for(frame, path, exclude=("y",))
    assert [c.kind for c in schema.columns] == ["numerical", "categorical"]


COLUMN = '[columns.x]\nkind = "categorical"\nlevels = {}\n'


RANGE = '[columns.x]\nkind = "numerical"\nlow = {}\nhigh = {}\nstep = {}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + "[" * 50_000, "nested too deeply|not valid TOML"),
        ("x = " + "1" * 5000, "not valid TOML"),
        ("\x00", "not valid TOML"),
        (COLUMN.format("[1979-05-27]"), "a level of type date"),
        (COLUMN.format("[nan]"), "a level of type float"),
        (COLUMN.format("[[1]]"), "a level of type list"),
        (COLUMN.format("[{a = 1}]"), "a level of type dict"),
        (COLUMN.format("[1" + "0" * 400 + "]"), "a level of type int"),
        (RANGE.format("1" + "0" * 400, 2, 1), "cannot be read"),
        (RANGE.format(0, "inf", 1), "both must be finite"),
        (RANGE.format("-1e308", "1e308", 1), "narrow the range"),
        (RANGE.format("-1e308", "1e308", 0), "narrow the range"),
        (RANGE.format(0, "1e300", "1e-300"), "narrow the range"),
        (RANGE.format(0, 1, "nan"), "step nan"),
        ('[columns.x]\nkind = []\nlevels = ["a"]\n', "has kind"),
    ],
    ids=lambda text: text[:24],
)
def test_schemas_that_cannot_be_used_say_why(tmp_path, text, words):
    with pytest.raises(InvalidInput, match=words) as told:
        schema_files.parse(text)
    assert len(str(told.value)) < 2000


def test_unsafe_names_and_levels_read_back_from_toml():
    unsafe = "a\x1b[31m\x7f\x85\x9b\u202eb\u2028\t\n\"\\'"
    schema = Schema(
        (
            Column(name=unsafe, kind="categorical", levels=(unsafe, "b"), meaning=unsafe),
            Column(name="x", kind="numerical", low=0, high=1),
        )
    )
    text = schema_files.dump(schema)
    assert all(line.isprintable() for line in text.splitlines())
    assert schema_files.parse(text) == schema


@pytest.mark.parametrize(
    "text",
    [
        '[columns.b]\nkind = "numerical"\nprotected = 3',
        '[columns.a]\nkind = "categorical"\nlevels = "MF"',
    ],
)
def test_odd_schema_files(text):
    with pytest.raises(InvalidInput):
        schema_files.parse(text)


# -- rules ----------------------------------------------------------------------------------

PEOPLE = """
[columns.sex]
kind = "categorical"
levels = ["Female", "Male"]
[columns.tie]
kind = "categorical"
levels = ["Wife", "Husband", "Child"]
[columns.age]
kind = "numerical"
low = 0
high = 90
step = 1
[columns.ages]
kind = "ordered"
levels = ["young", "old"]
[columns.school]
kind = "ordered"
levels = ["none", "high"]
[columns.grade]
kind = "ordered"
levels = [0, 9]
[columns.both]
kind = "numerical"
low = 0
high = 3
step = 1
"""

RULED = (
    PEOPLE
    + """
[constraints]
husband = 'tie == "Husband" implies sex == "Male"'
"it's \\"odd\\"" = "sex == 'Male' or\\nage >= 0"
[derived.ages]
from = "age"
steps = [40]
values = ["young", "old"]
[derived.grade]
from = "school"
values = { none = 0, high = 9 }
[derived.both]
from = ["school", "sex"]
values = { none = { Female = 0, Male = 1 }, high = { Female = 2, Male = 3 } }
[roles.sex]
tie = [{ Female = "Wife", Male = "Husband" }]
"""
)


def test_rules_are_read_and_survive_their_file():
    schema = schema_files.parse(RULED)
    assert dict(schema.rules.constraints)["husband"] == 'tie == "Husband" implies sex == "Male"'
    assert [d.column for d in schema.rules.derived] == ["ages", "grade", "both"]
    assert schema.rules.derived[2].lookup[1] == (("none", "Male"), 1)
    assert schema.rules.roles[0].things == ((("Female", "Wife"), ("Male", "Husband")),)
    written = schema_files.dump(schema)
    assert "format = 2" in written
    assert """'tie == "Husband" implies sex == "Male"'""" in written
    assert schema_files.parse(written) == schema


def test_what_has_no_rules_is_written_as_before():
    assert "format = 1\n" in schema_files.dump(schema_files.parse(PEOPLE))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[constraints]\na = 3", "constraint 'a' must be a rule as text"),
        ("[constraints]\na = 'aeg > 3'", "constraint 'a': there is no column 'aeg'; did you mean"),
        ("[derived.grade]\nfrom = 'age'\nstep = [3]", "has 'step'; did you mean 'steps'"),
        ("[derived.grade]\nvalues = {none = 0}", "needs 'from': a column"),
        ("[derived.grade]\nfrom = 'school'", "needs 'values': a value for each level of 'school'"),
        ("[derived.grade]\nfrom = 'school'\nvalues = {none = 0}", "no value for 1 of 2 values"),
        ("[derived.grade]\nfrom = 'school'\nvalues = {nne = 0}", "did you mean 'none'"),
        ("[derived.grad]\nfrom = 'school'\nvalues = {none = 0}", "did you mean 'grade'"),
        ("[derived.grade]\nfrom = 'scool'\nvalues = {none = 0}", "did you mean 'school'"),
        ("[derived.ages]\nfrom = 'age'\nsteps = ['a']\nvalues = []", "not a list of numbers"),
        ("[derived.ages]\nfrom = 'age'\nsteps = [4]\nvalues = {a = 1}", "must be a list"),
        ("[derived.ages]\nfrom = 'age'\nsteps = [4]\nvalues = [1979-05-27]", "of type date"),
        (
            "[derived.both]\nfrom = ['school', 'sex']\nvalues = {none = 1}",
            "needs a table of the values of 'sex'",
        ),
        (
            "[derived.school]\nfrom = 'grade'\nvalues = {0 = 'none', 9 = 'high'}\n"
            "[derived.grade]\nfrom = 'school'\nvalues = {none = 0, high = 9}",
            "derived from each other: grade, school",
        ),
        ("[roles.sex]\ntie = {Female = 'Wife'}", "must be a list of tables"),
        ("[roles.sex]\ntie = [{Female = 'Wife', Mal = 'Husband'}]", "did you mean 'Male'"),
        ("[roles.sex]\ntie = [{Female = 'Wife', Male = 'Husbnd'}]", "did you mean 'Husband'"),
        ("[roles.sx]\ntie = [{Female = 'Wife', Male = 'Husband'}]", "did you mean 'sex'"),
        (
            "[roles.sex]\ntie = [{Female = 'Wife', Male = 'Husband'}, "
            "{Female = 'Wife', Male = 'Child'}]",
            "names a level twice: 'Wife' under 'Female'",
        ),
        ("[roles]\nsex = 3", "must be a table of columns"),
        ("[[derived]]", "must be a table"),
    ],
)
def test_rules_of_files_that_cannot_be_used(text, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        schema_files.parse(PEOPLE + text, name="s.toml")
    assert str(caught.value).startswith("s.toml: ")


def test_rules_need_the_second_format():
    with pytest.raises(InvalidInput, match=r"has \[constraints\], which format 1 does not"):
        schema_files.parse("format = 1\n" + RULED)


def test_rules_that_speak_of_the_target_are_set_aside_with_it_and_told(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [0, 1], "y": [0, 1]})
    path = tmp_path / "s.toml"
    text = schema_files.dump(files.infer(frame))
    rules = '[constraints]\nlow = "a >= b"\nlabel = "y == 0 or a > 1"\n'
    path.write_text(text.replace("format = 1", "format = 2") + rules, encoding="utf-8")
    for columns in (
        text,
        text[: text.index('[columns."y"]')],
    ):  # whether it lists the target or not
        path.write_text(columns.replace("format = 1", "") + rules, encoding="utf-8")
        whole = schema_files.read_for(frame, path, exclude=("y",))
        assert len(whole.rules.constraints) == 2
        schema, notes = set_target_aside(whole, "y")
        assert schema.names == ["a", "b"]
        assert schema.rules.constraints == (("low", "a >= b"),)
        assert notes == (
            "constraint 'label' has no effect, because it mentions 'y', which the "
            "model decides; rules are about what a model sees",
        )
    assert set_target_aside(schema, "y") == (schema, ())
    with pytest.raises(InvalidInput, match="'y' is the target column"):
        set_target_aside(whole.protect(["y"]), "y")


def test_a_possible_role_is_written_as_a_comment_that_becomes_one():
    schema = schema_files.parse(PEOPLE)
    role = Role(protected="sex", column="tie", things=((("Female", "Wife"), ("Male", "Husband")),))
    text = schema_files.dump(schema, Mined(Rules(), possible=((role, "counts"),)))
    assert schema_files.parse(text) == schema
    said = "\n# [roles.sex]\n# tie = "
    assert said in text
    taken = text.replace("# [roles", "[roles").replace("# tie", "tie")
    assert schema_files.parse(taken).rules.roles == (role,)
    sure = Mined(
        Rules(roles=(role,)),
        possible=(
            (
                replace(role, column="ages", things=((("Female", "young"), ("Male", "old")),)),
                "counts",
            ),
        ),
    )
    assert text.count("[roles.sex]") == 1
    assert "write this line under [roles.sex]:" in schema_files.dump(schema, sure)
