"""Models whose answers move: noticed, told, and never taken for flips."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import limi
from limi.audits.run_folder import read_summary
from limi.report import html, text
from limi.search import steadiness
from limi.search.check import check_rows
from limi.table.files import infer

N = 1200
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "sex": RNG.integers(0, 2, N),
        "merit": RNG.normal(size=N).round(3),
        "years": RNG.integers(0, 30, N),
    }
)
FRAME["ok"] = (FRAME.merit + 0.8 * FRAME.sex + RNG.normal(0, 0.3, N) > 0.4).astype(int)
INPUTS = FRAME.drop(columns="ok")


def audit(model, frame=FRAME, **more):
    given = {"protected": ["sex"], "target": "ok", "favorable": 1, "rate_rows": 800}
    given |= {"method": "real", "generator": None, "seed": 0}
    return limi.audit(model, frame, **given | more)


def by_chance(share=0.3):
    """Fair in the end, but it decides some rows by a coin each time."""
    rng = np.random.default_rng(1)

    def model(frame):
        sure = (frame["merit"] > 0).to_numpy()
        return np.where(rng.random(len(frame)) < share, rng.random(len(frame)) < 0.5, sure)

    return model


def by_position(frame):
    """The same batch gets the same answers; what is drawn belongs to a place in it."""
    drawn = np.random.default_rng(5).random(len(frame))
    return 1 / (1 + np.exp(-3 * frame["merit"] - 3 * (drawn - 0.5)))


def by_batch(frame):
    """Standardises within the batch, and gives one sex a bonus."""
    merit = frame["merit"]
    spread = merit.std(ddof=0) or 1.0
    return ((merit - merit.mean()) / spread + 0.5 * frame["sex"] > 0.4).astype(int)


# -- the sample before a run -------------------------------------------------------------


def rows_of(frame=INPUTS):
    return frame.to_numpy(dtype=float)


def scored(model, columns=tuple(INPUTS.columns)):
    asked = []

    def score(rows):
        asked.append(len(rows))
        return np.asarray(model(pd.DataFrame(rows, columns=columns)), dtype=float)

    score.asked = asked
    return score


def sampled(model, **more):
    score = scored(model)
    told = steadiness.sample(score, rows_of(), np.random.default_rng(0), **more)
    assert told.questions == sum(score.asked)
    return told


def test_a_steady_model_is_steady():
    told = sampled(lambda frame: 1 / (1 + np.exp(-frame["merit"])))
    assert told.steady
    assert (told.rows, told.questions) == (512, 2048)
    assert (told.scores_moved, told.decisions_moved) == (0, 0)


def test_rounding_is_no_other_answer():
    def model(frame):
        return 0.5 + 1e-7 * np.random.default_rng(len(frame)).normal(size=len(frame))

    assert sampled(model).steady


def test_chance_is_seen_by_asking_again():
    told = sampled(by_chance())
    assert not told.steady
    # A coin is tossed for 30 % at each of two times: they differ in 0.3 * 0.7 + 0.09 / 2 of them.
    expected = 512 * (0.3 * 0.7 + 0.09 / 2)
    assert abs(told.again - expected) < 4 * math.sqrt(expected)
    assert told.scores_moved == told.decisions_moved > told.again


def test_what_is_drawn_by_position_is_seen_in_another_order():
    told = sampled(by_position)
    assert told.again == 0
    assert told.reordered > 400
    assert 0 < told.decisions_moved < told.scores_moved


def test_what_the_batch_decides_is_seen_in_small_batches():
    told = sampled(by_batch)
    assert (told.again, told.reordered) == (0, 0)
    assert told.regrouped == told.decisions_moved > 0


@pytest.mark.parametrize("n", [16, 64])
def test_a_small_sample_is_asked_in_smaller_batches_still(n):
    told = sampled(by_batch, n=n)
    assert (told.again, told.reordered) == (0, 0)
    assert told.regrouped > 0


def test_the_sample_is_as_small_as_it_is_asked_to_be_and_keeps_to_the_batch_size():
    score = scored(by_batch)
    told = steadiness.sample(score, rows_of(), np.random.default_rng(0), n=40, max_batch=7)
    assert told.questions == sum(score.asked) == 160
    assert max(score.asked) == 7
    nothing = steadiness.sample(score, rows_of()[:0], np.random.default_rng(0))
    assert nothing.steady
    assert nothing.questions == 0


# -- flips that hold ---------------------------------------------------------------------


def pairs(n):
    rows = rows_of()[:n].copy()
    rows[:, 0] = 0
    partner = rows.copy()
    partner[:, 0] = 1
    return rows, partner


def always(model, n=500, **more):
    score = scored(model)
    rows, partner = pairs(n)
    kept, questions = steadiness.always_flip(score, rows, partner, np.random.default_rng(0), **more)
    assert questions == sum(score.asked)
    assert questions <= 2 * steadiness.TIMES * len(rows) * (4 if "company" in more else 1)
    return kept, rows, score


def test_steady_flips_are_all_kept_and_nothing_else():
    kept, rows, score = always(lambda frame: frame["merit"] + frame["sex"] > 0.5)
    assert np.array_equal(kept, (rows[:, 1] > -0.5) & (rows[:, 1] <= 0.5))
    assert len(set(score.asked)) > 3  # batches of several sizes


def test_batches_stay_within_their_limit_and_one_row_at_a_time_will_do():
    steady = always(lambda frame: frame["merit"] + frame["sex"] > 0.5, n=60)[0]
    for size, more in [(1, {}), (10, {}), (10, {"company": rows_of()})]:
        kept, _, score = always(
            lambda frame: frame["merit"] + frame["sex"] > 0.5, n=60, max_batch=size, **more
        )
        assert np.array_equal(kept, steady)
        assert max(score.asked) <= size


def test_coins_are_dropped():
    rng = np.random.default_rng(3)
    kept, _, score = always(lambda frame: rng.random(len(frame)) < 0.5)
    assert not kept.any()
    # Half of what is left goes each time, so that few questions are needed.
    assert sum(score.asked) < 5 * 2 * 500


def test_the_chance_that_a_coin_passes_is_as_the_docstring_says(monkeypatch):
    monkeypatch.setattr(steadiness, "TIMES", 2)
    rng = np.random.default_rng(4)
    passed = [always(lambda frame: rng.random(len(frame)) < 0.5)[0].mean() for _ in range(40)]
    assert abs(np.mean(passed) - 2 / 4**2) < 0.01
    rng = np.random.default_rng(4)
    lower = [always(lambda frame: rng.random(len(frame)) < 0.8)[0].mean() for _ in range(40)]
    assert np.mean(lower) < np.mean(passed)


def test_verdicts_keep_all_but_the_flips_that_do_not_hold():
    schema = infer(INPUTS).protect(["sex"])
    rng = np.random.default_rng(0)

    def model(frame):
        sure = frame["merit"] + frame["sex"] > 0.5
        return np.where(frame["years"] < 10, rng.random(len(frame)) < 0.5, sure)

    score = scored(model)
    rows = rows_of()
    checked = check_rows(score, schema, rows)
    held = steadiness.confirm(checked, score, rng)
    merit = rows[:, 1]
    assert np.array_equal(held.flips, (rows[:, 2] >= 10) & (merit > -0.5) & (merit <= 0.5))
    assert checked.flips.sum() > 1.3 * held.flips.sum()
    assert held.queries == sum(score.asked)


# -- whole runs --------------------------------------------------------------------------


def test_a_model_that_tosses_coins_has_no_findings_and_no_rate():
    result = audit(by_chance())
    assert result.summary.findings == 0
    assert result.rates["real"].estimate == 0
    told = result.summary.steadiness
    assert told["decisions_moved"] > 0
    assert told["times"] == 10
    assert result.summary.unconfirmed > 100
    note = result.summary.notes[0]
    assert "the model does not always give the same answer" in note
    assert "from one call to the next" in note


def test_a_steady_model_says_so_and_is_asked_no_more_than_before():
    asked = []

    def model(frame):
        asked.append(len(frame))
        return frame["merit"] + frame["sex"] > 0.5

    result = audit(model)
    told = result.summary.steadiness
    assert told["scores_moved"] == 0
    assert not any("does not always" in note for note in result.summary.notes)
    assert sum(asked) == result.summary.queries
    shown = text.render(result.summary)
    assert "always the same answer" in shown
    assert "always the same answer" in html.render(result.summary)


def test_findings_of_a_model_that_depends_on_the_batch_hold_in_any_batch():
    result = audit(by_batch)
    assert "with the other rows in a batch" in result.summary.notes[0]
    merit = (FRAME.merit - FRAME.merit.mean()) / FRAME.merit.std(ddof=0)
    inside = (merit > -0.1) & (merit <= 0.4)  # flips, were the table the batch
    clear = (merit > 0.1) & (merit <= 0.2)
    found = result.findings["merit"]
    assert 0 < len(found) < inside.sum()
    assert found.isin(FRAME.merit[inside]).all()
    assert FRAME.merit[clear].isin(found).mean() > 0.5
    assert result.rates["real"].estimate < inside.mean()


def test_what_moves_stands_in_text_page_and_json(tmp_path):
    result = audit(by_position, out=tmp_path / "run")
    told = json.loads((tmp_path / "run/summary.json").read_text())["steadiness"]
    assert told == result.summary.steadiness
    shown, page = text.render(result.summary), html.render(result.summary)
    words = f"{told['decisions_moved']} got a different decision"
    assert words in " ".join(shown.split())
    assert words in page
    assert "because answers vary" in " ".join(shown.split())
    assert "so the same command may find other rows" in page
    assert read_summary(tmp_path / "run").steadiness == told


def test_a_resumed_run_of_such_a_model_goes_the_way_it_went(tmp_path):
    def interrupt(progress):
        if progress.phase == "search" and progress.rows >= 2000:
            raise KeyboardInterrupt

    given = {"method": "themis", "max_rows": 5000, "max_batch": 500, "out": tmp_path / "run"}
    model = by_chance()
    first = audit(model, **given, on_progress=interrupt)
    assert first.stop == "interrupted"
    result = audit(model, **given, resume=True)
    assert result.stop == "rows"
    assert result.rates == first.rates
    assert result.summary.steadiness == first.summary.steadiness
    assert result.summary.findings == 0


def test_a_surprise_after_a_steady_sample_is_told_and_mended():
    calls = 0

    def model(frame):
        nonlocal calls
        calls += 1
        steady = calls <= 1 + 3 + 512 // 64  # the contract, and the sample in its batches
        rng = np.random.default_rng(calls)
        flips = rng.random(len(frame)) < (0.0 if steady else 0.2)
        return ((frame["merit"] + frame["sex"] > 0.5) ^ flips).astype(int)

    result = audit(model, max_batch=10**6)
    assert result.summary.steadiness["scores_moved"] == 0
    assert any("gave steady answers before the run" in note for note in result.summary.notes)
    assert result.summary.unconfirmed > 0


# -- models of others --------------------------------------------------------------------


def test_fairlearns_threshold_optimizer():
    postprocessing = pytest.importorskip(
        "fairlearn.postprocessing", reason="fairlearn has the model"
    )
    frame = FRAME.assign(merit=FRAME.merit + 0.8 * FRAME.sex)
    inputs = frame.drop(columns="ok")
    # Merit in a few steps, so that the optimizer has to mix two thresholds by chance.
    coarse = FunctionTransformer(lambda given: (2 * given[["sex", "merit"]]).round())
    base = make_pipeline(coarse, LogisticRegression()).fit(inputs, frame["ok"])
    optimizer = postprocessing.ThresholdOptimizer(
        estimator=base,
        constraints="demographic_parity",
        prefit=True,
        predict_method="predict_proba",
    )
    optimizer.fit(inputs, frame["ok"], sensitive_features=frame["sex"])
    chance = np.random.RandomState(0)

    def model(frame):
        return optimizer.predict(frame, sensitive_features=frame["sex"], random_state=chance)

    def favorable(frame):
        return optimizer._pmf_predict(frame, sensitive_features=frame["sex"])[:, 1]

    result = audit(model, frame=frame)
    assert result.summary.steadiness["decisions_moved"] > 0
    found = result.findings[list(inputs.columns)]
    gap = favorable(found) - favorable(found.assign(sex=1 - found["sex"]))
    assert (np.abs(gap) > 0.5).all()
    # The share that flips for sure is known, and so is the share that flips mostly.
    gap = favorable(inputs) - favorable(inputs.assign(sex=1 - inputs["sex"]))
    sure, mostly = (np.abs(gap) == 1).mean(), (np.abs(gap) > 0.5).mean()
    assert 0.1 < sure < mostly - 0.1
    surely = inputs[np.abs(gap) == 1][["merit", "years"]].drop_duplicates()
    assert len(surely.merge(found, on=["merit", "years"])) == len(surely)
    assert len(found) < len(surely) + 0.03 * N
    rate = result.rates["real"]
    assert rate.low < sure < rate.high < mostly


def test_a_torch_module_with_dropout_left_on():
    torch = pytest.importorskip("torch", reason="needs limi[torch]")

    class Network(torch.nn.Module):
        output = "logits"

        def forward(self, rows):
            score = 4 * rows[:, 1] + 6 * rows[:, 0] - 2
            # The functional form does not see eval mode: it stays on.
            noise = torch.nn.functional.dropout(torch.ones_like(score), 0.3) - 1
            return score + 2 * noise

    torch.manual_seed(0)
    result = audit(Network())
    told = result.summary.steadiness
    assert 0 < told["decisions_moved"] < told["scores_moved"]
    assert "is dropout left on" in result.summary.notes[0]
    found = result.findings
    assert 0 < len(found) < 1200
    # The noise is -2 or 0.857, so a pair flips surely where neither side is nearer to 0.
    low, high = 4 * found["merit"] - 2, 4 * found["merit"] + 4
    assert (low + 2 * (1 / 0.7 - 1) <= 0).mean() > 0.95
    assert (high - 2 > 0).mean() > 0.95
