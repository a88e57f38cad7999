"""From what a user says of workers to an executor."""

from __future__ import annotations

from limi.errors import InvalidInput
from limi.system.cores import n_cores
from limi.workers._base import Executor
from limi.workers.local import Local

__all__ = ["AUTO", "check_cluster", "count_workers", "open_executor", "reach_cluster"]

AUTO = "auto"
_RAY = "ray"
_MOST = 4096  # more is a slip of the hand


def count_workers(wanted: int | str | None) -> int:
    """How many workers a user means: a number, or one for each core that may be used."""
    if wanted is None:
        return 1
    if wanted == AUTO:
        return n_cores()
    try:
        number = int(wanted)
    except ValueError:
        raise InvalidInput(
            f"workers is {wanted!r}; it must be a number, or {AUTO} for one per core"
        ) from None
    if not 1 <= number <= _MOST:
        raise InvalidInput(
            f"workers is {number}; use at least 1 and at most {_MOST:,}, or {AUTO} for one per core"
        )
    return number


def open_executor(workers: int | str | None, cluster: str | None = None) -> Executor | None:
    """Where work is done beside this process; None where this process does all of it.

    A cluster is `ray` (that of RAY_ADDRESS, or one that is started here) or `ray://HOST:PORT`;
    without a number of workers it has one for each core of this machine.
    """
    number = count_workers(workers)
    check_cluster(cluster)
    if cluster is None:
        return Local(number) if number > 1 else None
    from limi.workers.ray import RayCluster

    return RayCluster(cluster, n_cores() if workers is None else number)


def check_cluster(cluster: str | None) -> None:
    """InvalidInput where this is not how a cluster is named."""
    if cluster is None:
        return
    if cluster != _RAY and not cluster.startswith(f"{_RAY}://"):
        raise InvalidInput(
            f"cluster is {cluster!r}; write {_RAY} (the cluster in RAY_ADDRESS, or a local one), "
            f"or {_RAY}://HOST:PORT"
        )


def reach_cluster(cluster: str | None) -> None:
    """InvalidInput where nobody answers there: told in seconds, before any expensive step."""
    check_cluster(cluster)
    if cluster is not None:
        from limi.workers.ray import reach

        reach(cluster)
