"""Training a model again: what is opened, and what a function of the user's is given."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

import limi
from limi.audits.problem import prepare
from limi.errors import InvalidInput
from limi.repairs._refit import refit_of
from tests.repairs.small import people


class Bomb:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_training_again_opens_no_cache_that_the_model_names(tmp_path):
    cache, owned = tmp_path / "cache", tmp_path / "owned"
    frame = people()
    steps = [("code", OrdinalEncoder()), ("decide", DecisionTreeClassifier(max_depth=2))]
    model = Pipeline([("inner", Pipeline(steps, memory=str(cache)))])
    model.fit(frame.drop(columns="ok"), frame["ok"])
    given = prepare(model, frame, protected=["sex"], target="ok", favorable="yes")
    # Just what training again would ask the cache for; then each answer is planted.
    spelled = np.array(["no", "yes"], dtype=model.classes_.dtype)[given.labels]
    clone(model).fit(given.target.present(given.rows), spelled)
    planted = list(cache.rglob("output.pkl"))
    for file in planted:
        file.write_bytes(pickle.dumps(Bomb(owned)))
    assert planted
    refit_of(given)(given.rows, given.labels, 0)
    assert not owned.exists()


class Linear(torch.nn.Module):
    """One logit of three numbers: income, sex and age."""

    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(3, 1, dtype=torch.float64)
        torch.nn.init.zeros_(self.last.weight)
        torch.nn.init.zeros_(self.last.bias)

    def forward(self, rows):
        return self.last(rows - torch.tensor([5.0, 0.5, 22.0], dtype=torch.float64))


def numbers(frame):
    cells = np.stack([frame["income"], frame["sex"] == "M", frame["age"]], axis=1)
    return torch.from_numpy(cells.astype(np.float64))


def train(frame, labels, partners=None, strength=0.0):
    """A module of PyTorch, by a loop of the user's own, with or without pairs."""
    rows, wanted = numbers(frame), torch.from_numpy((np.asarray(labels) == "yes").astype(float))
    module = Linear()
    steps = torch.optim.LBFGS(module.parameters(), max_iter=20, line_search_fn="strong_wolfe")

    def loss():
        steps.zero_grad()
        margins = module(rows)[:, 0]
        total = torch.nn.functional.binary_cross_entropy_with_logits(margins, wanted)
        total = total + 1e-3 * (module.last.weight**2).sum()
        if partners is not None:
            told = module(numbers(partners))[:, 0]
            total = total + strength * ((margins - told) ** 2).mean()
        total.backward()
        return total

    steps.step(loss)
    return lambda asked: torch.sigmoid(module(numbers(asked))[:, 0]).detach().numpy()


def test_a_loop_of_the_users_own_is_trained_with_pairs_if_it_takes_them():
    frame = people()
    told = {"protected": ["sex"], "target": "ok", "favorable": "yes", "output": "score"}
    model = train(frame.drop(columns="ok"), frame["ok"])
    result = limi.audit(model, frame, generator=None, method="real", rate_rows=0, **told)
    seen = []

    def watched(frame, labels, partners=None, strength=0.0):
        if partners is not None:
            assert frame.drop(columns="sex").equals(partners.drop(columns="sex"))
            seen.append((strength, float((frame["sex"] != partners["sex"]).mean())))
        return train(frame, labels, partners, strength)

    made = limi.repair(result, how="pairs", fit=watched, seeds=1, max_accuracy_loss=0.2)
    (tried,) = made.tried
    assert tried.verdict.word == "removed"
    assert {strength for strength, _ in seen} == {0.1, 1.0, 10.0}
    assert all(0.3 < changed < 0.7 for _, changed in seen)


def test_a_function_without_partners_is_told_what_pairs_need():
    def plain(frame, labels):
        return train(frame, labels)

    frame = people(120)
    told = {"protected": ["sex"], "target": "ok", "favorable": "yes", "output": "score"}
    result = limi.audit(
        train(frame.drop(columns="ok"), frame["ok"]),
        frame,
        generator=None,
        method="real",
        rate_rows=0,
        **told,
    )
    with pytest.raises(InvalidInput, match="a fit function that also takes partners and strength"):
        limi.repair(result, how="pairs", fit=plain, seeds=1)
