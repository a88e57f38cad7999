"""Workers: the same work in several processes, here or on a cluster, and the same results."""

from limi.workers._base import Executor, Failed, Killed, Stuck, Trial, Work
from limi.workers._crew import Crew
from limi.workers._open import AUTO, check_cluster, count_workers, open_executor, reach_cluster
from limi.workers.local import Local

__all__ = [
    "AUTO",
    "Crew",
    "Executor",
    "Failed",
    "Killed",
    "Local",
    "Stuck",
    "Trial",
    "Work",
    "check_cluster",
    "count_workers",
    "open_executor",
    "reach_cluster",
]
