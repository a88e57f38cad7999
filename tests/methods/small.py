"""Settings that make each method small enough for the contract suite."""

SMALL: dict[str, dict[str, object]] = {
    "adf": {"n_seeds": 60, "exploit_steps": 60},
    "eidig": {"n_seeds": 60, "exploit_steps": 60},
    "maft": {"n_seeds": 60, "exploit_steps": 60},
    "neuronfair": {"n_seeds": 60, "exploit_steps": 60},
    "expga": {"n_samples": 500},
    "causal": {"exploit_steps": 100},
    "grft": {"size": 100},
    "guided": {"first": 200, "trees": 10},
    "sg": {"n_samples": 300},
}
