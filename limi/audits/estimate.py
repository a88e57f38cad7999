"""What a run will cost, told before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limi.system import words

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """Questions by phase, as far as budgets and settings tell, and the speed of the model."""

    questions: dict[str, int]
    per_row: float  # seconds of the model for one row
    max_seconds: float | None = None
    generator: str | None = None  # one that has to be fitted first, which takes its own time
    price: float | None = None  # of 1,000 questions

    @property
    def total(self) -> int:
        """All questions that there is time for."""
        asked = sum(self.questions.values())
        if self.max_seconds is None or asked * self.per_row <= self.max_seconds:
            return asked
        return int(self.max_seconds / self.per_row)

    @property
    def seconds(self) -> float:
        """How long the model will take to answer them."""
        return self.total * self.per_row

    def __str__(self) -> str:
        """One line.

        >>> print(Estimate({"rates": 60_000, "search": 153_800}, 0.000187))
        about 214,000 questions, 40 s at the measured speed
        >>> print(Estimate({"rates": 60_000, "twins": 104_400}, 0.0001))
        about 164,000 questions (104,000 of them about twins), 16 s at the measured speed
        """
        twins = min(self.questions.get("twins", 0), self.total)
        of_them = f" ({_round(twins):,} of them about twins)" if 0 < twins < self.total else ""
        words = f"about {_round(self.total):,} questions{of_them}, {_duration(self.seconds)} at "
        words += "the measured speed"
        if self.generator is not None:
            words += f", after the fit of the generator {self.generator}"
        return words

    def by_step(self) -> str:
        """How many questions each step would take, a line each.

        >>> print(Estimate({"rates": 1000, "search": 3912}, 0.0, price=0.5).by_step())
        rates            1,000
        search           3,912
        together         4,912 questions at most, for 2.46 at 0.5 for 1,000
        """
        lines = [f"{name.replace('_', ' '):<14}{n:>8,}" for name, n in self.questions.items()]
        total = sum(self.questions.values())
        cost = ""
        if self.price is not None:
            cost = f", for {self.price * total / 1000:,.2f} at {self.price:g} for 1,000"
        return "\n".join([*lines, f"{'together':<14}{total:>8,} questions at most{cost}"])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "questions": self.total,
            "seconds": round(self.seconds, 3),
            "questions_per_second": round(1 / self.per_row, 1) if self.per_row else None,
            "phases": dict(self.questions),
            "max_seconds": self.max_seconds,
            "generator_to_fit": self.generator,
            **({} if self.price is None else {"price_per_1000": self.price}),
        }


def _round(n: int) -> int:
    """Three digits: more would promise what nobody knows."""
    return round(n, 3 - len(str(n))) if n >= 1000 else n


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if 1 <= seconds < 60 else words.seconds(seconds)
