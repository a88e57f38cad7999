"""Targets: what models are given, and what is refused with which words."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from limi import models
from limi.errors import BadModel, InvalidInput
from limi.models.target import bind
from limi.table.files import infer
from limi.table.frames import Codec

FRAME = pd.DataFrame(
    {
        "sex": ["F", "M", "F", "M"],
        "age": [20, 30, 40, 50],
        "level": pd.Categorical([10, 20, 10, 20]),
        "wage": [1.5, np.nan, 2.5, 3.5],
    }
)
NUMBERS = FRAME[["age", "level", "wage"]]


def target_of(function, frame=FRAME, protected=(), **given):
    schema = infer(frame)
    schema = schema.protect(protected) if protected else schema
    return bind(models.wrap(function, **given), Codec.learn(frame, schema))


def rows_of(target, frame=FRAME):
    return target.codec.encode(frame)


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_a_function_is_given_the_users_own_frame(convert):
    frame = convert(FRAME.astype({"level": int}))
    seen = []
    target = target_of(lambda given: seen.append(given) or np.full(4, 0.5), frame)
    target.score(rows_of(target, frame))
    assert type(seen[0]) is type(frame)
    assert seen[0].equals(frame)


def test_a_matrix_holds_the_levels_own_numbers():
    seen = []

    def function(given):
        seen.append(given.copy())
        return np.full(len(given), 0.5)

    function.takes = "matrix"
    target = target_of(function, NUMBERS)
    target.score(rows_of(target, NUMBERS))
    np.testing.assert_array_equal(seen[0], NUMBERS.astype(float).to_numpy())


def test_columns_are_chosen_and_ordered_as_the_model_wants_them():
    def function(given):
        assert list(given.columns) == ["age", "sex"]
        return given["age"] / 100

    function.columns = ["age", "sex"]
    target = target_of(function, protected=["sex"])
    assert target.codec.schema.names == ["age", "sex"]
    assert target.score(rows_of(target)).tolist() == [0.2, 0.3, 0.4, 0.5]


def test_a_name_that_a_format_has_changed_is_still_found():
    def function(given):
        return given["capital-gain"] / 10

    function.columns = ["capital_gain"]
    frame = pd.DataFrame({"capital-gain": [1, 2], "x": [0, 1]})
    target = target_of(function, frame)
    assert target.score(rows_of(target, frame)).tolist() == [0.1, 0.2]


def test_a_name_that_two_columns_could_mean_is_not_guessed():
    function = _with(lambda given: given["a b"], columns=["a_b"])
    with pytest.raises(BadModel, match="needs the columns a_b, which the table lacks"):
        target_of(function, pd.DataFrame({"a b": [1, 2], "a-b": [0, 1]}))


def _with(function, **attributes):
    vars(function).update(attributes)
    return function


def test_no_rows_need_no_model():
    target = target_of(lambda given: 1 / 0)
    assert target.score(np.empty((0, 4))).shape == (0,)
    assert target.contract(np.empty((0, 4))) == 0


def _raising(given):
    raise KeyError("first line\nsecond line")


def _long(given):
    raise ValueError("x" * 1000)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_raising, "raised KeyError: 'first line"),
        (_long, "xxx ... (it was given a DataFrame with sex, age, level, wage)"),
        (lambda given: np.full(3, 0.5), "3 answers for 4 rows"),
        (lambda given: np.array([0.1, np.nan, 0.2, 0.3]), "NaN or infinite"),
        (lambda given: np.array([0.1, 2.0, 0.2, 0.3]), "from 0.1 to 2"),
        (lambda given: np.zeros((4, 3)), "3 values per row"),
    ],
)
def test_a_model_that_fails_is_named_in_one_line(function, says):
    target = target_of(function)
    with pytest.raises(BadModel) as caught:
        target.score(rows_of(target))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


class Raw:
    """A model that someone else wrote, with answers nobody has checked."""

    takes, columns, n_columns = "frame", None, None

    def __init__(self, answer):
        self.answer = answer

    def score(self, inputs):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([0.5] * 3, "3 scores for 4 rows"),
        (0.5, "one value for 4 rows"),
        (None, "returned None for 4 rows"),
        (
            [0.5, np.nan, 0.5, 0.5],
            "1 scores of 4 that are not numbers in [0, 1], the first of them nan",
        ),
        (
            [0.5, 0.5, 7.0, -1.0],
            "2 scores of 4 that are not numbers in [0, 1], the first of them 7",
        ),
    ],
)
def test_the_answers_of_a_foreign_model_are_checked(answer, says):
    target = target_of(Raw(answer))
    with pytest.raises(BadModel) as caught:
        target.score(rows_of(target))
    assert says in str(caught.value)


def test_columns_that_do_not_fit_are_refused_before_the_first_call():
    wants = _with(lambda given: 1 / 0, columns=["age", "height"])
    with pytest.raises(BadModel, match="needs the columns height, which the table lacks"):
        target_of(wants)
    numbers = _with(lambda given: 1 / 0, takes="matrix")
    with pytest.raises(BadModel, match="takes only numbers, but these columns hold text: sex"):
        target_of(numbers)
    foreign = Raw(0)
    foreign.n_columns = 2
    with pytest.raises(BadModel, match="needs 2 columns, but the table has 4 besides the target"):
        target_of(foreign)


def test_a_protected_column_that_the_model_does_not_take_stays_last_and_unseen():
    given = []

    def score(frame):
        given.append(frame)
        return np.full(len(frame), 0.3)

    blind = target_of(_with(score, columns=["wage", "age"]), protected=["sex"])
    assert blind.codec.schema.names == ["wage", "age", "sex"]
    assert blind.unseen == ("sex",)
    assert blind.blind
    blind.score(rows_of(blind))
    assert list(given[0].columns) == ["wage", "age"]
    seeing = target_of(_with(score, columns=["wage", "sex"]), protected=["sex"])
    assert seeing.unseen == ()
    assert not seeing.blind


def test_a_matrix_of_all_columns_but_the_protected_ones_is_taken_for_a_blind_model():
    model = Raw(0)
    model.n_columns = 3
    blind = target_of(model, protected=["sex"])
    assert blind.unseen == ("sex",)
    assert len(blind.present(rows_of(blind)).columns) == 3


# -- the contract -------------------------------------------------------------------------


def test_the_contract_counts_what_it_asks():
    asked = []

    def function(given):
        asked.append(len(given))
        return given["age"] / 100

    target = target_of(function)
    assert target.contract(rows_of(target)) == sum(asked)


def test_a_model_that_writes_into_its_rows_is_refused():
    class Writes(Raw):
        takes = "matrix"

        def score(self, inputs):
            inputs[:, 0] = 0
            return np.full(len(inputs), 0.5)

    frame = pd.DataFrame({"age": [20, 30], "wage": [1.0, 2.0]})
    target = target_of(Writes(None), frame)
    with pytest.raises(BadModel, match="changes its input"):
        target.contract(rows_of(target, frame))


def test_decisions_that_contradict_scores_are_seen():
    class Contradicts(Raw):
        def score(self, inputs):
            return np.full(len(inputs), 0.4)

        def decide(self, inputs):
            return np.ones(len(inputs), dtype=bool)

    target = target_of(Contradicts(None))
    with pytest.raises(BadModel, match="differ from the side of its scores for 4 of 4 rows"):
        target.contract(rows_of(target))


def test_decisions_that_move_contradict_no_scores():
    class Moves(Raw):
        def __init__(self):
            super().__init__(None)
            self.rng = np.random.default_rng(0)
            self.asked = 0

        def score(self, inputs):
            self.asked += len(inputs)
            return np.full(len(inputs), 0.4)

        def decide(self, inputs):
            self.asked += len(inputs)
            return self.rng.random(len(inputs)) < 0.5

    model = Moves()
    target = target_of(model)
    assert target.contract(rows_of(target)) == model.asked


def test_a_constant_model_keeps_the_contract():
    target = target_of(lambda given: np.full(len(given), 0.7))
    assert target.contract(rows_of(target)) > 0


def test_settling_takes_rows_from_the_whole_table():
    class Settles(Raw):
        def settle(self, inputs, on_asked):
            on_asked(len(inputs))
            settled = Raw(0.5)
            settled.notes = (f"{len(inputs)} rows up to {inputs['age'].max()}",)
            return settled

    frame = pd.DataFrame({"age": np.arange(5000), "x": 0})
    target = target_of(Settles(None), frame)
    asked = []
    target = replace(target, on_asked=asked.append)
    assert target.settled(rows_of(target, frame)).notes == ("2000 rows up to 4999",)
    assert target.settled(rows_of(target, frame), most=7).notes == ("7 rows up to 4999",)
    assert asked == [2000, 7]


def test_what_settling_refuses_is_said_as_it_is():
    class Refuses(Raw):
        def settle(self, inputs, on_asked):
            raise InvalidInput("say more")

    target = target_of(Refuses(None))
    with pytest.raises(InvalidInput, match="say more"):
        target.settled(rows_of(target))
