"""A small table with every kind of rule."""

from limi.table.rules import Derived, Role, Rules
from limi.table.schema import Column, Schema

COLUMNS = (
    Column(name="sex", kind="categorical", levels=("Female", "Male", "Other")),
    Column(name="tie", kind="categorical", levels=("Wife", "Child", "Husband"), missing=True),
    Column(name="age", kind="numerical", low=20, high=60, step=5),
    Column(name="ages", kind="ordered", levels=("young", "middle", "old")),
    Column(name="school", kind="ordered", levels=("none", "high", "college")),
    Column(name="grade", kind="numerical", low=0, high=14, step=1),
    Column(name="title", kind="categorical", levels=("Ms", "Mr", "Dr")),
)

AGES = Derived(column="ages", sources=("age",), steps=(25, 50), values=("young", "middle", "old"))
GRADE = Derived(
    column="grade",
    sources=("school",),
    lookup=((("none",), 0), (("high",), 9), (("college",), 13)),
)
TIE = Role(protected="sex", column="tie", things=((("Female", "Wife"), ("Male", "Husband")),))
TITLE = Role(protected="sex", column="title", things=((("Female", "Ms"), ("Male", "Mr")),))

RULES = Rules(derived=(AGES, GRADE), roles=(TIE, TITLE))

RULED = Schema(COLUMNS, rules=RULES).protect(["sex=Female,Male"])
RULED_AGE = Schema(COLUMNS, rules=RULES).protect(["age=20,30,50", "sex"])
