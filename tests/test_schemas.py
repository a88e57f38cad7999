"""JSON Schemas of manifest, gate and proof describe the files of real runs, and nothing else."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import limi
from limi.gates import Gate, gate
from limi.system.shown import to_json
from limi.table.files import read
from tests.schemas import breaches, schema_of
from tests.trees.cases import coded, draw_table, split

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "sex": RNG.choice(["F", "M"], 240),
        "age": RNG.integers(18, 60, 240),
        "grade": RNG.choice(["low", "middle", "high"], 240),
    }
)
SMALL = {"max_rows": 200, "rate_rows": 60, "generator": None, "method": "themis"}


def price(asked):
    return (200.0 + asked["age"] + 40 * (asked["sex"] == "M")).to_numpy()


def approve(asked):
    return 1 / (1 + np.exp((230 - price(asked)) / 20))


def grade(asked):
    return np.eye(3)[np.digitize(price(asked), [235, 270])]


def manifest_of(folder, model, frame=PEOPLE, **given):
    given = {"protected": ["sex"], "drop": ["grade"]} | SMALL | given
    limi.audit(model, frame, out=folder / "run", **given)
    return json.loads((folder / "run" / "manifest.json").read_text(encoding="utf-8"))


def classes(**given):
    return {"drop": (), "target": "grade", "decision": "class"} | given


@pytest.mark.parametrize(
    ("model", "given", "has"),
    [
        (approve, {}, {}),
        (approve, {"redact": ["age"]}, {"hidden": ["age"]}),
        (price, {"decision": "difference > 10"}, {"favorable": None}),
        (grade, classes(order=["low", "middle", "high"]), {"order": ["low", "middle", "high"]}),
        (grade, classes(), {"classes": ["high", "low", "middle"]}),
        (approve, {"generator": "trees", "twin": True}, {"generator": "trees"}),
    ],
)
def test_the_manifest_of_a_run_is_as_its_schema_says(tmp_path, model, given, has):
    tree = manifest_of(tmp_path, model, **given)
    assert breaches("manifest", tree) == []
    assert tree | has == tree


def test_the_manifest_of_a_sample_is_as_its_schema_says(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    tree = manifest_of(tmp_path, approve, read(tmp_path / "people.csv", fit_rows=100))
    assert breaches("manifest", tree) == []
    assert tree["fit_rows"] == 100


@pytest.fixture(scope="module")
def gates():
    given = {"protected": ["sex"], "generator": None, "max_queries": 2_000}
    rules = ["real_rate <= 1 %", "uniform_rate <= 99 %", "real_worst_region_rate <= 1 %"]
    grades = {"target": "grade", "decision": "class"}
    return [
        gate(approve, PEOPLE.drop(columns="grade"), rules, **given),
        gate(lambda asked: asked["age"] / 100, PEOPLE, rules[:1], **given),
        gate(grade, PEOPLE, rules[:1], **given, **grades),
    ]


def test_the_answer_of_a_gate_is_as_its_schema_says(gates):
    for answered in gates:
        assert breaches("gate", json.loads(to_json(answered.as_dict()))) == []
    assert {str(judged.answer) for judged in gates[0].rules} == {"pass", "fail", "inconclusive"}
    assert gates[0].examples
    assert str(gates[1].answer) == "pass"


def test_the_schema_of_a_gate_has_every_field():
    fields = {field.name for field in dataclasses.fields(Gate)}
    assert {"format", *fields} == set(schema_of("gate").schema["properties"])


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    from sklearn.ensemble import RandomForestClassifier

    folder = tmp_path_factory.mktemp("schemas") / "proof"
    frame = coded(draw_table(np.random.default_rng(5), 200))
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(*split(frame))
    limi.certify(
        model,
        frame,
        protected="sex",
        target="good",
        favorable=1,
        near={"age": 2},
        rows=40,
        solver=False,
        domain=True,
        out=folder,
    )
    return json.loads((folder / "proof.json").read_text(encoding="utf-8"))


def test_a_proof_is_as_its_schema_says(proof):
    assert breaches("proof", proof) == []
    assert proof["witnesses"]
    assert proof["domain"]


@pytest.mark.parametrize("name", ["manifest", "gate", "proof"])
def test_what_is_not_such_a_file_is_refused(name, gates, proof, tmp_path):
    trees = {"gate": json.loads(to_json(gates[0].as_dict())), "proof": proof}
    tree = trees[name] if name in trees else manifest_of(tmp_path, approve)
    optional = {*tree} - {*schema_of(name).schema["required"]}
    assert optional <= {"hidden", "dropped"}
    assert breaches(name, tree | {"unheard": 1})
    assert breaches(name, tree | {"versions": "new"})
    for key in tree.keys() - optional:
        assert breaches(name, {k: v for k, v in tree.items() if k != key}), key


@pytest.mark.parametrize("name", ["manifest", "gate", "proof", "summary"])
def test_every_key_of_a_schema_is_explained(name):
    """`summary` is generated from the code; the others are read by people."""
    properties = schema_of(name).schema["properties"]
    unsaid = [key for key, one in properties.items() if not one.get("description")]
    assert name == "summary" or unsaid == []
