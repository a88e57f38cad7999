"""Streams of randomness: each part of a run draws from its own, so that none disturbs another.

A stream is a seed, a number and, where a part needs several, further numbers behind it. The numbers
are part of what a seed means: changing one changes what is found.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

__all__ = ["Stream"]


class Stream(IntEnum):
    """What draws from a stream, with the stream's number."""

    SEARCH = 0
    RATES = 1  # one for each population behind it
    GENERATOR = 2  # fitting it
    LIKENESS = 3  # how natural the findings are as a set
    REPRESENTATIVE = 4
    METRICS = 6  # one for each metric that draws
    REGIONS = 7
    NATURALNESS = 8  # of each finding
    STEADINESS = 9  # rows that the model is asked for before a run
    CONFIRMATION = 10  # the company in which findings are asked for again
    REPAIR_YARDSTICK = 11  # people that every model of a repair is measured on
    REPAIR_CHECK = 12  # people that the verdict rests on
    REPAIR_MIX = 13  # findings that are added; one for each trial
    REPAIR_HELD_OUT = 14  # rows held out; one for each trial
    TWINS = 20  # one for each part of the twin question
    PROOFS = 21  # people to prove something of, and the search among their neighbours
    EXPLORE = 22  # natural people of an exploration; one for each region looked at, and the map's
    IMAGES = 30  # one for each part of an audit of images

    def rng(self, seed: int, *key: int) -> np.random.Generator:
        """The numbers of this stream; `key` tells apart those of one part."""
        return np.random.default_rng(self.sequence(seed, *key))

    def sequence(self, seed: int, *key: int) -> np.random.SeedSequence:
        """The seed of this stream, from which several may be spawned."""
        return np.random.SeedSequence(seed, spawn_key=(int(self), *key))
