"""Which answer is favorable, and how answers become scores."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from limi.decisions import EDGE, favors, opposes
from limi.errors import BadModel, InvalidInput
from limi.models import Answers, Decision
from limi.models._scores import Outputs, from_margin, from_pairs, take_side


@pytest.mark.parametrize(
    ("favorable", "classes", "column"),
    [
        (None, [0, 1], 1),
        (None, [1, 0], 0),
        (None, [False, True], 1),
        (None, ["0", "1"], 1),
        (1, [0, 1], 1),
        ("1", [0, 1], 1),
        ("0", [0, 1], 0),
        ("0", np.array([0, 1]), 0),
        ("1", [0.0, 1.0], 1),
        ("1.0", [0, 1], 1),
        ("1", [False, True], 1),
        ("true", [False, True], 1),
        ("False", [False, True], 0),
        (True, [0, 1], 1),
        (2, ["1", "2"], 1),
        ("2", np.array([1.0, 2.0]), 1),
        (">50K", ["<=50K", ">50K"], 1),
        (">50K", [" <=50K", " >50K"], 1),
        ("<=50K", np.array(["<=50K", ">50K"]), 0),
    ],
)
def test_a_label_is_found_among_classes_however_it_is_spelled(favorable, classes, column):
    assert Decision(favorable).column(classes) == column


def test_exact_classes_win_over_classes_that_read_alike():
    assert Decision("1").column(["1", "1.0"]) == 0
    assert Decision("1.0").column(["1", "1.0"]) == 1


def test_a_model_of_0_and_1_means_the_favorable_label_by_1_and_says_so():
    decision = Decision("good", ("bad", "good"))
    assert decision.column([0, 1]) == 1
    assert "1 was read as 'good'" in decision.notes([0, 1])[0]
    assert decision.notes(["good", "bad"]) == ()
    assert Decision(1, (0, 1)).notes([0, 1]) == ()
    assert Decision().notes([0, 1]) == ()


@pytest.mark.parametrize(
    ("decision", "classes", "error", "says"),
    [
        (Decision(), ["a", "b"], InvalidInput, "'a', 'b'; say which one is favorable"),
        (Decision("c"), ["a", "b"], InvalidInput, "'c' is not one of the model's classes"),
        (Decision(1), [0, 1, 2], BadModel, "3 classes (0, 1, 2); limi tests decisions between two"),
        (Decision(1), [1], BadModel, "one class only (1)"),
    ],
)
def test_classes_that_do_not_decide(decision, classes, error, says):
    with pytest.raises(error) as caught:
        decision.column(classes)
    assert says in str(caught.value)


WORDS = Decision("good", ("bad", "good"))


@pytest.mark.parametrize(
    ("decision", "raw", "scores"),
    [
        (Decision(), [0.25, 0.75], [0.25, 0.75]),
        (Decision(), np.array([[0.25], [0.75]], np.float32), [0.25, 0.75]),
        (Decision(), np.array([0.25, 0.75], object), [0.25, 0.75]),
        (Decision(), pd.Series([0.25, 0.75]), [0.25, 0.75]),
        (Decision(), pl.Series([0.25, 0.75]), [0.25, 0.75]),
        (Decision(), [[0.75, 0.25], [0.25, 0.75]], [0.25, 0.75]),
        (WORDS, [[0.75, 0.25], [0.25, 0.75]], [0.25, 0.75]),
        (Decision("bad", ("good", "bad")), [[0.75, 0.25], [0.25, 0.75]], [0.75, 0.25]),
        (Decision(0, (0, 1)), [[0.75, 0.25], [0.25, 0.75]], [0.75, 0.25]),
        (Decision(), [0, 1], [0, 1]),
        (Decision(), [True, False], [1, 0]),
        (Decision(0), [0, 1], [1, 0]),
        (Decision("0"), [0, 1], [1, 0]),
        (Decision("0", (0, 1)), [0, 1], [1, 0]),
        (WORDS, ["bad", "good"], [0, 1]),
        (WORDS, np.array(["bad", "good"], object), [0, 1]),
        (WORDS, pd.Series(["bad", "good"], dtype="category"), [0, 1]),
        (WORDS, ["bad", "bad"], [0, 0]),
        (WORDS, [0, 1], [0, 1]),
        (WORDS, [True, True], [1, 1]),
        (Decision("good"), ["bad", "good"], [0, 1]),
        (Decision("good"), [0, 1], [0, 1]),
        (Decision(1, (1, 2)), [1.0, 2.0], [1, 0]),
        (Decision(2, (1, 2)), [1, 2], [0, 1]),
        (Decision("2", (1, 2)), [1, 1], [0, 0]),
    ],
)
def test_answers_are_read_as_scores(decision, raw, scores):
    read = Answers(decision).read(raw, 2)
    assert read.dtype == np.float64
    assert read.tolist() == scores


@pytest.mark.parametrize("decision", [WORDS, Decision("2", (1, 2)), Decision("0"), Decision()])
def test_a_label_means_the_same_alone_and_among_others(decision):
    answers = [decision.labels or (0, 1)][0]
    together = Answers(decision).read(list(answers), 2)
    alone = [Answers(decision).read([answer], 1)[0] for answer in answers]
    assert together.tolist() == alone


@pytest.mark.parametrize(
    ("decision", "raw", "error", "says"),
    [
        (Decision(), [0.1, 0.2, 0.3], BadModel, "3 answers for 2 rows"),
        (Decision(), 0.5, BadModel, "one value for 2 rows"),
        (Decision(), None, BadModel, "returned None for 2 rows"),
        (Decision(), [0.1, np.nan], BadModel, "1 scores that are NaN or infinite among 2"),
        (Decision(), [0.1, np.inf], BadModel, "1 scores that are NaN or infinite among 2"),
        (Decision(), [-3.0, 0.2], BadModel, "scores from -3 to 0.2"),
        (Decision(), [[0.1, 0.2, 0.7]] * 2, BadModel, "3 values per row"),
        (Decision(), np.zeros((2, 2, 2)), BadModel, "several values per row"),
        (Decision(), [[0.9, 0.9], [0.1, 0.2]], BadModel, "do not add up to 1"),
        (Decision(), ["a", "b"], InvalidInput, "say which answer is favorable"),
        (WORDS, ["bad", "fine"], BadModel, "'fine' instead of 'bad', 'good'"),
        (WORDS, ["bad", None], BadModel, "missing labels"),
        (Decision("x"), ["a", "b"], BadModel, "'a', 'b' instead of 'x'"),
        (Decision(1, (1, 2)), [0, 1], BadModel, "0 instead of 1, 2"),
    ],
)
def test_answers_that_are_no_decisions(decision, raw, error, says):
    with pytest.raises(error) as caught:
        Answers(decision).read(raw, 2)
    assert says in str(caught.value)


# -- labels that look like scores --------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "raw", "settled"),
    [
        (Decision(0), [0.0, 0.3, 1.0], "score"),
        (Decision(0, (0, 1)), [0.2, 0.3], "score"),
        (Decision(2, (1, 2)), [1.0, 2.0], "label"),
        (Decision(2, (1, 2)), [0.0, 1.0], "score"),
        (Decision(1, (1, 2)), [1.0, 1.0], None),  # it comes to the same
        (Decision(1), [0.0, 1.0], None),
        (Decision(1, (0, 1)), [0.0, 1.0], None),
        (Decision(0), [0, 1], None),  # whole numbers and truth values are labels
        (Decision(0), [True, False], None),
        (Decision(0), [[1.0, 0.0], [0.0, 1.0]], None),
        (WORDS, [0.0, 1.0], None),
    ],
)
def test_real_answers_settle_what_floats_are(decision, raw, settled):
    answers = Answers(decision).settle(raw)
    assert answers.settled == settled
    assert answers.settle(raw) == answers


@pytest.mark.parametrize(
    ("decision", "raw", "says"),
    [
        (Decision(0), [0.0, 1.0], "all 0.0, 1.0, so they may be labels or scores: as a label 0.0"),
        (Decision("0", (0, 1)), [1.0, 1.0], "as a label 1.0 is unfavorable, as a score favorable"),
        (Decision(False, (False, True)), [[0.0], [0.0]], "as a label 0.0 is favorable, as a score"),
        (Decision(2, (1, 2)), [1.0, 1.0], "say which with --output label or --output"),
    ],
)
def test_floats_that_could_be_either_are_asked_about(decision, raw, says):
    with pytest.raises(InvalidInput) as caught:
        Answers(decision).settle(raw)
    assert says in str(caught.value)
    for output in ("label", "score"):
        told = Answers(replace(decision, output=output))
        assert told.settle(raw) == told


def test_what_the_user_says_they_are_is_what_they_are():
    floats = [0.0, 1.0]
    assert Answers(Decision(0, (0, 1), "label")).read(floats, 2).tolist() == [1, 0]
    assert Answers(Decision(0, (0, 1), "score")).read(floats, 2).tolist() == [0, 1]
    assert Answers(Decision(0, (0, 1), "score")).read([0, 1], 2).tolist() == [0, 1]
    assert Answers(Decision(0, (0, 1), "score")).read([True, False], 2).tolist() == [1, 0]
    with pytest.raises(BadModel, match="answers 'bad' but output=\"score\" promises numbers"):
        Answers(Decision("good", ("bad", "good"), "score")).read(["bad", "good"], 2)
    with pytest.raises(BadModel, match=r"answers 0\.3.* instead of 0, 1"):
        Answers(Decision(0, (0, 1), "label")).read([0.3, 0.7], 2)


def test_a_settled_meaning_holds_in_every_batch():
    answers = Answers(Decision(2, (1, 2))).settle([0.0, 0.4, 1.0])
    # Alone, a batch of ones could be the label 1, which is not the favorable one.
    assert answers.read([1.0, 1.0], 2).tolist() == [1, 1]


def test_notes_on_how_answers_were_read():
    assert Answers(Decision(1, (0, 1))).notes([0.2, 0.8]) == ()
    assert Answers(Decision(0, (0, 1))).notes([0, 1]) == ()
    (note,) = Answers(Decision(0, (0, 1))).notes([0.2, 0.8])
    assert "read as scores of 0, the favorable label" in note
    assert Answers(Decision(0, (0, 1), "score")).notes([0.2, 0.8]) == ()
    (note,) = Answers(Decision("bad", ("bad", "good"))).notes([0, 1])
    assert note == "the model answers 0, 1 while the table has 'bad', 'good'; 1 was read as 'bad'"


def test_three_labels_are_too_many():
    with pytest.raises(BadModel, match="'a', 'b', 'c'"):
        Answers(Decision("a")).read(["a", "b", "c"], 3)


# -- margins, pairs and last layers -------------------------------------------------------


def test_a_tie_of_votes_is_the_first_class_whichever_is_favorable():
    even = [[0.5, 0.5]]
    assert opposes(from_pairs(even, 1, votes=True)).all()
    assert favors(from_pairs(even, 0, votes=True)).all()
    np.testing.assert_allclose(from_pairs(even, 0, votes=True), 0.5, atol=3 * EDGE)


def test_what_rounding_alone_would_decide_stays_on_the_edge():
    close = [[0.5, 0.5], [0.5, np.nextafter(0.5, 0)], [np.nextafter(0.5, 0), 0.5]]
    for column in (0, 1):
        for scores in (
            from_margin([0.0, 1e-20, -1e-20, 1e-9], column),
            from_pairs(close, column),
            from_pairs(close[1:], column, votes=True),
        ):
            assert not (favors(scores) | opposes(scores)).any()
            np.testing.assert_allclose(scores, 0.5, atol=EDGE)


def test_the_larger_of_two_probabilities_decides_whatever_they_sum_to():
    pairs = np.array([[0.4991, 0.4995], [0.5009, 0.5005], [0.5009, 0.5009], [0.2, 0.8]])
    scores = from_pairs(pairs, 1)
    assert favors(scores).tolist() == [True, False, False, True]
    assert opposes(scores).tolist() == [False, True, False, False]
    assert scores[3] == 0.8  # where one says what both say, it is the score as it is
    np.testing.assert_array_equal(favors(from_pairs(pairs, 0)), opposes(scores))
    np.testing.assert_array_equal(opposes(from_pairs(pairs, 0)), favors(scores))


def test_a_score_is_moved_only_where_the_model_decides_otherwise():
    scores = np.array([0.2, 0.8, 0.2, 0.8, 0.5, 0.5])
    favorable = np.array([False, True, True, False, True, False])
    moved = take_side(scores, favorable)
    np.testing.assert_array_equal(moved[[0, 1, 4, 5]], [0.2, 0.8, 0.5, 0.5])
    assert favors(moved[2])
    assert opposes(moved[3])


@pytest.mark.parametrize("column", [0, 1])
def test_two_outputs_decide_alike_as_logits_and_as_probabilities(column):
    logits = np.array([[0.2, 0.9], [3.0, -1.0], [0.4, 0.4]])
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    as_logits, as_shares = (Outputs(column).read(raw, 3) for raw in (logits, shares))
    np.testing.assert_allclose(as_logits, as_shares, atol=1e-12)
    decided = logits[:, 0] != logits[:, 1]
    assert (favors(as_logits) | opposes(as_logits)).tolist() == decided.tolist()
    assert favors(as_logits).tolist() == (decided & (logits.argmax(axis=1) == column)).tolist()


def test_one_output_is_what_it_is_declared_to_be():
    assert Outputs(1, "probability").read([0.2, 0.7], 2).tolist() == [0.2, 0.7]
    np.testing.assert_allclose(Outputs(0, "probability").read([[0.2], [0.7]], 2), [0.8, 0.3])
    assert Outputs(1, "logits").read([0.2, -0.7], 2).round(2).tolist() == [0.55, 0.33]


def test_one_output_beyond_the_unit_interval_is_a_logit():
    settled = Outputs(1).settle([0.2, 1.7])
    assert settled.kind == "logits"
    assert (settled.read([0.2, 0.7], 2) > 0.5).all()


def test_one_output_within_the_unit_interval_is_not_guessed():
    with pytest.raises(InvalidInput, match="probabilities or logits"):
        Outputs(1).settle([0.2, 0.7])


@pytest.mark.parametrize(
    ("outputs", "raw", "says"),
    [
        (Outputs(1), [0.1, 0.2, 0.3], "3 outputs for 2 rows"),
        (Outputs(1), np.zeros((2, 3)), "3 outputs per row"),
        (Outputs(1), np.zeros((2, 1, 1)), "outputs of shape (2, 1, 1)"),
        (Outputs(1, "probability"), [0.1, 1.2], "from 0.1 to 1.2"),
        (Outputs(1), [np.nan, 3.0], "NaN or infinite"),
        (Outputs(1), [[np.nan, 1.0], [0.0, 1.0]], "NaN or infinite"),
    ],
)
def test_outputs_that_are_no_decisions(outputs, raw, says):
    with pytest.raises(BadModel) as caught:
        outputs.read(raw, 2)
    assert says in str(caught.value)
