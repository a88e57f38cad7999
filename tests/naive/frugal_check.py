"""Frugal asking question by question, without arrays: what each step asks, and what it learns."""

from __future__ import annotations

from tests.naive.check import key


def asked(score, schema, rows, max_queries, width):
    """(questions in order as (key, protected values), number of rows that were paid for)."""
    combinations = [tuple(values) for values in schema.combinations]
    index = schema.protected_index
    rows_of = {}
    for row in rows:
        rows_of.setdefault(key(schema, row), []).append(row)
    waiting, under_way, alone = list(rows_of), [], []
    answers = {k: {} for k in rows_of}  # by key: protected values -> favorable
    base = {}
    tried = [[0] * len(combinations) for _ in range(2)]
    differed = [[0] * len(combinations) for _ in range(2)]
    questions, pledged = [], 0
    ends = list(range(len(combinations)))
    ends = [ends[i // 2] if i % 2 == 0 else ends[-1 - i // 2] for i in range(len(ends))]

    def strays(k):
        return [row for row in rows_of[k] if tuple(row[index]) not in combinations]

    def worst(k):
        return len(combinations) + len(strays(k))

    def order(decision):
        def doubt(c):
            return -(differed[decision][c] + 0.5) / (tried[decision][c] + 1.0)

        return sorted(ends, key=doubt)

    def ask(k, values):
        row = rows_of[k][0].copy()
        row[index] = values
        questions.append((k, values))
        return bool(score(row[None])[0] > 0.5)

    while True:
        while waiting and len(under_way) < width:
            if pledged + worst(waiting[0]) > max_queries:
                break
            pledged += worst(waiting[0])
            under_way.append(waiting.pop(0))
        if not under_way and not alone:
            break
        best = {decision: order(decision) for decision in (0, 1)}
        news = []
        for k in under_way:
            if k not in base:
                own = tuple(rows_of[k][0][index])
                values = own if own in combinations else combinations[best[0][0]]
            else:
                left = [c for c in best[base[k]] if combinations[c] not in answers[k]]
                values = combinations[left[0]]
            news.append((k, values, ask(k, values)))
        for k, values in alone:
            answers[k][values] = ask(k, values)
        alone, still = [], []
        for k, values, favorable in news:
            answers[k][values] = favorable
            if k not in base:
                base[k] = favorable
                still.append(k)
                continue
            place = combinations.index(values)
            tried[base[k]][place] += 1
            differed[base[k]][place] += favorable != base[k]
            if favorable == base[k] and len(answers[k]) < len(combinations):
                still.append(k)
                continue
            own = {tuple(row[index]) for row in rows_of[k]} & set(combinations)
            rest = [(k, values) for values in own - set(answers[k])]
            rest += [(k, tuple(row[index])) for row in strays(k)]
            pledged -= worst(k) - len(answers[k]) - len(rest)
            alone += rest
        under_way = still
    done = set(rows_of) - set(waiting)
    n = next((i for i, row in enumerate(rows) if key(schema, row) not in done), len(rows))
    return questions, n
