"""Holm's correction against its definition, and against what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limi.metrics._holm import holm
from tests.naive import regions as naive


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_agrees_with_the_definition(p_values):
    assert holm(np.array(p_values)).tolist() == naive.holm(p_values)


def test_holm_rejects_whatever_bonferroni_does():
    p_values = np.array([0.011, 0.02, 0.6, 0.001])
    assert (holm(p_values) <= np.minimum(4 * p_values, 1)).all()
    assert holm(np.array([0.01, 0.013, 0.2])).tolist() == pytest.approx([0.03, 0.03, 0.2])


def test_one_hypothesis_needs_no_correction_and_no_p_value_passes_one():
    assert holm(np.array([0.04])).tolist() == [0.04]
    assert holm(np.array([0.4, 0.6, 0.9])).tolist() == [1.0, 1.0, 1.0]
