"""Every kind of model gives exactly what its own library gives, and keeps the contract."""

import numpy as np

from limi import models
from limi.decisions import DECIDED_AGAINST, DECIDED_FOR, EDGE
from limi.testing.models import check
from tests.models.kinds import KINDS, Case
from tests.models.people import bound


def test_scores_are_the_librarys_own(case: Case):
    target = bound(case.model, case.frame, **case.given)
    scores = target.score(target.codec.encode(case.frame))
    # A tie that the model settles by a rule of its own is moved off the edge, to its decision.
    tied = np.abs(case.scores - 0.5) <= EDGE
    settled = np.where(case.favors, DECIDED_FOR, DECIDED_AGAINST)
    np.testing.assert_allclose(scores[~tied], case.scores[~tied], rtol=0, atol=1e-6)
    np.testing.assert_allclose(scores[tied], settled[tied], rtol=0, atol=1e-12)


def test_decisions_are_the_librarys_own(case: Case):
    target = bound(case.model, case.frame, **case.given)
    scores = target.score(target.codec.encode(case.frame))
    assert 0.1 < case.favors.mean() < 0.9
    assert np.array_equal(scores > 0.5, case.favors)


def test_the_contract_holds(case: Case):
    target = bound(case.model, case.frame, **case.given)
    check(target, target.codec.encode(case.frame)[:50])


def test_every_kind_that_opens_files_or_wraps_objects_is_in_the_table():
    tried = {name.partition("_")[0] for name in KINDS}
    # Those two stand for models that are trained on tables of their own.
    there = {name for name in models.names() if models.offers(name).by_address}
    assert set(models.names()) - {"demo"} - there == tried
