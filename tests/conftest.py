"""What tests of several rooms share."""

import pytest

from limi.models import trial


@pytest.fixture(scope="module")
def untried():
    """Files of models are opened at once, without a process that tries them first.

    That process takes seconds to start; `tests/models/test_trial.py` is about it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(trial.SECONDS, "0")
        yield
