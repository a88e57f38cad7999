"""An audit of made images: a planted bias is found, a fair target is not accused."""

from dataclasses import fields, replace

import numpy as np
import pytest

from limi import audit_images
from limi.errors import BadModel, BadTable, InvalidInput
from limi.images import Pictures, audit, conduct, folder, makers
from limi.search.budget import Budget
from tests.images.made import look_at_mouth, pictures

KNOWN = {"protected": "gender", "truth": "smile", "hold": ["ground"], "cases": 600}


@pytest.fixture(scope="module", autouse=True)
def small_planes():
    """Planes of fewer latents, which are enough for images of a few strokes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conduct, "_PLANE_LATENTS", 1000)
        yield


@pytest.fixture(scope="module")
def people():
    return pictures()


@pytest.fixture(scope="module")
def fair(people):
    return audit_images(look_at_mouth, images=people, **KNOWN)


@pytest.fixture(scope="module")
def biased(people):
    return audit_images(look_at_mouth, images=people, plant=2.0, **KNOWN)


def test_a_fair_target_shows_no_effect_and_no_excess(fair):
    assert abs(fair.effect.effect) < 0.2
    assert fair.excess.low < 0 < fair.excess.high
    assert fair.verdict == "none"


def test_a_planted_bias_is_found_with_its_direction(fair, biased):
    assert biased.effect.effect - fair.effect.effect > 2
    assert biased.effect.direction > 0.9
    assert biased.verdict == "both"
    assert biased.groups == ("F", "M")


def test_the_dose_that_a_run_predicts_is_the_one_that_is_found(fair, biased):
    predicted = next(one for one in fair.doses if one.dose == 2.0)
    assert predicted.effect_seen
    assert biased.effect.effect == pytest.approx(predicted.effect.effect, abs=0.15)


def test_placebos_are_as_far_away_as_twins_and_of_the_same_group(fair):
    some = fair.samples.trials
    assert np.allclose(some.distance_placebo, some.distance, rtol=0.1, atol=0.3)
    kept = (some.protected > 0.5) == (some.protected_placebo > 0.5)
    assert kept.mean() > 0.9


def test_findings_are_strict_twins_that_flip_and_their_images_say_so(biased):
    found = biased.findings
    assert len(found.trials) == min(200, biased.n_findings) > 10
    assert found.trials.found.all()
    again = look_at_mouth(found.images.start)  # without the bias, which is the audit's own
    assert again.shape == (len(found.trials),)
    assert (np.diff(np.abs(found.trials.effect)) <= 1e-12).all()


def test_the_same_seed_finds_the_same(people, fair):
    again = audit_images(look_at_mouth, images=people, **KNOWN)
    for one in fields(again.findings.trials):
        mine, other = (getattr(r.findings.trials, one.name) for r in (fair, again))
        assert np.array_equal(mine, other, equal_nan=mine.dtype.kind == "f")
    assert again.effect == fair.effect
    other = audit_images(look_at_mouth, images=people, **{**KNOWN, "cases": 100}, seed=1)
    assert other.effect.effect != fair.effect.effect


def test_a_longer_search_begins_as_the_shorter_one(people):
    short, long = (
        audit_images(look_at_mouth, images=people, **{**KNOWN, "cases": n}, pairs=5000)
        for n in (150, 300)
    )
    early = long.findings.trials[long.findings.trials.case < 150]
    assert len(short.findings.trials) > 0
    assert np.array_equal(np.sort(early.case), np.sort(short.findings.trials.case))


def test_a_budget_of_questions_is_kept(people):
    asked = []

    def count(images):
        asked.append(len(images))
        return look_at_mouth(images)

    result = audit_images(count, images=people, **KNOWN, budget=Budget(max_queries=1500))
    assert sum(asked) == result.queries <= 1500
    assert result.stop == "queries"
    few = audit_images(
        look_at_mouth, images=people, plant=2, **KNOWN, budget=Budget(max_findings=5)
    )
    assert few.n_findings >= 5
    assert few.stop == "findings"


def test_the_papers_preset_mirrors_from_three_starts(people):
    result = audit_images(look_at_mouth, images=people, preset="paper", **{**KNOWN, "cases": 100})
    assert result.procedure.step == "mirror"
    assert result.searched["cases"] == 300


def test_without_a_placebo_nothing_is_judged(people):
    result = audit_images(look_at_mouth, images=people, placebo=False, **{**KNOWN, "cases": 100})
    assert result.verdict == "unknown"
    assert result.doses == ()


def test_cases_may_start_from_images(people, fair):
    some = people.images[:60]
    result = audit_images(look_at_mouth, images=people, start=some, **KNOWN)
    assert result.searched["cases"] == 60
    with pytest.raises(InvalidInput, match="start gives images of 8 x 8"):
        audit_images(look_at_mouth, images=people, start=some[:, ::2, ::2], **KNOWN)


def test_scorers_and_generators_of_ones_own(people):
    faces = makers.fit("eigenfaces", people.images, np.random.default_rng(0))

    def decode(latents):
        return faces.decode(latents).astype(np.float32) / 255

    decode.latent_dim = faces.latent_dim

    def brow(images):
        return 1 / (1 + np.exp((images[:, 4:6, 4:12, 0].mean(axis=(1, 2)) - 95) / 5))

    result = audit_images(look_at_mouth, decode, {"gender": brow}, cases=150)
    assert result.searched["valid"] > 50
    assert result.groups == ("gender below 0.5", "gender above 0.5")
    assert any("no truth" in note for note in result.notes)
    assert any("nothing but the scorer" in note for note in result.notes)


@pytest.mark.parametrize(
    ("decoded", "words"),
    [
        (lambda n: np.full((n, 8, 8, 3), np.nan), "NaN or infinite"),
        (lambda n: np.full((n, 8, 8, 3), 1.7), "floats from 1.7 to 1.7"),
        (lambda n: np.zeros((n, 8, 8)), "must be"),
        (lambda n: np.zeros((n, 8, 8, 3), dtype=np.int64), "decodes to int64"),
    ],
)
def test_a_decode_that_makes_no_images_is_refused(decoded, words):
    def decode(latents):
        return decoded(len(latents))

    decode.latent_dim = 4
    with pytest.raises(BadModel, match=words):
        audit_images(look_at_mouth, decode, {"gender": look_at_mouth}, cases=50)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: np.full(len(x), 3.0), "the target returned scores from 3 to 3"),
        (lambda x: np.full(len(x), np.nan), "the target returned .* NaN"),
        (lambda x: np.zeros((len(x), 2)), "one score for each"),
        (lambda x: x[0, 0, 0, 5], "the target raised IndexError"),
    ],
)
def test_a_target_that_does_not_score_is_refused(people, answer, words):
    with pytest.raises(BadModel, match=words):
        audit_images(answer, images=people, **KNOWN)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"protected": ""}, "name one protected attribute"),
        ({"truth": "gender"}, "named twice"),
        ({"protected": "age"}, "no labels for 'age'"),
        ({"generator": "egenfaces"}, "did you mean 'eigenfaces'"),
        ({"preset": "papr"}, "did you mean 'paper'"),
        ({"step": "lest"}, "step is 'lest'; it must be 'least'"),
        ({"judge": "egdes"}, "judge is 'egdes'"),
        ({"scorers": "pixel"}, "it must be 'pixels' or 'resnet18'"),
        ({"cases": 0}, "cases is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"pairs": -1}, "pairs is -1"),
        ({"pairs": 1.5}, "pairs is 1.5"),
        ({"cases": "10"}, "cases is '10'"),
        ({"cases": 10.5}, "cases is 10.5"),
        ({"plant": None}, "plant is None"),
        ({"step": 3}, "step is 3"),
        ({"preset": 3}, "preset is 3"),
        ({"scorers": None}, "scorers is None"),
        ({"budget": 5}, "it must be a Budget or None"),
        ({"device": "cuda:99"}, "the device 'cuda:99' cannot be used"),
        ({"judge": {"gendr": look_at_mouth}}, "did you mean 'gender'"),
        ({"images": None}, "no images to learn it from"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(people, changed, words):
    with pytest.raises(InvalidInput, match=words):
        audit_images(look_at_mouth, **{"images": people, **KNOWN, **changed})


@pytest.mark.parametrize(
    ("images", "labels", "split", "words"),
    [
        (lambda x: x.astype(float), None, None, "ndarray of float64"),
        (lambda x: x[..., 0], None, None, "the shape .800, 16, 16."),
        (lambda x: x[:, :4], None, None, "16 x 4, smaller than 8 x 8"),
        (None, lambda x: x[:10], None, "the shape .10,. for 800 images"),
        (None, lambda x: 5 * x, None, "not all 0, 1 or -1"),
        (None, lambda x: np.where(x, np.nan, 0), None, "not all 0, 1 or -1"),
        (None, None, np.ones(800, dtype=bool), "some of each"),
        (None, None, np.zeros(800, dtype=bool), "some of each"),
    ],
)
def test_pictures_that_are_none_are_refused(people, images, labels, split, words):
    coded = {name: labels(one) if labels else one for name, one in people.labels.items()}
    with pytest.raises(BadTable, match=words):
        Pictures(images(people.images) if images else people.images, coded, split=split)


def test_ten_images_are_too_few_whatever_holds_them(people):
    few = Pictures(people.images[:10], {k: v[:10] for k, v in people.labels.items()})
    with pytest.raises(BadTable, match=r"there are 10 images; .* 50 or more"):
        audit_images(look_at_mouth, images=few, **KNOWN)


class Generator:
    """A generator of the user's, with faults."""

    kind = "mine"
    latent_dim = 4

    def __init__(self, decode=None, drawn=None):
        self._decode, self._drawn = decode, drawn
        self.calls = 0

    def sample_latents(self, n, rng):
        return np.full((n, 4), np.nan) if self._drawn == "nan" else rng.standard_normal((n, 4))

    def decode(self, latents):
        self.calls += 1
        if self._decode == "raises":
            raise RuntimeError("no memory")
        side = 8 if self.calls > 1 and self._decode == "shrinks" else 16
        return np.zeros((len(latents), side, side, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("generator", "words"),
    [
        (Generator(decode="raises"), "decode raised RuntimeError: no memory"),
        (Generator(decode="shrinks"), "16 x 16 at first, and of 8 x 8 now"),
        (Generator(drawn="nan"), "latents that are NaN"),
    ],
)
def test_a_generator_of_ones_own_that_fails_is_told_in_a_sentence(generator, words):
    with pytest.raises(BadModel, match=words):
        audit_images(look_at_mouth, generator, {"gender": look_at_mouth}, cases=50)


def test_what_no_judge_looked_at_is_said(people):
    some = {**KNOWN, "cases": 60}
    result = audit_images(look_at_mouth, images=people, judge={"gender": look_at_mouth}, **some)
    assert "nothing but the scorer that made the twins has judged smile" in result.notes


def test_a_generator_of_another_size_than_the_photographs_is_refused(people):
    class Large(Generator):
        def decode(self, latents):
            return np.zeros((len(latents), 32, 32, 3), dtype=np.uint8)

    with pytest.raises(InvalidInput, match=r"makes images of 32 x 32, .* 16 x 16; .*size.*32"):
        audit_images(look_at_mouth, Large(), images=people, **KNOWN)


@pytest.mark.parametrize("changed", ["images", "labels", "start", "device"])
def test_a_run_is_not_resumed_with_other_inputs(people, changed, tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "device_of", lambda device: device)
    monkeypatch.setattr(audit, "torch_for", lambda what: None)
    given = {"images": people, "start": people.images[:50], "out": tmp_path / "run", **KNOWN}

    asked = []

    def broken(images):
        asked.append(len(images))
        if len(asked) > 1:
            raise RuntimeError("no more")
        return look_at_mouth(images)

    with pytest.raises(BadModel, match="no more"):
        audit_images(broken, **given)
    other = people.images.copy()
    other[0, 0, 0] ^= 1
    flipped = {**people.labels, "smile": 1 - people.labels["smile"]}
    given |= {
        "images": {"images": replace(people, images=other)},
        "labels": {"images": replace(people, labels=flipped)},
        "start": {"start": other[:50]},
        "device": {"device": "cuda"},
    }[changed]
    with pytest.raises(InvalidInput, match="different settings, data or model"):
        audit_images(broken, resume=True, **given)


def test_files_count_by_what_they_hold(tmp_path):
    (tmp_path / "faces").mkdir()
    judge, face = tmp_path / "judge.npz", tmp_path / "faces" / "one.png"
    given = {"judge": {"gender": f"scorer:{judge}"}, "images": str(tmp_path / "faces")}
    sums = []
    for content in ((b"one", b"one"), (b"two", b"one"), (b"one", b"two")):
        judge.write_bytes(content[0])
        face.write_bytes(content[1])
        sums.append(folder.input_sums({**given, "target": look_at_mouth}))
    first, judged, seen = sums
    assert set(first) == {"judge", "images"}
    assert [judged["judge"] == first["judge"], judged["images"] == first["images"]] == [False, True]
    assert [seen["judge"] == first["judge"], seen["images"] == first["images"]] == [True, False]
