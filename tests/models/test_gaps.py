"""Missing text reaches an estimator as it was in training, whatever the table is a frame of."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from limi import models
from limi.models.target import bind
from limi.table.files import infer
from limi.table.frames import Codec

N = 200
RNG = np.random.default_rng(0)
JOBS = pd.Series(RNG.choice(["a", "b", "gap"], N), dtype=object)
FRAME = pd.DataFrame({"age": RNG.integers(20, 60, N), "job": JOBS.where(JOBS != "gap", np.nan)})
LABELS = (RNG.random(N) < np.where(JOBS == "gap", 0.9, 0.2)).astype(int)

FRAMES = {
    "pandas": FRAME,
    "pandas with None": FRAME.assign(job=JOBS.where(JOBS != "gap", None).astype(object)),
    "polars": pl.from_pandas(FRAME),
    "arrow": pa.Table.from_pandas(FRAME),
}
ENCODERS = {
    "encoder": OneHotEncoder(handle_unknown="ignore"),
    "imputer": make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"), OrdinalEncoder()
    ),
}


def pipeline(encoder):
    columns = make_column_transformer((encoder, ["job"]), remainder="passthrough")
    return make_pipeline(columns, LogisticRegression())


def target_of(estimator, frame):
    schema = infer(frame).protect(["job"])
    return bind(models.wrap(estimator), Codec.learn(frame, schema))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    ("encoder", "trained"),
    # Trained on polars, the imputer takes None for a value and fills nothing.
    [("encoder", "pandas"), ("encoder", "polars"), ("imputer", "pandas")],
)
def test_the_model_is_given_the_gaps_of_its_training(encoder, trained, frame):
    estimator = pipeline(ENCODERS[encoder]).fit(FRAMES[trained], LABELS)
    expected = estimator.predict_proba(FRAMES[trained])[:, 1]
    searched = GridSearchCV(pipeline(ENCODERS[encoder]), {"logisticregression__C": [1.0]}, cv=2)
    for fitted in (estimator, searched.fit(FRAMES[trained], LABELS)):
        target = target_of(fitted, FRAMES[frame])
        scores = target.score(target.codec.encode(FRAMES[frame]))
        np.testing.assert_allclose(scores, expected, atol=1e-6)
        assert target.notes == ()


def test_a_model_that_never_saw_a_gap_is_noted_on_polars_alone():
    whole = FRAME.assign(job=FRAME["job"].fillna("a"))
    estimator = pipeline(OneHotEncoder(handle_unknown="ignore")).fit(whole, LABELS)
    for name, frame in FRAMES.items():
        noted = [note for note in target_of(estimator, frame).notes if "'job'" in note]
        assert len(noted) == (name == "polars"), name
    assert target_of(estimator, pl.from_pandas(whole)).notes == ()


def test_an_array_of_objects_is_filled_too():
    estimator = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    cells = FRAME.to_numpy(dtype=object)
    estimator.fit(cells, LABELS)
    for frame in FRAMES.values():
        target = target_of(estimator, frame)
        scores = target.score(target.codec.encode(frame))
        np.testing.assert_allclose(scores, estimator.predict_proba(cells)[:, 1], atol=1e-6)
