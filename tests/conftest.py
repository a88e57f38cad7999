"""What tests of several rooms share, and the order of their files."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from limi.models import trial

HERE = Path(__file__).parent

# A busy machine is not a defect: no property fails because of the clock.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# A worker takes a file whole, so that nothing is fitted twice for it. These take longest (over ten
# seconds each, longest first); begun early, they leave no worker alone at the end.
LONG = (
    *("hostile/test_hostile.py", "models/test_trial.py", "cli/test_commands.py"),
    *(
        "lab/test_smoke.py",
        "audits/test_audit.py",
        "audits/test_seconds.py",
        "cli/test_net.py",
        "cli/test_folders.py",
    ),
    "remote/test_runs.py",
    *("hostile/test_harness.py", "report/test_in_browser.py", "test_docs.py"),
    *("methods/test_adf.py", "methods/test_contract.py", "cli/test_repair.py", "test_decisions.py"),
    *("methods/test_limi.py", "repairs/test_repair.py", "generators/test_files.py"),
    *("lab/test_models.py", "audits/test_what_if.py", "lab/test_pool.py"),
    *("test_extending.py", "metrics/test_declared.py", "gpu/test_verdicts.py"),
    *("models/test_torch.py", "gpu/test_place.py", "models/test_kinds.py"),
)


def pytest_collection_modifyitems(items):
    """Long files first, the others as they come."""
    gone = [name for name in LONG if not (HERE / name).exists()]
    if gone:
        raise pytest.UsageError(f"tests/conftest.py names {gone}, which are not there")
    place = {str(HERE / name): order for order, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(str(item.path), len(LONG)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """What a test draws without a seed of its own is the same each time, whatever ran before."""
    np.random.set_state(np.random.RandomState(0).get_state())  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)


@pytest.fixture(scope="module")
def untried():
    """Files of models are opened at once, without a process that tries them first.

    That process takes seconds to start; `tests/models/test_trial.py` is about it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(trial.SECONDS, "0")
        yield
