"""The page and the notebook fragment, as text: escaping, policy, structure, determinism."""

import base64
import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from limi.audits.summary import Field, Summary
from limi.metrics import collect
from limi.metrics.individual import rate_of
from limi.metrics.naturalness import Likeness
from limi.report import html, wording
from tests.report.fixtures import (
    ATTACKED,
    FEW,
    HOSTILE,
    LONG,
    MANY,
    NOTHING,
    PICTURED,
    SEX,
    SUMMARIES,
    people,
)

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Elements with their attributes, the text between them, and whether they nest."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag in ("td", "th", "dd", "p", "li"):
            self.words.append(" ")
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


PAGES = {name: html.render(summary) for name, summary in SUMMARIES.items()}
DRAWN = PAGES | {f"{name} snippet": html.snippet(s) for name, s in SUMMARIES.items()}


@pytest.mark.parametrize("name", DRAWN)
def test_elements_nest_and_nothing_is_loaded(name):
    page = Reader(DRAWN[name])
    assert not {"img", "link", "iframe", "object", "form", "base"} & {
        tag for tag, _ in page.elements
    }
    assert [attributes for attributes in page.all("script") if attributes] == []
    assert len(page.all("script")) == (not name.endswith("snippet"))
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    for tag, attributes in page.elements:
        if tag == "a":  # within the page alone
            assert attributes["href"].removeprefix("#") in ids
            continue
        assert not {"src", "href", "srcset", "action", "xlink:href"} & set(attributes)
        assert not any(attribute.startswith("on") for attribute in attributes)
        assert "url(" not in (attributes.get("style") or "")


@pytest.mark.parametrize("name", PAGES)
def test_no_address_anywhere(name):
    assert "http:" not in PAGES[name]
    assert "https:" not in PAGES[name]
    assert "url(" not in PAGES[name]
    assert "@import" not in PAGES[name]


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_summary_gives_the_same_bytes(name):
    draw = html.snippet if name.endswith("snippet") else html.render
    again = dataclasses.replace(SUMMARIES[name.removesuffix(" snippet")])
    assert draw(again).encode() == DRAWN[name].encode()


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_read_from_json_gives_the_same_page(name):
    summary = SUMMARIES[name]
    if summary.metrics:  # hand-made numbers, of which some follow from others in a real run
        derived = collect.add_derived(summary.metrics, summary.known)
        summary = dataclasses.replace(summary, metrics=derived)
    written = json.dumps(summary.as_dict())
    assert html.render(Summary.from_dict(json.loads(written))) == html.render(summary)


def test_the_bytes_do_not_depend_on_the_hash_seed():
    code = (
        "import hashlib; from limi.report import html; from tests.report.fixtures import MANY; "
        "print(hashlib.sha256(html.render(MANY).encode()).hexdigest())"
    )
    root = Path(html.__file__).parents[2]
    for seed in ("1", "2"):
        shown = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        assert shown == hashlib.sha256(PAGES["many"].encode()).hexdigest()


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_allows_one_style_sheet_and_one_script_and_nothing_else(name):
    (policy,) = [
        attributes["content"]
        for attributes in Reader(PAGES[name]).all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,) = re.findall(r"<style>(.*?)</style>", PAGES[name], re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", PAGES[name], re.DOTALL)
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; "
        f"script-src 'sha256-{digests[1]}'; base-uri 'none'; form-action 'none'"
    )
    assert not any("style" in attributes for _, attributes in Reader(PAGES[name]).elements)


def test_the_policy_comes_before_anything_it_must_govern():
    page = PAGES["sex"]
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<body>")


@pytest.mark.parametrize("draw", [html.render, html.snippet])
@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "place",
    [
        lambda s, v: dataclasses.replace(s, table=v),
        lambda s, v: dataclasses.replace(s, model=v),
        lambda s, v: dataclasses.replace(s, favorable=v),
        lambda s, v: dataclasses.replace(s, unfavorable=v),
        lambda s, v: dataclasses.replace(s, stop=v),
        lambda s, v: dataclasses.replace(s, protected={v: ["a"]}),
        lambda s, v: dataclasses.replace(s, rates={v: rate_of(1, 9)}),
        lambda s, v: dataclasses.replace(s, notes=(v,)),
        lambda s, v: dataclasses.replace(s, naturalness={v: Likeness(0.5)}),
        lambda s, v: dataclasses.replace(
            s, examples=(dataclasses.replace(s.examples[0], flipped_by=v),)
        ),
        lambda s, v: dataclasses.replace(
            s, what_if=(dataclasses.replace(s.what_if[0], columns=(v,)),)
        ),
        lambda s, v: dataclasses.replace(
            s,
            what_if=(
                dataclasses.replace(
                    s.what_if[0], pairs=(dataclasses.replace(s.what_if[0].pairs[0], favored=v),)
                ),
            ),
        ),
        lambda s, v: dataclasses.replace(s, what_if=(people(("a",), {v: 9, "b": 1}, 100),)),
        lambda s, v: dataclasses.replace(
            s, examples=(dataclasses.replace(s.examples[0], fields=(Field(v, "a", "b", True),)),)
        ),
        lambda s, v: dataclasses.replace(
            s, examples=(dataclasses.replace(s.examples[0], fields=(Field("a", v, "b", True),)),)
        ),
        lambda s, v: dataclasses.replace(
            s, examples=(dataclasses.replace(s.examples[0], fields=(Field("a", v, v, False),)),)
        ),
    ],
)
def test_hostile_values_are_text_wherever_they_stand(draw, value, place):
    drawn = draw(place(SEX, value))
    assert value in Reader(drawn).text
    assert drawn.count("<script") == (draw is html.render)
    assert "<img" not in drawn
    assert drawn.count("<style>") == (draw is html.render)


def test_control_characters_are_spelled():
    drawn = html.render(ATTACKED)
    assert r"b\x1b[31mreak\u202e" in drawn
    assert "\x1b" not in drawn
    assert "\u202e" not in drawn


@pytest.mark.parametrize("name", PAGES)
def test_headings_go_down_one_step_at_a_time(name):
    levels = [int(tag[1]) for tag, _ in Reader(PAGES[name]).elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("name", PAGES)
def test_landmarks_labels_and_table_headers(name):
    page = Reader(PAGES[name])
    tags = [tag for tag, _ in page.elements]
    assert page.all("html") == [{"lang": "en"}]
    assert tags.count("main") == 1
    assert tags.count("footer") == 1
    assert all("scope" in attributes for attributes in page.all("th"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        assert set((attributes.get("aria-labelledby") or "").split()) <= set(ids)
    for attributes in page.all("svg"):
        if attributes.get("role") == "img":
            title, description = attributes["aria-labelledby"].split()
            assert title.endswith("-title")
            assert description.endswith("-desc")


def test_what_a_reader_of_the_page_is_told():
    shown = Reader(PAGES["many"]).text
    for words in (
        "20.6 % of real rows would be decided differently if one or more of sex, race and age "
        "changed",
        "95 % interval 18.8 to 22.4, n = 2,000.",
        "the rows of your table",
        "people drawn from a generator that imitates the table",
        "all combinations of values the columns allow, equally likely, including unnatural people",
        "The same 2,000 people of the table: 22.0 % are decided >50K as sex Female, 24.4 % as sex "
        "Male; difference 2.4 points, 1.7 to 3.2.",
        "sex Male is favored over sex Female (corrected p under 0.001).",
        "None of the 10 pairs of values differ by more than chance explains",
        "age 90 is favored over age 17: 32.9 points, 28.3 to 37.6 (corrected p under 0.001).",
        "All 74 values at once: Cochran's Q = 12.3, p = 0.006 (not corrected).",
        "The band of a curve holds for all its values at once.",
        "only age if age alone changed",
        "7 more findings",
        "The search stopped because the budget of queries was spent.",
        "Flips found are facts about this model",
        "A low rate is not a certificate of fairness.",
        "and 62 more",
        "Causal discrimination 0.6783",
        "none: it was given as an object, not as a file",
        *MANY.notes,
        MANY.command,
        SEX.hashes["data_sha256"],
        "scikit-learn 1.7.2",
    ):
        assert words in shown, words


def test_every_card_is_told_in_the_words_of_the_sentence():
    for name in ("sex", "many", "pictured", "few"):
        shown = Reader(PAGES[name]).text
        for example in SUMMARIES[name].examples:
            assert wording.sentence(example, SUMMARIES[name]) in shown
        assert (
            wording.sentence(SUMMARIES[name].examples[0], SUMMARIES[name])
            in Reader(html.snippet(SUMMARIES[name])).text
        )


def test_naturalness_generator_and_scores_of_the_method():
    shown = Reader(PAGES["pictured"]).text
    for words in (
        "findings all findings, as the search left them",
        "real rows that flip the table's own, for comparison",
        "0.742 on an axis from 0 to 1.",
        "Generator trees, ready after 37.4 s",
        "Boundary AUC train 0.9812",
        "Boundary AUC entire 0.9132",
        "flipped by sex or race alone",
    ):
        assert words in shown, words
    assert (
        "findings 0.742, representative 0.889, real rows that flip 0.931."
        in Reader(html.snippet(PICTURED)).text
    )
    assert "too few" not in shown
    assert "The findings were too few to be judged as a set." in Reader(PAGES["few"]).text
    assert "Generator none" in Reader(PAGES["few"]).text


def test_the_pictures_and_what_they_say_without_sight():
    shown = Reader(PAGES["pictured"]).text
    up = sum(x > 0.5 for x, _ in PICTURED.pictures["score_pairs"])
    for words in (
        "Where the findings lie",
        "(17 % of its variance)",
        "The line of representative findings has ",
        f"400 dots. In {up} the row as found is decided >50K and its partner <=50K",
        "A dot for each finding shown, 400 of 4,386.",
        "From nothing to 4,398 findings after 970,000 queries of the search.",
        "The 12 that did not flip again are still counted here.",
    ):
        assert words in shown, words
    page = Reader(PAGES["pictured"])
    assert sum("r" in circle and circle["r"] == "3" for circle in page.all("circle")) == 400


@pytest.mark.parametrize("part", ["densities", "score_pairs", "curve"])
def test_each_picture_can_be_missing(part):
    titles = {
        "densities": "Where the findings lie",
        "score_pairs": "Scores of both rows",
        "curve": "Findings over queries",
    }
    for gone in ({}, [], None):
        pictures = PICTURED.pictures | {part: gone}
        shown = Reader(html.render(dataclasses.replace(PICTURED, pictures=pictures))).text
        assert [title for title in titles.values() if title not in shown] == [titles[part]]
    bare = Reader(html.render(dataclasses.replace(PICTURED, pictures={}))).text
    assert not any(title in bare for title in titles.values())
    assert "The findings at a glance" not in bare
    assert "How natural the findings are" in bare


def test_few_points_are_each_shown():
    page = PAGES["few"]
    assert 'class="tip findings" cx="44.44%" cy="100.00%" r="3"' in page
    assert page.count('r="5"') - PAGES["few"].count('class="dot"') == 1
    assert "A dot for each finding." in Reader(page).text


def test_only_what_changed_is_marked():
    (row,) = re.findall(r"<tr><th scope=\"row\"><bdi>sex</bdi>.*?</tr>", PAGES["sex"])[:1]
    assert "<mark><bdi>Male</bdi></mark>" in row
    assert "<mark><bdi>Female</bdi></mark>" in row
    assert "<mark><bdi>White</bdi></mark>" not in PAGES["sex"]
    assert "<mark><bdi>White</bdi></mark>" in PAGES["many"]


def test_three_cards_and_the_rest_folded_away():
    page = PAGES["many"]
    assert page.count('<article class="card"') == 10
    assert page[: page.index('<details class="more">')].count('<article class="card"') == 3


def test_a_wide_table_shows_the_first_columns_and_folds_the_others():
    fields = tuple(Field(f"column {i}", str(i), str(i), False) for i in range(60))
    example = dataclasses.replace(SEX.examples[0], fields=fields)
    page = html.render(dataclasses.replace(SEX, examples=(example,)))
    assert "42 more columns" in page
    assert "column 59" in page


def test_no_finding_and_no_rate():
    shown = Reader(PAGES["nothing"]).text
    assert "0 % of real rows would be decided differently" in shown
    assert "No finding among 32,561 rows checked." in shown
    assert "nobody is called favored" in shown
    unmeasured = Reader(PAGES["unmeasured-nothing"]).text
    assert "0 rows were found that would be decided differently" in unmeasured
    assert "No rate was measured." in unmeasured
    for name in ("not-a-number", "all-not-a-number"):
        assert "not measured n = 0" in Reader(PAGES[name]).text
        assert "nan" not in Reader(PAGES[name]).text.lower().replace("finance", "")
        assert "nan%" not in PAGES[name].lower()


def test_a_clock_that_ended_the_search_promises_no_repetition():
    assert "same findings" in Reader(PAGES["sex"]).text
    timed = Reader(html.render(dataclasses.replace(SEX, stop="seconds"))).text
    assert "same findings" not in timed
    assert "may end at a different point" in timed


def test_no_rendering_calls_a_model_fair():
    for drawn in DRAWN.values():
        for sentence in re.split(r"[.;:]", Reader(drawn).text):
            if "fairness" in sentence:
                assert "not a certificate" in sentence or "certify nothing" in sentence


@pytest.mark.parametrize("start", [NOTHING, PICTURED, FEW])
def test_places_on_a_chart_stay_on_it(start):
    summary = dataclasses.replace(start, rates={"real": rate_of(10, 10)})
    places = [float(x) for x in re.findall(r'[xc][12x]="([\d.-]+)%"', html.render(summary))]
    assert places
    assert all(0 <= place <= 100 for place in places)


def test_the_page_is_small():
    assert len(PAGES["sex"].encode()) < 60_000
    assert len(PAGES["pictured"].encode()) < 100_000  # of which the script has six


def test_the_snippet_is_small_and_brings_no_colour_for_text():
    snippet = html.snippet(SEX)
    assert len(snippet.encode()) < 16_000
    colours = set(re.findall(r"(?<![-\w])color:([^;\"]+)", snippet))
    assert colours == {"inherit"}
    assert "12.3 % of real rows" in Reader(snippet).text


def test_long_values_are_kept_whole():
    assert LONG in Reader(PAGES["attacked"]).text
