"""The ensemble that labels findings."""

import numpy as np
import pytest

from limi.repairs import _ensemble
from tests.toy import schema_of


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_ensemble_is_scikit_learn_s_soft_vote_without_protected_columns():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier, VotingClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    schema = schema_of((0, 9), (0, 9), (0, 1), protected=["x2"])
    rows = rng.integers(0, 10, (160, 3)).astype(float)
    rows[:, 2] %= 2
    labels = (rows[:, 0] + rows[:, 1] + rng.normal(0, 2, 160) > 9).astype(np.int8)
    made = _ensemble.fit(rows, labels, schema, blind_to={"x2"})
    seen, _, truth, _ = train_test_split(rows[:, :2], labels, train_size=0.6, random_state=42)
    scaling = StandardScaler().fit(seen)
    peer = VotingClassifier(
        [
            ("knn", KNeighborsClassifier(5)),
            ("mlp", MLPClassifier(random_state=42)),
            ("svm", CalibratedClassifierCV(SVC(random_state=42), ensemble=False)),
            ("forest", RandomForestClassifier(random_state=42)),
            ("bayes", GaussianNB()),
        ],
        voting="soft",
    ).fit(scaling.transform(seen), truth)
    expected = peer.predict_proba(scaling.transform(rows[:, :2]))[:, 1]
    assert np.allclose(made.score(rows), expected, atol=1e-9)
    other = rows.copy()
    other[:, 2] = 1 - other[:, 2]
    assert np.array_equal(made.decide(rows), made.decide(other))
    gaps = rows.copy()
    gaps[0, 0] = np.nan
    assert np.isfinite(made.score(gaps)).all()
