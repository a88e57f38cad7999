"""The words of a report, each explained in a sentence or two."""

from __future__ import annotations

from limi.errors import InvalidInput, nearest

__all__ = ["TERMS", "explain", "known_terms"]

TERMS: dict[str, str] = {
    "flip": (
        "A decision that changes when only a protected value changes (with rules, also what must "
        "change along with it) and everything else stays the same."
    ),
    "finding": "A row that flips, with its partner; the model was asked about both twice. A "
    "search goes looking for findings, so their number does not say how common flips are.",
    "partner": "The same row with another protected value, about which the model decides "
    "differently.",
    "protected": "A column that should make no difference to the decision, such as sex or race.",
    "rate": "The share of a population's rows that flip, measured on rows that no search has "
    "chosen.",
    "interval": "The range in which the true share lies, given the rows that were asked. Of "
    "twenty 95 % intervals, about nineteen contain the true share.",
    "real rows": "The rows of the table as they are.",
    "held-out rows": "Rows that the model has not seen, given with --held-out.",
    "natural rows": "Rows drawn from a generator that imitates the table: people who could be in "
    "it but are not real.",
    "uniform rows": (
        "Rows drawn evenly from everything that the columns allow; most of them could not be real "
        "people."
    ),
    "favorable": "The decision that people want, such as a loan that is granted.",
    "favored": "A group is favored if the same people are decided favorably more often under its "
    "value, by more than chance explains.",
    "what-if rate": "How often the same people would be decided favorably if all of them belonged "
    "to a group. It compares groups with everything else equal.",
    "selection rate": "How often the people of a group are decided favorably, as they are.",
    "impact ratio": "The selection rate of a group divided by that of the group selected most "
    "often. Below four fifths (0.8) is a common warning sign in hiring, but not a proof by "
    "itself.",
    "false favorable": "Of people whose true label is not favorable, the share decided favorably "
    "(false positives).",
    "false unfavorable": "Of people whose true label is favorable, the share decided unfavorably "
    "(false negatives).",
    "accuracy": "The share of people whose decision equals their true label.",
    "too few to say": "Fewer than 30 rows: one person would move the rate by three points or more.",
    "severity": "How far apart the two answers of a finding are, such as the gap between its "
    "scores.",
    "naturalness": "How usual a row looks among the rows of the table. About one in twenty real "
    "rows is below 0.05, so a finding far below that is an odd person.",
    "ATN": "Average tabular naturalness: how much the columns of a set of rows, one by one and in "
    "pairs, look like those of the table; from 0 to 1.",
    "score": "What a model returns before it decides; above 0.5 is favorable here.",
    "region": "A group of people, described by a few columns, in which decisions flip more often; "
    "learned on one half of a sample and verified on the other.",
    "twin": "The same person as a member of another group, with everything that goes along with "
    "that group in the table, at the same ranks; for models that never see the protected "
    "column.",
    "query": "One row put to the model.",
    "generator": "Imitates the table in order to draw natural rows.",
    "IF_o": "The share of the table's own rows that flip (individual fairness, original).",
    "GE(2)": "Generalised entropy of decisions and labels: how unequal the benefits are; 0 if all "
    "are equal.",
    "boundary AUC": "How well the boundary that LIMI learns in the generator's latent space "
    "separates favorable rows from the others; 1 is perfect, 0.5 is chance.",
    "SPD": "Statistical parity difference: the selection rate of the others minus that of the "
    "privileged group.",
    "p": "The probability of seeing so large a difference if there is none, corrected for all "
    "comparisons.",
}


def known_terms() -> dict[str, str]:
    """The words of reports, then the metrics by their names and abbreviations."""
    from limi import metrics

    known = dict(TERMS)
    folded = {name.casefold() for name in known}
    for one in metrics.declared():
        # "IF_o (real), IF_r (uniform)" are two abbreviations, each with what it is of.
        shorts = {short.partition(" ")[0]: short for short in one.short.split(", ") if short}
        told = {
            one.title: "",
            **{name: f"{one.title}{shorts[name].removeprefix(name)}: " for name in shorts},
        }
        for name, before in told.items():
            if name.casefold() not in folded:
                known[name] = f"{before}{one.line}" + (f" Range: {one.range}." if one.range else "")
                folded.add(name.casefold())
    return known


def explain(term: str) -> tuple[str, str]:
    """A term as it is spelled, and what it means; InvalidInput with the nearest for none."""
    known = known_terms()
    wanted = term.strip().casefold()
    spellings = (wanted, wanted.removesuffix("s"), f"{wanted}s", wanted.replace("_", " "))
    # Words of reports first, however they are spelled: "findings" are not their number alone.
    for names in (TERMS, known):
        folded = {name.casefold(): name for name in names}
        for one in spellings:
            if one in folded:
                return folded[one], known[folded[one]]
    raise InvalidInput(f"{term!r} is not a term of a report; {nearest(term, known)}")
