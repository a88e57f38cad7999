"""The page of an audit of images: pairs beside placebos, and what may not be said."""

import html
from dataclasses import replace

import numpy as np
import pytest

from limi import audit_images
from limi.images import conduct
from limi.report import images as report
from tests.images.made import look_at_mouth, pictures


@pytest.fixture(scope="module")
def results():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conduct, "_PLANE_LATENTS", 600)
        known = {"protected": "gender", "truth": "smile", "hold": ["ground"], "cases": 100}
        people = pictures(400)
        return {
            dose: audit_images(look_at_mouth, images=people, plant=dose, **known)
            for dose in (0.0, 4.0)
        }


def test_the_verdict_says_what_was_held_and_by_whom(results):
    said = report.sentence(results[4.0])
    assert "from gender M to F" in said
    assert "smile and ground held" in said
    assert "by these judges" in said
    quiet = report.sentence(results[0.0])
    assert quiet.startswith("Nothing stands out from random moves")
    assert "this run would have seen an effect of" in quiet


def test_nothing_is_claimed_that_is_not_known(results):
    page = report.render(results[4.0]).lower()
    for word in ("discriminatory", "same person", "certif", "guarantee"):
        assert word not in page
    for words in report.limits():
        assert html.escape(words.lower(), quote=False) in page.replace("&#39;", "'")


def test_the_page_holds_its_pictures_and_asks_for_nothing(results):
    page = report.render(results[4.0])
    shown = len(results[4.0].samples.trials[:12]) + len(results[4.0].findings.trials[:12])
    assert page.count("data:image/png;base64,") == 3 * shown
    assert "default-src 'none'" in html.unescape(page)
    assert "<script" not in page
    assert page == report.render(results[4.0])


def test_names_are_text_on_the_page(results):
    from dataclasses import replace

    odd = replace(results[0.0], groups=("<b>F", "M"), notes=("a <script> note",))
    page = report.render(odd)
    assert "<b>F" not in page
    assert "<script>" not in page


def test_a_run_without_placebo_or_pairs_has_a_page_too(results):
    from dataclasses import replace

    fair = results[0.0]
    none = np.zeros(0, dtype=int)
    empty = replace(
        fair,
        placebo=False,
        doses=(),
        quality=None,
        findings=replace(fair.findings, trials=fair.findings.trials[none]),
    )
    page = report.render(empty)
    assert "there is no telling what a random move of that size does" in page
    assert "Planted doses" not in page


def test_the_sentence_gives_effect_and_interval_the_same_sign(results):
    """The effect counts the first group less the second; a sentence goes the way it rises."""
    effect = results[0.0].effect
    turned = replace(effect, effect=-0.32, low=-0.34, high=-0.31)
    told = report.sentence(replace(results[0.0], effect=turned))
    assert "0.32 logits (0.31 to 0.34)" in told
    assert "from gender F to M" in told
