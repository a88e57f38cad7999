"""Settings that make each method small enough for the contract suite; the defaults are the papers'."""

SMALL: dict[str, dict[str, object]] = {}
