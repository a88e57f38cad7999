"""Averaged models: proven by construction, where the same is put in for a row and its partner."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limi
from limi.errors import BadModel, InvalidInput
from limi.proofs import Answer, Stage
from limi.report import proof as page
from tests.proofs.brute import flips_near
from tests.proofs.test_certify import ruled_table
from tests.trees.cases import coded, draw_table, split

pytestmark = pytest.mark.usefixtures("untried")

TOLD = {"target": "good", "favorable": 1}


@pytest.fixture(scope="module")
def ruled():
    """People with a role and rules that bind partners, and a forest that looks at both."""
    frame, schema = ruled_table(np.random.default_rng(1), 2)
    encoder = OneHotEncoder(handle_unknown="ignore")
    steps = make_column_transformer(
        (encoder, ["sex", "job", "role", "band"]), remainder="passthrough"
    )
    model = make_pipeline(steps, RandomForestClassifier(6, random_state=0)).fit(*split(frame))
    return model, frame, schema


@pytest.mark.parametrize("kind", ["classifier", "function"])
def test_a_model_that_is_averaged_flips_nobody_by_construction(kind):
    """Whatever is inside: it need not be made of trees."""
    frame = coded(draw_table(np.random.default_rng(3), 120))
    model = LogisticRegression(max_iter=1000).fit(*split(frame))
    inside = model if kind == "classifier" else lambda rows: model.predict_proba(rows)[:, 1]
    fair = limi.average(inside, frame, protected="sex", **TOLD)
    proof = limi.certify(fair, frame, protected="sex", near={"age": 2}, rows=40, **TOLD)
    assert (proof.answer == Answer.PROVEN).all()
    assert (proof.stage == Stage.CONSTRUCTION).all()
    assert proof.gap.max() == 0
    assert proof.kind == "model averaged over sex"
    assert "the construction of the model (40)" in page.remarks(proof.as_dict())[0]


def test_other_protected_columns_are_not_proven_by_it():
    frame = coded(draw_table(np.random.default_rng(3), 120))
    model = RandomForestClassifier(4, random_state=0).fit(*split(frame))
    fair = limi.average(model, frame, protected="sex", **TOLD)
    with pytest.raises(BadModel, match="averaged over sex and not over level"):
        limi.certify(fair, frame, protected=["sex", "level=0,3"], rows=5, **TOLD)
    with pytest.raises(InvalidInput, match="leave domain out"):
        limi.certify(fair, frame, protected="sex", rows=5, domain=True, **TOLD)


@pytest.mark.parametrize("near", [{"age": 1, "level": 1}, {"role": "any"}])
def test_with_roles_partners_of_partners_are_partners(ruled, near):
    model, frame, schema = ruled
    told = TOLD | {"protected": "sex", "schema": schema}
    fair = limi.average(model, frame, **told)
    proof = limi.certify(fair, frame, near=near, rows=40, **told)
    assert set(proof.answer.tolist()) <= {Answer.PROVEN, Answer.ALONE}
    assert (proof.answer == Answer.PROVEN).sum() > 20
    for row in proof.rows[:6]:
        assert not flips_near(proof.problem, near, row)


def test_an_average_that_left_the_roles_out_proves_only_where_it_holds(ruled):
    """A husband and a wife are then averaged as two people."""
    model, frame, schema = ruled
    fair = limi.average(model, frame, protected="sex", **TOLD)
    near = {"level": 1}
    proof = limi.certify(fair, frame, protected="sex", schema=schema, near=near, rows=40, **TOLD)
    single = frame.role.to_numpy()[proof.chosen] == "single"
    assert (proof.answer[single] == Answer.PROVEN).all()
    assert not (proof.answer[~single] == Answer.PROVEN).any()
    assert (proof.answer[~single] == Answer.FLIPS).any()
    for row, answer in zip(proof.rows, proof.answer, strict=True):
        if answer != Answer.UNDECIDED:
            assert flips_near(proof.problem, near, row) == (answer == Answer.FLIPS)
