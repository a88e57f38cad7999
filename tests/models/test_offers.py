"""What kinds declare: other modules know none by name, and silence allows nothing."""

import json
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from limi import models
from limi.audits.problem import prepare
from limi.errors import InvalidInput
from limi.models._offers import ModelOffers, offers
from limi.repairs._refit import refit_of
from tests.packages import Package


def test_kinds_whose_files_a_run_folder_may_open_are_these_and_no_others():
    """A kind enters this list on purpose: opening its files must not run what they bring."""
    known = {kind for kind in models.names() if models.offers(kind).data_only}
    assert known == {"catboost", "demo", "lightgbm", "onnx", "skops", "xgboost"}


@pytest.mark.parametrize("declared", [None, {"data_only": True}, True, ModelOffers])
def test_a_module_that_declares_nothing_offers_nothing(declared):
    module = ModuleType("silent")
    if declared is not None:
        module.OFFERS = declared
    assert offers(module) == ModelOffers()
    assert not offers(module).data_only
    assert not offers(module).by_name


def test_a_file_is_of_the_kind_that_declares_its_ending():
    assert models.kind_of_file("model.onnx") == "onnx"
    assert models.kind_of_file("model.SKOPS") == "skops"
    assert models.kind_of_file("model.unknown") is None


# -- a kind of another package --------------------------------------------------------------

KIND = """
    \"\"\"Rules of one number, as `rule:FILE.rule`.\"\"\"
    import json
    from dataclasses import dataclass

    from limi.models import ModelOffers

    OFFERS = ModelOffers(data_only=DATA_ONLY, endings=(".rule",))


    @dataclass(frozen=True)
    class Rule:
        edge: float
        takes: str = "frame"
        columns: tuple = ("income", "sex")
        n_columns: int = 2

        def score(self, inputs):
            worth = inputs["income"] + 5 * (inputs["sex"] == "F")
            return (worth > self.edge).to_numpy() * 0.8 + 0.1


    def load(place, decision):
        with open(place, encoding="utf-8") as file:
            return Rule(json.load(file)["edge"])
"""
OPEN = """
import contextlib, io, sys
import limi
from limi.cli import main

with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print(limi.reopen("run").problem.model_name)
"""


@pytest.fixture
def tested(tmp_path):
    def make(data_only):
        text = KIND.replace("DATA_ONLY", str(data_only))
        package = Package(tmp_path / "site", {"rules": text}, {"limi.models": {"rule": "rules"}})
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "income": rng.integers(0, 60, 200),
                "sex": rng.choice(["F", "M"], 200),
                "ok": rng.choice(["no", "yes"], 200),
            }
        )
        frame.to_csv(tmp_path / "people.csv", index=False)
        (tmp_path / "income.rule").write_text(json.dumps({"edge": 30.5}))
        done = package.run(
            *("-c", OPEN, "test", "people.csv", "--target", "ok", "--favorable", "yes"),
            *("--protected", "sex", "--model", "rule:income.rule", "--method", "real"),
            *("--rate-rows", "100", "--out", "run"),
            cwd=tmp_path,
        )
        assert (tmp_path / "run" / "findings.parquet").exists(), done.stderr
        return done

    return make


def test_a_kind_of_another_package_that_declares_data_alone_is_opened_again(tested):
    done = tested(data_only=True)
    assert done.stdout == "rule:income.rule\n", done.stderr


def test_one_that_does_not_must_be_named(tested):
    done = tested(data_only=False)
    assert "opening it may run code" in done.stderr
    assert done.stdout == ""


# -- training again -------------------------------------------------------------------------


class Edge:
    """A model that knows how to be trained again."""

    takes, columns, n_columns, notes = "frame", ("income", "sex"), 2, ()

    def __init__(self, edge):
        self.edge = edge

    def score(self, inputs):
        return (inputs["income"] > self.edge).to_numpy() * 0.8 + 0.1

    def describe_refit(self):
        if self.edge < 0:
            raise InvalidInput("an edge below 0 cannot be learned")
        return "the mean income of those who are refused"

    def refit(self, inputs, labels, seed, *, n_table):
        assert n_table == 100
        return Edge(float(inputs["income"][labels == 0].mean()))


def problem_of(model):
    income = np.arange(100)
    frame = pd.DataFrame(
        {
            "income": income,
            "sex": np.where(income % 2, "F", "M"),
            "ok": np.where(income > 49, "yes", "no"),
        }
    )
    return prepare(model, frame, protected=["sex"], target="ok", favorable="yes")


def test_a_model_of_any_kind_that_can_be_refitted_is():
    problem = problem_of(Edge(10.0))
    refit = refit_of(problem)
    assert refit.words == "the mean income of those who are refused"
    made = refit(problem.rows, problem.labels, seed=0)
    assert made.target.model.edge == 24.5


def test_one_that_cannot_is_refused_before_the_work_begins():
    with pytest.raises(InvalidInput, match="below 0 cannot be learned"):
        refit_of(problem_of(Edge(-1.0)))


def test_one_that_does_not_know_how_needs_a_function():
    with pytest.raises(InvalidInput, match=r"fit.*FILE\.py:NAME"):
        refit_of(problem_of(lambda frame: (frame["income"] > 50) * 0.8 + 0.1))
