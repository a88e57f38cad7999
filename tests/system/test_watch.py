"""The watch: what can be asked in the time that is left, what is owed, and how far a run is."""

import numpy as np
import pytest

from limi.system.watch import OutOfTime, Watch
from tests.toy import Clock


def test_a_watch_learns_how_much_to_ask_at_once():
    clock = Clock()
    watch = Watch(clock)
    assert watch.at_once(10_000) == 10_000
    assert Watch(clock, 10).at_once(10_000) == 64
    rows = np.zeros((3_000, 1))
    sizes = []

    def score(asked):
        sizes.append(len(asked))
        clock.now += len(asked) / 512
        return asked[:, 0]

    timed = watch.timed(score)
    watch.ask(timed, rows, 2_000)
    assert sizes == [2_000, 512, 488]
    watch = Watch(clock, 1.7)
    timed = watch.timed(score)
    sizes.clear()
    with pytest.raises(OutOfTime):
        watch.ask(timed, rows, 2_000)
    # A second at most, and of what is left a third, down to a tenth of a second.
    assert sizes[:2] == [64, int((1.7 * 512 - 64) / 3)]
    assert sum(sizes) == int(1.7 * 512)
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    assert len(sizes) < 12
    assert watch.ran_out
    assert watch.affordable < 1


def test_what_is_owed_is_kept():
    clock = Clock()
    watch = Watch(clock, 10)
    watch.learn(10, 0.1)
    watch.learn(100, 1.0)
    assert watch.affordable == pytest.approx(1_000)
    watch.owed = 400
    assert (watch.left, watch.affordable) == (pytest.approx(6), pytest.approx(600))
    with watch.ending(3), pytest.raises(OutOfTime):
        watch.look()
    watch.look()
    assert not watch.ran_out


def test_progress_tells_phases_and_what_is_left():
    clock = Clock()
    told = []
    watch = Watch(clock, on_progress=told.append)
    watch.planned = {"rates": 1_000.0, "search": 4_000.0}
    watch.learn(1_000, 1.0)
    watch.enter("rates")
    assert (told[-1].phase, told[-1].done) == ("rates", 0.0)
    assert told[-1].left == pytest.approx(5.0)
    clock.now += 1
    watch.count(500)
    # Half of the rates took a second, so the rest takes another; the search is still a guess.
    assert told[-1].done == 0.5
    assert told[-1].left == pytest.approx(1 + 4)
    watch.enter("search")
    clock.now += 6
    watch.count(1_000)
    assert told[-1].left == pytest.approx(18)
    watch.enter("metrics")
    watch.step(0.5)
    assert (told[-1].done, told[-1].queries) == (0.5, 1_500)
    assert {name: (s.seconds, s.questions) for name, s in watch.took().items()} == {
        "rates": (1.0, 500),
        "search": (6.0, 1_000),
        "metrics": (0.0, 0),
    }


def test_calls_whose_rows_cost_nothing_fit_in_whole_or_not_at_all():
    clock = Clock()
    watch = Watch(clock, 10)
    watch.learn(4, 3.0)
    watch.learn(400, 3.0)
    assert watch.affordable > 400
    clock.now += 8
    assert watch.affordable == 0
