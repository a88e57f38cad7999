"""Checks of a repair by other means, the loss of accuracy, and the verdict."""

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact

from limi import generators
from limi.repairs import _verify
from limi.repairs._figures import RepairFigure
from tests.repairs.small import problem


def check(before, after, rows=1000):
    return _verify.Check("people", "fresh people", rows, before, after)


def loss(before, after, n=200):
    """Of n rows, where those that become wrong are the only ones that change."""
    right, later = (np.arange(n) < round(share * n) for share in (before, after))
    return _verify.Loss.of(right, later, "held-out")


def test_loss_is_the_mean_of_paired_differences():
    right = np.array([1, 1, 1, 0, 0, 1, 1, 1]) > 0
    later = np.array([1, 0, 0, 1, 0, 1, 1, 1]) > 0
    lost = _verify.Loss.of(right, later, "held-out")
    each = right.astype(int) - later
    assert lost.value == pytest.approx(each.mean())
    assert lost.high - lost.value == pytest.approx(1.96 * each.std() / np.sqrt(8))
    assert lost.as_dict()["on"] == "held-out"


def test_rows_that_several_seeds_ask_are_no_more_rows():
    rng = np.random.default_rng(0)
    right, later = rng.random(400) < 0.9, rng.random(400) < 0.8
    once = _verify.Loss.of(right, later, "held-out")
    places = np.tile(np.arange(400), 3)
    thrice = _verify.Loss.of(np.tile(right, 3), np.tile(later, 3), "held-out", places)
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx(
        (once.value, once.low, once.high)
    )


def test_the_same_rows_before_and_after_are_a_paired_test():
    made = _verify.Check("people", "fresh people", 100, 12, 5, gone=7, new=0)
    assert made.p_value == pytest.approx(binomtest(7, 7).pvalue)
    assert made.better  # though two samples with 12 and 5 flips might well be alike
    assert fisher_exact([[12, 88], [5, 95]])[1] > 0.05


def figures(accuracy, flips):
    return {
        "accuracy": RepairFigure(accuracy),
        "training_accuracy": RepairFigure(accuracy),
        "real": RepairFigure(flips),
        "natural": RepairFigure(flips),
    }


@pytest.mark.parametrize(
    ("checks", "before", "after", "word", "told"),
    [
        ([check(100, 10)], (0.9, 0.1), (0.895, 0.01), "reduced", "reduced by 90 %: "),
        ([check(1000, 999, 10**5)], (0.9, 0.1), (0.9, 0.01), "unchanged", "not rarer"),
        ([check(120, 29)], (0.9, 0.1), (0.9, 0.01), "reduced", "reduced by 75 %: "),
        ([check(100, 0, 10**4)], (0.9, 0.1), (0.9, 0.0), "removed", "at most 0.037 %"),
        ([check(100, 1, 10**3)], (0.9, 0.1), (0.9, 0.0), "reduced", "reduced by 99 %"),
        ([check(100, 10)], (0.9, 0.1), (0.84, 0.01), "too costly", "falls by 6.00"),
        ([check(100, 10)], (0.9, 0.1), (0.88, 0.01), "inconclusive", "may be chance"),
        ([check(100, 98)], (0.9, 0.1), (0.9, 0.1), "unchanged", "not rarer"),
        ([check(10, 90)], (0.9, 0.1), (0.9, 0.1), "worse", "1.00 % before, 9.00 %"),
        (
            [check(100, 10), check(10, 8)],
            (0.9, 0.1),
            (0.9, 0.01),
            "inconclusive",
            "not every fresh check",
        ),
        ([check(0, 0)], (0.9, 0.1), (0.9, 0.1), "inconclusive", "no flips before"),
        ([check(0, 90)], (0.9, 0.1), (0.9, 0.1), "worse", "0.00 % before, 9.00 %"),
        ([check(100, 10)], (0.9, 0.1), (0.9, 0.1), "inconclusive", "over the seeds"),
    ],
)
def test_verdicts(checks, before, after, word, told):
    verdict = _verify.judge(
        checks,
        loss(before[0], after[0]),
        figures(*before),
        figures(*after),
        max_accuracy_loss=0.01,
    )
    assert verdict.word == word
    assert told in str(verdict)
    assert str(verdict).startswith(word)


def test_checks_are_fisher_s():
    one = check(30, 12)
    assert one.p_value == pytest.approx(fisher_exact([[30, 970], [12, 988]])[1])
    assert one.better
    assert not one.worse
    assert one.reduction == pytest.approx(0.6)
    assert check(0, 3).reduction is None


def test_fresh_means_another():
    for used in ("limi", "guided", "limi+adf", "aequitas", "themis", "limi+aequitas"):
        assert _verify.fresh_method(used) not in used.split("+")
    assert _verify.fresh_generator("trees") == "transport"
    assert _verify.fresh_generator("transport") == "trees"
    assert _verify.fresh_generator(None) in ("trees", "transport")


def test_without_torch_the_generator_is_another_seed_of_trees(monkeypatch):
    monkeypatch.setattr(_verify, "find_spec", lambda name: None)
    assert _verify.fresh_generator("trees") == "trees"


def test_a_saved_generator_counts_by_its_kind(tmp_path):
    one = problem()
    made = generators.get("trees").fit(one.rows, one.schema, np.random.default_rng(0))
    path = str(tmp_path / "mine.limi")
    generators.save(made, path)
    assert _verify.kind_of(path) == "trees"
    assert _verify.kind_of("ctgan") == "ctgan"
    beside = _verify.Fresh.beside("limi", path, 3)
    assert (beside.generator, beside.other_generator) == (_verify.fresh_generator("trees"), True)
    assert (beside.method, beside.seed) == ("guided", 3 + _verify.FRESH_SEED)
    # Of a file that is gone nobody knows the kind.
    assert not _verify.Fresh.beside("limi", str(tmp_path / "gone.limi"), 3).other_generator
