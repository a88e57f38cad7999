"""The words of a report, each explained in a sentence or two."""

from __future__ import annotations

from limi.errors import InvalidInput, nearest

__all__ = ["TERMS", "explain", "known_terms"]

TERMS: dict[str, str] = {
    "flip": "A decision that becomes another one when only a protected value changes (with rules, "
    "also what must go along with it), and all else stays as it is.",
    "finding": "A row that flips, together with its partner, asked of the model twice. Findings "
    "are what a search went looking for, so their number says nothing of how common flips are.",
    "partner": "The same row with another protected value, for which the model decides otherwise.",
    "protected": "A column that should make no difference to the decision, such as sex or race.",
    "rate": "The share of rows of a population that flip, measured on rows that no search chose.",
    "interval": "With 95 % intervals, nineteen of twenty such intervals hold the true share.",
    "real rows": "The rows of the table as they are.",
    "held-out rows": "Rows that the model has not seen, given with --held-out.",
    "natural rows": "Rows drawn from a generator that imitates the table: people who could be in "
    "it, and are not real.",
    "uniform rows": "Rows drawn evenly from all that the columns may hold; most are nobody.",
    "favorable": "The decision that people want, such as a loan that is granted.",
    "favored": "A group under whose value the same people are decided favorably more often, beyond "
    "what chance explains.",
    "what-if rate": "How often the same people, all of them, are decided favorably as if they were "
    "of a group; it compares groups with everything else equal.",
    "selection rate": "How often the people of a group, as they are, are decided favorably.",
    "impact ratio": "The selection rate of a group divided by that of the most selected group. "
    "Below four fifths (0.8) it is a common warning sign in hiring, and no proof by itself.",
    "false favorable": "Of people whose true label is not favorable, the share decided favorably "
    "(false positives).",
    "false unfavorable": "Of people whose true label is favorable, the share decided unfavorably "
    "(false negatives).",
    "accuracy": "The share of people whose decision is their true label.",
    "too few to say": "Fewer than 30 rows: one person would move the rate by three points or more.",
    "tail": "Differences wider than those of the people asked, estimated from the widest of these "
    "(peaks over threshold): nearly every tail follows one family of curves, the generalised "
    "Pareto distributions. The interval holds all curves that the widest differences allow.",
    "severity": "How far apart the two answers of a finding are, such as the gap of its scores.",
    "naturalness": "How usual a row looks among the rows of the table: of twenty real rows about "
    "one is below 0.05, so a finding far below that is an odd person.",
    "ATN": "Average tabular naturalness: how much the columns of a set of rows, alone and in "
    "pairs, are like the table's; from 0 to 1.",
    "score": "What a model answers before it decides; above 0.5 is favorable here.",
    "region": "A group of people, told by a few columns, in which decisions flip more often; "
    "learned on one half of a sample and verified on the other.",
    "twin": "The same person as somebody of another group, with all that goes with it in the "
    "table, at the same ranks; for models that never see the protected column.",
    "query": "One row put to the model.",
    "generator": "What imitates the table to draw natural rows.",
    "IF_o": "The share of original rows of a table that flip (individual fairness, original).",
    "GE(2)": "Generalised entropy of decisions and labels: how unequal the benefits are, 0 for "
    "equal ones.",
    "boundary AUC": "How well the boundary that LIMI learns in the generator's latent space parts "
    "favorable rows from the others; 1 is perfect, 0.5 is chance.",
    "SPD": "Statistical parity difference: what the others are selected minus what the privileged "
    "group is.",
    "p": "The chance of so large a difference where there is none, corrected for all comparisons.",
}


def known_terms() -> dict[str, str]:
    """The words of reports, then the metrics by their names and abbreviations."""
    from limi import metrics

    known = dict(TERMS)
    folded = {name.casefold() for name in known}
    for one in metrics.declared():
        # "IF_o (real), IF_r (uniform)" are two abbreviations, each with what it is of.
        shorts = {short.partition(" ")[0]: short for short in one.short.split(", ") if short}
        told = {one.title: "", **{name: f"{one.title}, {shorts[name]}: " for name in shorts}}
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
