"""How many threads libraries may start: no more than there are cores that nobody else uses.

BLAS and OpenMP start a thread per core they see, and a team waits for its slowest: on a busy
machine, or in a container that may use two cores of sixty-four, that costs many times what it
saves. Whoever sets OMP_NUM_THREADS, or another of their variables, has decided, and is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["n_cores", "n_free", "n_threads", "share_cores", "use_one"]

_DECIDED = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
_QUOTAS = (  # of a container, by the two versions of control groups: quota and period
    (Path("/sys/fs/cgroup/cpu.max"),),
    (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")),
)

_alone = False  # is this process one of several that share the cores?


def use_one() -> None:
    """From now on this process uses one core: it is one of several."""
    global _alone
    _alone = True


def n_cores() -> int:
    """Cores that this process may use."""
    if _alone:
        return 1
    if hasattr(os, "sched_getaffinity"):
        known = len(os.sched_getaffinity(0))
    else:
        known = os.cpu_count() or 1
    return max(1, min(known, _allow()))


def _allow() -> int:
    """Cores that a container's quota is worth; many where there is none."""
    for files in _QUOTAS:
        with suppress(OSError, ValueError):
            quota, period = (float(n) for file in files for n in file.read_text("ascii").split())
            if quota > 0 and period > 0:
                return round(quota / period)
    return 1 << 30


def n_threads(
    cores: int, everywhere: int, load: float, environ: Mapping[str, str] = os.environ
) -> int | None:
    """Threads for libraries on so many cores; None where the user has set them.

    `load` is how many processes want one of the cores of the whole machine.

    >>> n_threads(8, 8, 0.3, {}), n_threads(8, 8, 6.2, {}), n_threads(2, 64, 30.0, {})
    (8, 2, 2)
    """
    if any(environ.get(name) for name in _DECIDED):
        return None
    return max(1, min(cores, round(everywhere - load)))


def _n_threads() -> int | None:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return n_threads(n_cores(), os.cpu_count() or 1, load)


def n_free() -> int:
    """Cores that nobody else uses now, at least one; one where the user has set threads."""
    return _n_threads() or 1


@contextmanager
def share_cores() -> Iterator[None]:
    """A block in which BLAS and OpenMP use the cores that are free when it begins."""
    from threadpoolctl import threadpool_limits

    threads = _n_threads()
    if threads is None:
        yield
        return
    with threadpool_limits(limits=threads):
        yield
