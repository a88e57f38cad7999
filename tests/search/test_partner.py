"""The partner rule: of those that flip, or of all, the widest gap or the first."""

import numpy as np
import pytest

from limi.decisions import differ
from limi.search.partner import choose_partner


def by_hand(scores, own, rule, candidates):
    """One row at a time, as the rule is told."""
    chosen = []
    for line, mine in enumerate(own):
        known = [g for g in range(scores.shape[1]) if g != mine and candidates[line, g]]
        score = scores[line, mine]
        flips = [g for g in known if differ(scores[line, g], score)]
        if flips and rule == "first":
            chosen.append(flips[0])
            continue
        gaps = {g: abs(scores[line, g] - score) for g in flips or known}
        chosen.append(next(g for g in gaps if gaps[g] >= max(gaps.values()) - 1e-6))
    return chosen


def drawn(n=500, width=6):
    rng = np.random.default_rng(0)
    scores = rng.choice([0.1, 0.3, 0.49999999, 0.5, 0.50000001, 0.7, 0.9], (n, width))
    own = rng.integers(0, width, n)
    candidates = rng.random((n, width)) < 0.7
    candidates[np.arange(n), (own + 1) % width] = True
    return scores, own, candidates


@pytest.mark.parametrize("rule", ["widest", "first"])
@pytest.mark.parametrize("some", [False, True])
def test_the_partner_is_the_one_chosen_by_hand(rule, some):
    scores, own, candidates = drawn()
    candidates = candidates if some else np.ones_like(candidates)
    mine = scores[np.arange(len(own)), own]
    asked = np.where(candidates, scores, np.nan)
    chosen, flips, ranks = choose_partner(
        asked, mine, own=own, candidates=candidates if some else None, rule=rule
    )
    assert chosen.tolist() == by_hand(scores, own, rule, candidates)
    np.testing.assert_array_equal(flips, differ(asked, mine[:, None]))
    assert (ranks[np.arange(len(own)), chosen] >= 0).all()


@pytest.mark.parametrize("rule", ["widest", "first"])
def test_tensors_choose_as_arrays_do(rule):
    torch = pytest.importorskip("torch", reason="needs limi[torch]")
    scores, own, _ = drawn()
    mine = scores[np.arange(len(own)), own]
    here = choose_partner(scores, mine, own=own, rule=rule)
    there = choose_partner(
        torch.tensor(scores), torch.tensor(mine), own=torch.tensor(own), rule=rule
    )
    for array, tensor in zip(here, there, strict=True):
        np.testing.assert_array_equal(array, tensor.numpy())


def test_digits_that_move_with_the_batch_choose_nobody():
    scores = np.array([[0.1, 0.9, 0.9 + 1e-9], [0.1, 0.9 + 1e-9, 0.9]])
    chosen, _, _ = choose_partner(scores, scores[:, 0], own=np.zeros(2, dtype=int))
    assert chosen.tolist() == [1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_the_last_digits_of_sure_scores_choose_nobody(seed):
    """A network drives scores towards 0 and 1, where only digits that move tell them apart."""
    rng = np.random.default_rng(seed)
    scores = np.column_stack([np.full(200, 0.01), 1 - 10.0 ** -rng.uniform(6.5, 9, (200, 6))])
    own = np.zeros(200, dtype=np.intp)
    chosen = {
        choose_partner(noisy, noisy[:, 0], own=own)[0].tobytes()
        for noisy in (scores, *(scores + rng.uniform(-2e-7, 2e-7, scores.shape) for _ in range(5)))
    }
    assert chosen == {np.ones(200, dtype=np.intp).tobytes()}


def test_beyond_the_edge_the_widest_is_chosen_and_a_nan_is_seen():
    scores = np.array([[0.1, 0.9, 0.9 + 3e-6], [0.1, 0.9, 0.9 + 5e-7], [0.1, 0.9, np.nan]])
    chosen, flips, _ = choose_partner(scores, scores[:, 0], own=np.zeros(3, dtype=np.intp))
    assert chosen.tolist() == [2, 1, 2]
    assert flips[:2].tolist() == [[False, True, True]] * 2
