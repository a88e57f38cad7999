"""Replay, diff and exported tests where decisions are classes, numbers or bands."""

import json

import numpy as np
import pandas as pd
import pytest

import limi
from limi.audits.reopen import Run, read_shown_findings
from limi.changes import GONE, SAME, TURNED
from limi.errors import CorruptStore, InvalidInput
from limi.report import changes as page
from limi.report.ledger import ledger_of
from limi.system.shown import to_json
from limi.table.files import infer
from limi.testing import read_pairs
from limi.testing.export import PAIRS, export
from tests.naive import decisions as naive

GRADES = ["low", "medium", "high"]
CUTS = [240.0, 300.0]

PROGRAM = """
import numpy as np

def price(frame, young=20, extra=40):
    told = (frame["sex"] == "M") & (frame["age"] < young)
    return (200.0 + 3 * frame["km"] + extra * told + 0.5 * frame["age"]).to_numpy(dtype=float)

def shares(frame, **how):
    places = np.digitize(price(frame, **how), [240.0, 300.0])
    told = np.full((len(frame), 3), 0.1)
    told[np.arange(len(frame)), places] = 0.8
    return told[:, [2, 0, 1]]  # high, low, medium: in sorted order

def newer_price(frame):
    return price(frame, young=10)

def turned_price(frame):
    return price(frame, young=10, extra=-40)

def newer_shares(frame):
    return shares(frame, young=10)

def turned_shares(frame):
    return shares(frame, young=10, extra=-40)
"""
held = {}
exec(PROGRAM, held)

# what is tested, how, and how two answers of one person differ
KINDS = {
    "number": ("price", {"decision": "difference > 25"}),
    "bands": ("price", {"decision": "bands = 240, 300"}),
    "class": ("shares", {"decision": "class"}),
    "ordered": ("shares", {"order": GRADES}),
}


def people(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(0, 40, n),
            "km": rng.integers(0, 40, n),
        }
    )
    price = held["price"](frame)
    return frame.assign(price=price, grade=np.array(GRADES)[np.digitize(price, CUTS)])


def table_of(kind):
    target = "price" if KINDS[kind][0] == "price" else "grade"
    return people()[["sex", "age", "km", target]], target


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "model.py").write_text(PROGRAM, encoding="utf-8")
    for kind, (model, more) in KINDS.items():
        table, target = table_of(kind)
        table.to_csv(folder / f"{target}.csv", index=False)
        limi.audit(
            f"python:{folder / 'model.py'}:{model}",
            table,
            protected="sex",
            target=target,
            method="real",
            generator=None,
            rate_rows=120,
            out=folder / kind,
            table_name=str(folder / f"{target}.csv"),
            **more,
        )
    return folder


def differs(kind, one, other):
    """Do two prices make different decisions, and which way: person by person."""
    if kind == "number":
        return naive.numbers_differ(one, other, 25, False), np.sign(one - other)
    apart = naive.bands_apart(one, other, CUTS) > 0
    return apart, 0 if kind == "class" else np.sign(one - other)


def outcome(kind, row, newer):
    sides = [pd.DataFrame([row | {"sex": sex}]) for sex in (row["sex"], row["sex__partner"])]
    before = [float(held["price"](side)[0]) for side in sides]
    after = [float(newer(side)[0]) for side in sides]
    flips, way = differs(kind, *after)
    if not flips:
        return GONE
    return TURNED if way * differs(kind, *before)[1] < 0 else SAME


@pytest.mark.parametrize("newer", ["newer", "turned"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_finding_is_told_as_asking_it_alone_would_tell(place, kind, newer):
    model = held[f"{newer}_{KINDS[kind][0]}"]
    told = limi.replay(place / kind, model)
    wanted = [outcome(kind, row, held[f"{newer}_price"]) for row in told.found.to_dict("records")]
    assert told.outcome.tolist() == wanted
    turned = GONE if kind == "class" else TURNED
    assert {GONE, SAME if newer == "newer" or kind == "class" else turned} == {*wanted}
    assert told.as_dict()["decision"] == str(Run.at(place / kind).rule)
    json.loads(to_json(told.as_dict()))


def test_new_answers_are_told_in_the_unit_of_the_decision(place):
    told = limi.replay(place / "number", held["newer_price"])
    frame = told.findings
    assert np.array_equal(frame["new_prediction"], held["newer_price"](frame))
    assert told.gaps[0] == pytest.approx(40)
    assert page.gaps(told).startswith("Mean distance of the two predictions: 40 before, ")
    assert "predictions 2" in page.shown_examples(told)[0]
    told = limi.replay(place / "ordered", held["newer_shares"])
    labels = np.array(GRADES)[np.digitize(held["newer_price"](told.findings), CUTS)]
    assert told.findings["new_class"].tolist() == labels.tolist()
    assert "classes medium / low before, low / low after" in "".join(page.shown_examples(told))
    assert page.gaps(told).startswith("Mean distance of the places of the two classes: 1 before")
    assert page.gaps(limi.replay(place / "class", held["newer_shares"])) == ""


def test_findings_that_cannot_be_asked_have_no_new_answer(place):
    table, _ = table_of("class")
    older = table[table["km"] > 5]
    schema = infer(older[["sex", "age", "km"]])
    told = limi.replay(place / "class", held["newer_shares"], table=older, schema=schema)
    unasked = told.found["km"] <= 5
    assert 0 < unasked.sum() < len(told)
    assert told.findings["new_class"].isna().tolist() == unasked.tolist()
    assert told.findings["new_lead"].isna().tolist() == unasked.tolist()
    assert any("not asked after" in line for line in page.shown_examples(told))


@pytest.mark.parametrize("kind", KINDS)
def test_two_models_are_compared_by_the_rule_of_the_run(place, kind):
    table, target = table_of(kind)
    name = KINDS[kind][0]
    told = limi.diff(place / kind, model=held[f"newer_{name}"], before_model=held[name], rows=120)
    (real,) = told.populations
    flips = [
        sum(
            differs(kind, *(float(model(pd.DataFrame([row | {"sex": sex}]))[0]) for sex in "FM"))[0]
            for row in table.to_dict("records")
        )
        for model in (held["price"], held["newer_price"])
    ]
    assert [round(120 * rate.estimate) for rate in (real.change.before, real.change.after)] == flips
    assert real.change.word == "better"
    prices = held["price"](table), held["newer_price"](table)
    otherwise = [differs(kind, float(a), float(b))[0] for a, b in zip(*prices, strict=True)]
    assert real.decided_otherwise == sum(otherwise) > 0
    if target == "price":
        assert real.mean_prediction == pytest.approx(tuple(p.mean() for p in prices))
    else:
        shares = [(np.digitize(p, CUTS) == GRADES.index("low")).mean() for p in prices]
        assert real.classes["low"] == pytest.approx(tuple(shares))
    assert told.replayed.counts[GONE] == flips[0] - flips[1]
    drawn = page.render(told)
    words = "Their mean prediction was" if target == "price" else "Shares of classes"
    assert words in drawn
    assert f"<dd>{told.decisions[0].replace('>', '&gt;')}</dd>" in drawn
    json.loads(to_json(told.as_dict()))


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_exported_and_ask_by_the_same_rule(place, kind):
    uri, name = f"python:{place / 'model.py'}:", KINDS[kind][0]
    done = export(place / kind, place / f"test_{kind}", pairs=20, model=f"{uri}{name}")
    assert not done.passes
    kept = read_pairs(place / f"test_{kind}" / PAIRS)
    assert len(kept) == 20
    asked = kept.ask(held[name])
    assert len(asked) == 20
    said = {"number": "prediction 2", "bands": "prediction 2"}.get(kind, "class medium -> low")
    assert said in str(asked) or "class low -> medium" in str(asked)
    newer = kept.ask(held[f"newer_{name}"])
    prices = [
        [float(held["newer_price"](pd.DataFrame([row | {"sex": row[sex]}]))[0]) for sex in sides]
        for row in kept.frame.to_dict("records")
        for sides in [("sex", "sex__partner")]
    ]
    assert newer.flips.tolist() == [differs(kind, *pair)[0] for pair in prices]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_an_opened_run_holds_all_findings(place, kind):
    run = Run.at(place / kind)
    schema, found = read_shown_findings(run)
    ledger = ledger_of(schema, found, run.summary, run.rule)
    assert ledger["total"] == run.summary.findings > 20
    titles = [column["title"] for column in ledger["columns"]]
    assert ("prediction" if KINDS[kind][0] == "price" else "decision") in titles


def test_answers_of_another_kind_are_refused(place):
    with pytest.raises(InvalidInput, match="used 'class', which compares different answers"):
        limi.replay(place / "class", held["newer_price"], decision="difference > 2")
    with pytest.raises(InvalidInput, match="which compares different answers"):
        limi.diff(place / "number", place / "class")
    told = limi.replay(place / "number", held["newer_price"], decision="difference > 60")
    assert told.counts[GONE] == len(told)


def test_a_manifest_with_odd_classes_is_damaged(place, tmp_path):
    from shutil import copytree

    copytree(place / "class", tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    assert tree["classes"] == sorted(GRADES)
    path.write_text(json.dumps(tree | {"classes": 5}), encoding="utf-8")
    with pytest.raises(CorruptStore, match="classes is 5"):
        limi.replay(tmp_path / "run", held["newer_shares"])
