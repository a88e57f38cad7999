"""The hyperplane against scikit-learn's LinearSVC and against geometry."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from limi.errors import InvalidInput
from limi.search import boundary


def problem(seed, n, d, noise, shift=0.0):
    rng = np.random.default_rng(seed)
    latents = rng.normal(size=(n, d)) + shift
    direction = rng.normal(size=d)
    favorable = latents @ direction + noise * rng.normal(size=n) > shift
    favorable[:2] = [True, False]
    return latents, favorable


@pytest.mark.kernels
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(20, 400),
    d=st.integers(1, 12),
    noise=st.sampled_from([0.0, 0.3, 2.0]),
    shift=st.sampled_from([0.0, 3.0]),
    c=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_agrees_with_liblinear(seed, n, d, noise, shift, c):
    latents, favorable = problem(seed, n, d, noise, shift)
    ours = boundary.fit(latents, favorable, C=c)
    theirs = LinearSVC(C=c, dual=False, tol=1e-10, max_iter=100_000).fit(latents, favorable)
    length = np.linalg.norm(theirs.coef_)
    np.testing.assert_allclose(ours.normal, theirs.coef_[0] / length, atol=1e-4)
    assert ours.offset == pytest.approx(theirs.intercept_[0] / length, abs=1e-4, rel=1e-4)


def test_torch_and_numpy_give_the_same_plane():
    latents, favorable = problem(3, 500, 6, 0.5)
    plain = boundary.fit(latents, favorable)
    tensor = boundary.fit(torch.from_numpy(latents).float(), torch.from_numpy(favorable))
    assert tensor.normal.dtype == torch.float32
    np.testing.assert_allclose(tensor.normal.numpy(), plain.normal, atol=1e-4)
    assert tensor.offset == pytest.approx(plain.offset, abs=1e-4)


def test_few_steps_are_enough():
    latents, favorable = problem(1, 5_000, 40, 0.5)
    assert boundary.fit(latents, favorable).steps < 15


@pytest.mark.parametrize("kind", ["spread", "in blocks", "hidden from the first guess"])
def test_a_first_guess_from_a_part_changes_nothing(kind):
    latents, favorable = problem(2, 30_000, 6, 2.0)
    if kind == "in blocks":
        order = np.argsort(favorable, kind="stable")
        latents, favorable = latents[order], favorable[order]
    elif kind == "hidden from the first guess":
        favorable[::10] = False  # one decision alone where the guess looks
    latents = latents.astype(np.float32)
    ours = boundary.fit(latents, favorable)
    theirs = LinearSVC(dual=False, tol=1e-10, max_iter=100_000).fit(latents, favorable)
    length = np.linalg.norm(theirs.coef_)
    np.testing.assert_allclose(ours.normal, theirs.coef_[0] / length, atol=1e-4)
    assert ours.offset == pytest.approx(theirs.intercept_[0] / length, abs=1e-4, rel=1e-4)
    # The same latents as tensors are solved from zero and in one piece.
    tensor = boundary.fit(torch.from_numpy(latents), torch.from_numpy(favorable))
    np.testing.assert_allclose(ours.normal, tensor.normal.numpy(), atol=1e-6)


def test_a_hard_first_guess_leaves_steps_for_the_rest(monkeypatch):
    """Few distinct latents, repeated to make both sides equal, take many steps at every size."""
    rng = np.random.default_rng(4)
    sides = [rng.normal(size=(n, 40))[rng.integers(n, size=50_000)] for n in (790, 10)]
    latents, favorable = np.concatenate(sides), np.arange(100_000) >= 50_000
    at_leisure = boundary.fit(latents, favorable)
    monkeypatch.setattr(boundary, "_MOST_STEPS", 30)
    assert at_leisure.steps > 30
    hurried = boundary.fit(latents, favorable)
    np.testing.assert_allclose(hurried.normal, at_leisure.normal, atol=1e-8)


@pytest.mark.parametrize("step", [0.0, 0.3, -0.3])
def test_geometry(step):
    latents, favorable = problem(5, 300, 8, 0.5)
    plane = boundary.fit(latents, favorable)
    assert np.linalg.norm(plane.normal) == pytest.approx(1)
    on_plane = plane.project(latents)
    assert np.abs(plane.distance(on_plane)).max() < 1e-6
    np.testing.assert_allclose(plane.project(on_plane), on_plane, atol=1e-9)
    # The way to the plane is along the normal, so the projection is orthogonal.
    way = latents - on_plane
    np.testing.assert_allclose(way, (way @ plane.normal)[:, None] * plane.normal, atol=1e-9)
    np.testing.assert_allclose(plane.distance(plane.shift(on_plane, step)), step, atol=1e-9)


def test_the_normal_points_to_the_favorable_side():
    latents, favorable = problem(5, 300, 3, 0.0)
    distance = boundary.fit(latents, favorable).distance(latents)
    assert (distance > 0)[favorable].mean() > 0.9


def test_a_linear_rule_is_recovered():
    rng = np.random.default_rng(0)
    latents = rng.normal(size=(20_000, 2))
    plane = boundary.fit(latents, latents @ np.array([3.0, 4.0]) > 0)
    assert plane.normal @ np.array([0.6, 0.8]) > np.cos(np.radians(2))


def test_separable_data_are_handled_and_said():
    latents = np.array([[-5.0, 0.0], [-4.0, 1.0], [4.0, 0.0], [5.0, 1.0]])
    favorable = np.array([False, False, True, True])
    plane = boundary.fit(latents, favorable, C=1e6)
    assert (plane.distance(latents) > 0).tolist() == favorable.tolist()


@pytest.mark.parametrize("favorable", [[True, True], [False, False], [True]])
def test_one_decision_alone_has_no_boundary(favorable):
    latents = np.zeros((len(favorable), 2))
    with pytest.raises(InvalidInput, match="both decisions"):
        boundary.fit(latents, np.array(favorable))


def test_latents_that_coincide_have_no_boundary():
    with pytest.raises(InvalidInput, match="coincide"):
        boundary.fit(np.zeros((4, 2)), np.array([True, False, True, False]))


def test_a_random_plane_is_a_unit_plane_by_seed():
    latents = np.zeros((1, 50), dtype=np.float32)
    one = boundary.random(latents, np.random.default_rng(1))
    two = boundary.random(latents, np.random.default_rng(1))
    assert np.linalg.norm(one.normal) == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(one.normal, two.normal)


@given(seed=st.integers(0, 1000), levels=st.integers(1, 30))
def test_auc_is_scikit_learn_s(seed, levels):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, 60).astype(float)
    favorable = rng.random(60) < 0.4
    favorable[:2] = [True, False]
    assert boundary.auc(scores, favorable) == pytest.approx(roc_auc_score(favorable, scores))


def test_auc_of_one_class_is_undefined():
    assert np.isnan(boundary.auc(np.zeros(3), np.ones(3, dtype=bool)))


def labelled(latents, favorable, size=700):
    """Latents in chunks, with their decisions, anew each time."""

    def chunks():
        for start in range(0, len(latents), size):
            yield latents[start : start + size], favorable[start : start + size]

    return chunks


def unequal(n=4_000, width=6):
    rng = np.random.default_rng(3)
    latents = rng.normal(size=(n, width)).astype(np.float32)
    margin = 1.5 * (latents @ rng.normal(size=width)) - 4.0
    return latents, margin + rng.logistic(size=n) > 0


def test_the_calibrated_plane_is_that_of_a_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    latents, favorable = unequal()
    plane = boundary.calibrate(labelled(latents, favorable))
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=1_000).fit(latents, favorable)
    length = np.linalg.norm(peer.coef_)
    np.testing.assert_allclose(plane.normal, peer.coef_[0] / length, atol=1e-3)
    assert plane.offset == pytest.approx(float(peer.intercept_[0] / length), abs=1e-3)


def test_chunks_and_tensors_change_nothing_of_the_calibrated_plane():
    torch = pytest.importorskip("torch", reason="needs limi[torch]")
    latents, favorable = unequal()
    planes = [
        boundary.calibrate(labelled(latents, favorable, 4_000)),
        boundary.calibrate(labelled(latents, favorable, 333)),
        boundary.calibrate(labelled(torch.from_numpy(latents), torch.from_numpy(favorable))),
    ]
    for plane in planes[1:]:
        np.testing.assert_allclose(np.asarray(plane.normal), planes[0].normal, atol=1e-6)
        assert plane.offset == pytest.approx(planes[0].offset, abs=1e-6)


def test_rows_on_the_calibrated_plane_are_decided_either_way_and_on_the_balanced_one_are_not():
    """On the first, half of them by the mechanism; the second lies deep in the larger class."""
    rng = np.random.default_rng(5)
    latents = rng.normal(size=(20_000, 2)).astype(np.float32)
    favorable = latents[:, 0] + 0.5 * rng.normal(size=20_000) > 1.5
    plane = boundary.calibrate(labelled(latents, favorable))
    assert plane.offset == pytest.approx(-1.5, abs=0.05)
    some = rng.permutation(np.flatnonzero(~favorable))[: favorable.sum()]
    even = np.concatenate([np.flatnonzero(favorable), some])
    balanced = boundary.fit(latents[even], favorable[even])
    assert -balanced.offset < 1.2
    half = boundary.between(balanced, plane, 0.5)
    assert -balanced.offset < -half.offset < -plane.offset
    assert boundary.between(balanced, plane, 0.0) is balanced
    assert boundary.between(balanced, plane, 1.0) is plane


def test_a_separable_set_has_a_calibrated_plane_too():
    latents = np.random.default_rng(0).normal(size=(500, 3))
    plane = boundary.calibrate(labelled(latents, latents[:, 1] > 0.3))
    assert abs(plane.normal[1]) > 0.99
    assert plane.steps < 100
