"""Results of studies on disk: read whole, or refused in one sentence."""

from limi.studies._files import load
from limi.studies._results import read
from tests.studies.small import ROOT


def test_kept_results_can_be_read_and_hold_no_findings():
    for path in (ROOT / "studies" / "results").glob("*/*.json"):
        results = read(load(path.stem), path.parent.name, ROOT / "studies" / "results")
        assert results.outcomes
        assert path.stat().st_size < 1_500_000
