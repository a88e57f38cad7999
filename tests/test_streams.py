"""Streams of randomness: their numbers are part of what a seed means."""

import numpy as np

from limi.streams import Stream
from tests.test_layers import MODULES, PACKAGE


def test_the_numbers_of_the_streams_stay():
    assert {stream.name: int(stream) for stream in Stream} == {
        "SEARCH": 0,
        "RATES": 1,
        "GENERATOR": 2,
        "LIKENESS": 3,
        "REPRESENTATIVE": 4,
        "METRICS": 6,
        "REGIONS": 7,
        "NATURALNESS": 8,
        "STEADINESS": 9,
        "CONFIRMATION": 10,
        "REPAIR_YARDSTICK": 11,
        "REPAIR_CHECK": 12,
        "REPAIR_MIX": 13,
        "REPAIR_HELD_OUT": 14,
        "TWINS": 20,
        "PROOFS": 21,
        "EXPLORE": 22,
        "IMAGES": 30,
    }


def test_a_stream_is_that_of_its_seed_number_and_key():
    def plain(seed, key):
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)).random(4)

    assert np.array_equal(Stream.SEARCH.rng(5).random(4), plain(5, (0,)))
    assert np.array_equal(Stream.RATES.rng(5, 430).random(4), plain(5, (1, 430)))


def test_no_two_streams_are_the_same():
    draws = [tuple(stream.rng(0, *key).random(2)) for stream in Stream for key in ((), (1,), (2,))]
    assert len(set(draws)) == len(draws)


def test_streams_are_opened_by_name_alone():
    elsewhere = [
        str(path)
        for path in MODULES
        if "SeedSequence(" in (PACKAGE / path).read_text(encoding="utf-8")
        and str(path) != "streams.py"
    ]
    assert not elsewhere, "a stream has no name there; give it one in limi/streams.py"
