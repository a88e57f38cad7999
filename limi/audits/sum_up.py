"""What an audit found, summed up: verified findings, regions, naturalness and metrics."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from limi.audits import pictures
from limi.audits.conduct import Searched
from limi.audits.hiding import count_real_people, hide_examples, hide_regions
from limi.audits.many import Many, add_counts, judge_found, settle_many
from limi.audits.noise import Floor, Tested, tell_floor, test_pairs
from limi.audits.plan import MOST_TO_JUDGE, Plan
from limi.audits.problem import Problem, describe_untaken, protected_values
from limi.audits.result import Result, draw_representative
from limi.audits.rule_report import RuleReport, report_rules, whole_people
from limi.audits.sending import describe, tell
from limi.audits.shown import choose_shown
from limi.audits.summary import Example, LeftOut, Regions, Summary, keep_flips, regions, show
from limi.audits.verify import Dropped, count_bands, verify
from limi.audits.what_if import (
    WhatIf,
    families,
    favorable_findings,
    in_regions,
    what_ifs,
)
from limi.metrics import collect
from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics._populations import LEAST_KEPT
from limi.metrics.group_lines import GroupLine, group_lines
from limi.metrics.individual import Rate, rate_of
from limi.metrics.naturalness import Likeness, naturalness_of_sets
from limi.metrics.outcomes import Outcomes, compare_outcomes
from limi.metrics.rates import Measured
from limi.metrics.regions import Rule, Where, find_rules
from limi.metrics.row_naturalness import Judge
from limi.metrics.sequential import anytime_rate
from limi.search.budget import Stop
from limi.search.check import Checked
from limi.search.findings import Found
from limi.search.method import scores, stops_on_flips
from limi.streams import Stream
from limi.system.watch import Spent
from limi.system.words import both
from limi.table.rows import KeySet, keys
from limi.types import Rows

__all__ = ["MOST_COMPARED", "sum_up"]

_ODD = "odd findings"
MOST_COMPARED = 5_000  # of each set; a larger one is drawn from, several times


def sum_up(plan: Plan, searched: Searched) -> Result:
    """Check every finding again, then sum up."""
    watch, cut = plan.watch, searched.cut
    watch.owed = 0
    watch.enter("second_check")
    tested = test_pairs(plan, searched) if searched.noisy else None
    many = settle_many(plan, searched, lambda: _find_judge(plan))
    if many is not None:
        found, dropped = many.sample, many.dropped
        searched.notes.append(many.note)
    elif tested is None:
        found, dropped = verify(plan, searched)
    else:
        found, dropped = tested.found, Dropped()
    if tested is not None:
        searched.notes.append(tested.note)
        searched.notes.extend(tell_floor(searched.floor, searched.measured.rates))
    if dropped.unasked:
        lacking = "there was no time" if plan.queries_left else "no queries were left"
        cut["second_check"] = (
            f"{dropped.unasked:,} rows that flipped in the search were left out, because {lacking} "
            "to ask about them again"
        )
    found = count_bands(plan, searched, found) if many is None else found
    watch.enter("metrics")
    judged_by = "" if many is None else many.judged_by
    if many is None and plan.in_time(cut, _ODD):
        found, judged_by = _judge(plan, found)
    watch.step(0.25)
    where, shown = Where(), None
    if plan.in_time(cut, "where it happens"):
        where, shown = _find_regions(plan, searched, [found] if many is None else many)
        where, shown = hide_regions(where, shown, plan.problem.hidden)
    watch.step(0.5)
    summary = _summarize(plan, searched, found, dropped, shown, where.rules, judged_by, many)
    notes = (*cut.values(), *summary.notes)  # first what there was no time or budget for
    held = plan.problem.held_out
    spent = {
        name: {"seconds": round(spent.seconds, 3), "questions": spent.questions}
        for name, spent in watch.took().items()
    }
    summary = dataclasses.replace(
        summary,
        notes=(*notes, *tell(plan.problem.target)),
        phases=spent,
        held_out=None if held is None else held.name,
        n_held_out=0 if held is None else len(held.rows),
        real_people=sum(
            count_real_people(plan.problem, part) for part in ([found] if many is None else many)
        ),
        cut=dict(cut),
        remote=describe(plan.problem.target),
        noise=_describe_noise(tested, searched.floor),
    )
    spool = None if many is None else many.spool
    return Result(plan.problem, found, summary, plan.manifest, where.rules, spool=spool)


def _describe_noise(tested: Tested | None, floor: Floor | None) -> dict[str, Any]:
    if tested is None:
        return {}
    return {**tested.as_dict(), "floor": None if floor is None else floor.as_dict()}


def _find_judge(plan: Plan) -> Judge | None:
    """What tells how natural a row is."""
    rng = Stream.NATURALNESS.rng(plan.seed)
    return collect.judge(plan.problem.rows, plan.problem.schema, rng)


def _judge(plan: Plan, found: Found) -> tuple[Found, str]:
    """Findings with the naturalness of both rows, and how it was judged."""
    judge = _find_judge(plan) if len(found) else None
    return (found, "") if judge is None else (judge_found(found, judge), judge.words)


def _find_regions(
    plan: Plan, searched: Searched, found: Iterable[Found]
) -> tuple[Where, Regions | None]:
    """Rules from the rows that the natural rate was measured on; without a generator from the
    table's rows. No query is spent on them."""
    schema, checked = plan.problem.schema, searched.measured.checked
    rng = Stream.REGIONS.rng(plan.seed)
    for population in ("natural", "held-out", "real"):
        if population in checked:
            sample = checked[population][checked[population].is_paired]
            where = find_rules(schema, sample.rows, sample.flips, rng)
            return where, regions(
                where, population, _compare_inside(plan, searched, where, population)
            )
    own = plan.own_population(searched.steadiness.steady)
    if own == "real" and searched.run.stop == Stop.EXHAUSTED:
        # The search has checked the whole table, so a row flips where its key was found.
        known = KeySet()
        for part in found:
            known.add(keys(schema, part.rows))
        flips = known.contains(keys(schema, plan.problem.rows))
        where = find_rules(schema, plan.problem.rows, flips, rng)
        return where, regions(where, "real")
    return Where(), None


def _compare_inside(
    plan: Plan, searched: Searched, where: Where, population: str
) -> list[WhatIf | None] | None:
    """How the people of each region fare under every value, of those that verified it."""
    samples = _comparable(plan, searched)
    if population not in samples or not where.rules:
        return None
    schema, sample = plan.problem.schema, samples[population]
    sample = sample[sample.is_paired][where.verified_on]
    masks = [rule.mask(sample.rows) & sample.is_whole for rule in where.rules]
    n_families = families(schema, samples, regions=True, questions=_questions(plan))
    return in_regions(schema, population, sample, masks, n_families=n_families)


def _questions(plan: Plan) -> int:
    """How many questions are asked of the same people: with rules also that without them."""
    return 2 if plan.problem.schema.rules else 1


def _comparable(plan: Plan, searched: Searched) -> dict[str, Checked]:
    """Samples whose people can be compared under all values; none where an answer depends on
    the other rows of a batch, or nothing is favorable."""
    if plan.problem.target.rule.kind != "favorable":
        return {}
    return {} if searched.steadiness.in_company else searched.measured.checked


def _outcomes(plan: Plan, searched: Searched) -> tuple[Outcomes, ...]:
    """What becomes of people, where decisions are classes or numbers."""
    problem, measured = plan.problem, searched.measured
    if problem.target.rule.kind == "favorable" or searched.steadiness.in_company:
        return ()
    held = problem.held_out
    known = {"real": problem.truth, "held-out": None if held is None else held.truth}
    truths = {
        name: truth[measured.places[name]]
        for name, truth in known.items()
        if truth is not None and name in measured.places
    }
    return compare_outcomes(problem.schema, problem.target.rule, measured.checked, truths)


def _own_rate(plan: Plan, searched: Searched) -> str | None:
    """The population whose rate the search itself has measured."""
    own = plan.own_population(searched.steadiness.steady)
    return own if searched.run.findings.rows_checked and not _is_vain(searched) else None


def _left_out(plan: Plan, searched: Searched, rates: Mapping[str, Rate]) -> dict[str, LeftOut]:
    """Of each rate the people who were asked and are not in it."""
    under = searched.measured.under_rules
    alone = {} if under is None else dict(under.alone)
    if (own := _own_rate(plan, searched)) is not None:
        alone[own] = searched.run.findings.alone
    return {
        name: LeftOut(alone[name], "the rules of the table allow them no partner")
        for name in rates
        if alone.get(name)
    }


def _rates(plan: Plan, searched: Searched) -> dict[str, Rate]:
    rates = dict(searched.measured.rates)
    own, ledger = _own_rate(plan, searched), searched.run.findings
    if own is not None:
        # Where flips have a say in the number of rows, only an interval for any end holds.
        by_flips = (
            searched.run.session.frugal
            or stops_on_flips(plan.method)
            or searched.run.stop == Stop.INTERRUPTED
        )
        rate = anytime_rate if by_flips else rate_of
        rates[own] = rate(ledger.flips, ledger.rows_checked - ledger.alone)
    return dict(sorted(rates.items()))


def _is_vain(searched: Searched) -> bool:
    """Did hardly a row of the search keep the rules? Then those that do are not a fair sample."""
    session = searched.run.session
    return session.proposed - session.refused < LEAST_KEPT * session.proposed


def _kept_flips(plan: Plan, measured: Measured, rates: Mapping[str, Rate]) -> dict[str, str]:
    """Verdicts on the rows of rates, where the same rows can be drawn again from the seed."""
    return {
        name: keep_flips(checked.flips)
        for name, checked in measured.checked.items()
        # A method that searches a population gives its rate, by other rows. Where time may end the
        # asking, rows of a table are asked in another order; and people
        # who cannot have a partner are in no rate.
        if rates[name] == measured.rates[name]
        and (name not in measured.places or not plan.watch.limited)
        and checked.is_paired.all()
    }


def _unmeasured(plan: Plan, searched: Searched, rates: Mapping[str, Rate]) -> dict[str, str]:
    """Populations without a rate, and why; "because" goes before it."""
    if plan.problem.blind:
        names = both(plan.problem.unseen)
        why = f"the model does not take {names}, so it is 0 for them too"
        return dict.fromkeys(("natural", "uniform"), why)
    why = "the budget of queries or seconds was too small for a rate"
    if plan.rate_rows == 0:
        why = "no rows were asked for (rate-rows is 0)"
    elif plan.rate_rows and not (plan.budget.max_queries or plan.budget.max_seconds):
        why = "the search checked none of them"
    lacking = {"natural": "no generator was given"} if plan.source.name is None else {}
    populations = [plan.problem.people[0], "natural", "uniform"]
    if plan.problem.held_out is not None and plan.rate_rows:
        populations.append("real")
        lacking["real"] = "held-out rows were given and measured instead"
    if searched.measured.under_rules is not None:
        lacking |= searched.measured.under_rules.unmeasured
    if _is_vain(searched):
        lacking["uniform"] = "hardly any of the rows that the search proposed keep the rules"
    return {name: lacking.get(name, why) for name in populations if name not in rates}


def _effort(plan: Plan, searched: Searched) -> collect.Effort:
    """What the search took: labels and boundary prepare it, as in published numbers."""
    seconds = plan.watch.took().get("search", Spent()).seconds
    prepared = searched.prepared + max(0.0, searched.run.seconds - seconds)
    return collect.Effort(seconds, prepared, plan.queries)


def _decide(plan: Plan, measured: Measured) -> collect.Decided | None:
    """Decisions on rows of people, for metrics that compare groups: those of their rate."""
    name, rows, labels = plan.problem.people
    if name not in measured.checked or plan.problem.target.rule.kind != "favorable":
        return None
    score, index = measured.checked[name].score, measured.places[name]
    return collect.Decided.of(name, rows, score, labels, index)


def _take_metrics(
    plan: Plan,
    searched: Searched,
    found: Found,
    rates: Mapping[str, Rate],
    left_out: Mapping[str, LeftOut],
    likeness: Mapping[str, Likeness],
    judged_by: str,
    n_found: int,
    outcomes: tuple[Outcomes, ...],
) -> dict[str, Any]:
    return collect.take(
        plan.problem.schema,
        plan.problem.rows,
        found,
        searched.measured,
        rates,
        _decide(plan, searched.measured),
        likeness=likeness,
        judged_by=judged_by,
        effort=_effort(plan, searched),
        seed=plan.seed,
        decision=plan.problem.target.rule,
        threshold=plan.problem.target.threshold,
        in_time=lambda what: plan.in_time(searched.cut, what),
        left_out={name: left.rows for name, left in left_out.items()},
        n_found=n_found,
        outcomes=outcomes,
    )


def _notes(plan: Plan, searched: Searched, found: Found, dropped: Dropped) -> tuple[str, ...]:
    """What a reader should know of the run, the gravest first: a terminal shows four of them."""
    from limi.report import wording

    problem, ran = plan.problem, searched.run
    interrupted = "the run was interrupted; it shows what had been found by then"
    notes = [
        interrupted if ran.stop == Stop.INTERRUPTED else "",
        "" if searched.noisy else wording.unsteady(searched.steadiness.as_dict()),
        *dropped.notes,
        *searched.notes,
        *ran.session.notes,
        *describe_untaken(problem, twins_asked=searched.twins is not None),
        *problem.notes,
        *problem.target.notes,
        *([] if plan.spread is None else plan.spread.notes),
    ]
    if ran.session.frugal and len(found):
        notes.append(
            "to save queries, a partner is the first protected value that was seen to flip its "
            "row; how a finding fares under the other values was not asked"
        )
    return tuple(filter(None, notes))


def _compare_people(plan: Plan, searched: Searched, in_regions: bool) -> tuple[WhatIf, ...]:
    people = whole_people(_comparable(plan, searched))
    schema, questions = plan.problem.schema, _questions(plan)
    return what_ifs(schema, people, regions=in_regions, questions=questions)


def _tell_rules(plan: Plan, searched: Searched, in_regions: bool) -> RuleReport | None:
    return report_rules(
        plan.problem.schema,
        searched.measured.under_rules,
        searched.run.session,
        comparable=not searched.steadiness.in_company
        and plan.problem.target.rule.kind == "favorable",
        regions=in_regions,
    )


def _show_some(plan: Plan, found: Found, rules: tuple[Rule, ...]) -> tuple[Example, ...]:
    schema, rule = plan.problem.schema, plan.problem.target.rule
    return show(schema, found, choose_shown(schema, found, rule, rules))


def _name_decisions(plan: Plan) -> tuple[str, str]:
    """What people call the favorable decision and the other one."""
    problem, names = plan.problem, plan.label_names
    favorable = "" if problem.favorable is None else plan.call(problem.favorable)
    if problem.unfavorable is not None:
        return favorable, plan.call(problem.unfavorable)
    others = [said for label, said in names.items() if label != str(problem.favorable)]
    if len(others) == 1:
        return favorable, others[0]
    return favorable, f"not {favorable}" if favorable else "other"


def _group_lines(
    plan: Plan, searched: Searched, compared: tuple[WhatIf, ...]
) -> tuple[GroupLine, ...]:
    """Every group of the people whose rate was measured, with how all would fare as that group."""
    decided = _decide(plan, searched.measured)
    if decided is None:
        return ()
    as_if = {
        (table.columns, value.value): value.rate
        for table in compared
        if table.population == decided.population
        for value in table.values
    }
    return group_lines(plan.problem.schema, decided, as_if)


def _hashes(plan: Plan) -> dict[str, Any]:
    """Sums of what the run was given."""
    names = ["data_sha256", "held_out_sha256", "model_sha256"]
    if plan.problem.held_out is None:
        names.remove("held_out_sha256")
    return {name: plan.manifest[name] for name in names}


def _summarize(
    plan: Plan,
    searched: Searched,
    found: Found,
    dropped: Dropped,
    where: Regions | None,
    rules: tuple[Rule, ...],
    judged_by: str,
    many: Many | None,
) -> Summary:
    problem, ran = plan.problem, searched.run
    rule = problem.target.rule
    likeness, drawn = _look(plan, searched, found)
    scored = {**ran.session.facts, **scores(plan.method, ran.findings)}
    rates = _rates(plan, searched)
    left_out = _left_out(plan, searched, rates)
    plan.watch.step(0.75)
    in_regions = where is not None and bool(where.rules)
    every = [found] if many is None else many
    n_found = sum(map(len, every))
    outcomes = _outcomes(plan, searched)
    metrics = _take_metrics(
        plan, searched, found, rates, left_out, likeness, judged_by, n_found, outcomes
    )
    compared = _compare_people(plan, searched, in_regions)
    favorable, unfavorable = _name_decisions(plan)
    return Summary(
        table=problem.table_name,
        n_rows=problem.n_table,
        n_columns=len(problem.schema),
        model=problem.model_name,
        target=problem.label_column,
        favorable=favorable,
        unfavorable=unfavorable,
        decision=str(rule),
        kind=rule.kind,
        threshold=problem.target.threshold,
        classes=tuple(map(plan.call, rule.labels)),
        ordered=rule.ordered,
        outcomes=outcomes,
        method=plan.method_name,
        settings=plan.settings,
        used=_changed(plan.settings, ran.session.used),
        protected=protected_values(problem.schema),
        combinations=len(problem.schema.combinations),
        findings=n_found,
        rows_checked=ran.findings.rows_checked,
        queries=plan.queries,
        seconds=round(ran.seconds, 3),
        preparation_seconds=round(searched.prepared, 3),
        stop=str(ran.stop),
        seed=plan.seed,
        generator=plan.source.name if searched.generator is not None else None,
        rates=rates,
        left_out=left_out,
        unmeasured=_unmeasured(plan, searched, rates),
        metrics=metrics,
        scores={name: round(float(value), 6) for name, value in scored.items()},
        where=where,
        naturalness=likeness,
        pictures=drawn | {"curve": pictures.curve(ran.curve)},
        rates_by_column=searched.measured.alone,
        rate_flips=_kept_flips(plan, searched.measured, rates),
        what_if=compared,
        rules=_tell_rules(plan, searched, in_regions),
        favorable_findings=add_counts(favorable_findings(problem.schema, part) for part in every),
        examples=hide_examples(_show_some(plan, found, rules), problem.hidden),
        groups=_group_lines(plan, searched, compared),
        volume=plan.volume,
        date=datetime.date.today().isoformat(),
        hidden=problem.hidden,
        notes=_notes(plan, searched, found, dropped),
        unconfirmed=dropped.rounded + dropped.moved,
        steadiness=searched.steadiness.as_dict(),
        estimate=searched.expected.as_dict(),
        twins=searched.twins,
        command=plan.command,
        versions=plan.manifest["versions"],
        hashes=_hashes(plan),
    )


def _look(
    plan: Plan, searched: Searched, found: Found
) -> tuple[dict[str, Likeness], dict[str, Any]]:
    """How natural the findings are as a set, beside the table's own rows that flip; and pictures.

    All sets are compared at the size of the smallest, because naturalness falls with that size.
    """
    problem = plan.problem
    sided = problem.target.rule.kind == "favorable"
    flipping = searched.measured.flipping.get(problem.people[0])
    if not plan.in_time(searched.cut, "naturalness"):
        flipping, found = None, found[:0]
    rng = Stream.LIKENESS.rng(plan.seed)
    real = _sample(problem.rows, MOST_TO_JUDGE, rng)
    drawn = _draw(problem, found, real, plan.seed, rng)
    groups = drawn | ({} if flipping is None else _enough({"ceiling": flipping}))
    n = min([MOST_COMPARED, *map(len, groups.values())])
    likeness = naturalness_of_sets(n, real, groups, problem.schema, rng)
    return likeness, {
        "densities": pictures.densities(real, drawn) if drawn else {},
        "score_pairs": pictures.score_pairs(found) if sided else [],
    }


def _draw(
    problem: Problem, found: Found, real: Rows, seed: int, rng: np.random.Generator
) -> dict[str, Rows]:
    """As many findings as there are real rows, and those that represent them."""
    if len(found) < FEWEST_TO_JUDGE:
        return {}
    return _enough(
        {
            "findings": _sample(found.rows, len(real), rng),
            "representative": found.rows[draw_representative(problem, found, None, seed)],
        }
    )


def _enough(groups: dict[str, Rows]) -> dict[str, Rows]:
    """Those groups that are large enough to judge."""
    return {name: rows for name, rows in groups.items() if len(rows) >= FEWEST_TO_JUDGE}


def _sample(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    return rows if len(rows) <= n else rows[rng.choice(len(rows), n, replace=False)]


def _changed(settings: Mapping[str, Any], used: Mapping[str, Any]) -> dict[str, Any]:
    """What the budget left of a setting, where that is not the value that was set."""
    return {name: value for name, value in used.items() if value not in _values_of(settings, name)}


def _values_of(settings: Mapping[str, Any], name: str) -> list[Any]:
    """The values of a setting, in a pair of methods those of both parts."""
    parts = [value for value in settings.values() if isinstance(value, dict)]
    return [part[name] for part in (settings, *parts) if name in part]
