"""Conditions of a study's results."""

import dataclasses

from lab.cells import expand
from lab.conditions import are_comparable, briefly, count_labels, is_on_gpu
from lab.results import Results
from limi import methods
from tests.lab.small import outcome, small_study, tiny


def with_given(**by_variant):
    known = tiny()
    cells = {
        name: dataclasses.replace(cell, given={"target": "dnn", **by_variant.get(cell.variant, {})})
        for name, cell in known.outcomes.items()
    }
    return Results("dnn", "small", cells, known.made)


def said(results):
    return "\n".join(briefly(small_study(), results))


def test_cells_say_where_they_ran():
    told = said(
        with_given(
            limi={"machine": "a big one", "device": "cuda", "generator": "ctgan"},
            natural={"machine": "a small one", "device": "cpu"},
        )
    )
    assert "By cell: 4 cells of limi on a big one with an NVIDIA GPU; 4 cells of natural on" in told
    assert "Cells that do not say which of these: adf." in told
    assert "whether they searched" not in told


def test_a_machine_that_no_cell_names_is_not_told():
    known = tiny()
    given = with_given(
        **{name: {"machine": "a machine", "device": "cpu"} for name in ("limi", "natural", "adf")}
    )
    other = {"processor": "another machine", "cores": 16, "versions": {"numpy": "1"}}
    told = said(dataclasses.replace(given, made={**known.made, "earlier": [other]}))
    assert "Made with a machine, 2 cores" in told
    assert "another machine" not in told
    assert "By cell" not in told
    # Where cells are silent it may have made them.
    silent = said(dataclasses.replace(known, made={**known.made, "earlier": [other]}))
    assert "another machine" in silent
    assert "The cells themselves name no machine." in silent


def test_older_cells_of_the_paper_s_generator_do_not_say_where_they_searched():
    told = said(with_given(limi={"generator": "ctgan"}))
    assert "Cells of limi do not say whether they searched on a GPU" in told
    cell = outcome("census-sex/limi/0")
    assert is_on_gpu(dataclasses.replace(cell, given={"generator": "ctgan"})) is None
    assert is_on_gpu(dataclasses.replace(cell, given={"generator": "trees"})) is False
    assert is_on_gpu(dataclasses.replace(cell, given={"device": "cuda"})) is True


def test_what_is_missing_and_what_would_be_run_again_is_said():
    known = tiny()
    told = said(known)
    assert (
        "Few rows. 3 seeds, but for 2 seeds: limi, natural; not run: adf on some benchmarks."
        in (told)
    )
    assert "of the cells shown would be run again today" in told
    study = small_study()
    alone = dataclasses.replace(study, _scales={"small": {**study._scales["small"], "seeds": 1}})
    assert any("Few rows. 1 seed;" in one for one in briefly(alone, known))


def test_latents_that_a_smaller_scale_labels_are_told():
    known = with_given(limi={"settings": {"n_latents": 200_000}})
    planned = {cell.name: cell for cell in expand(small_study(), "small")}
    made_today = {
        name: dataclasses.replace(one, digest=planned[name].digest()) if "/limi/" in name else one
        for name, one in known.outcomes.items()
    }
    told = said(dataclasses.replace(known, outcomes=made_today))
    assert "LIMI labels 20,000 of 200,000 latents (limi) for its boundary" in told
    # Of cells of an earlier program nobody knows.
    told = said(known)
    assert "LIMI labels" not in told
    assert "Earlier cells of limi do not record how many they labelled." in told
    method = methods.parse("limi", {"n_latents": 50_000})
    assert count_labels(method, 50_000, float("inf")) == 5_000
    assert count_labels(method, float("inf"), 1_000) == 200
    paper = methods.parse("limi", {"preset": "paper", "n_latents": 50_000})
    assert count_labels(paper, 50_000, float("inf")) == 50_000


def test_speeds_are_compared_on_one_machine_alone():
    here = {"device": "cpu", "machine": "here"}

    def cells(*given):
        return [dataclasses.replace(outcome("census-sex/limi/0"), given=one) for one in given]

    assert are_comparable(cells(here, here))
    assert are_comparable([])
    for other in ({**here, "machine": "there"}, {**here, "device": "cuda"}, {"device": "cpu"}):
        assert not are_comparable(cells(here, other))
