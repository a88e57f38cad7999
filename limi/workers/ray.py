"""Workers on a Ray cluster: one actor each, wherever Ray puts it.

Ray schedules, restarts nodes and moves bytes; what is ours is that an actor which is gone has its
job done again by another, as a local process has. The model travels as a message, or as the name of
its file, which every node must then have at the same place.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import socket
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from limi.errors import InvalidInput, MissingDependency, missing
from limi.workers._base import (
    Failed,
    Killed,
    Work,
    attempt,
    cannot_travel,
    pack,
    settle,
    unpack,
)

__all__ = ["RayCluster", "reach"]

TIMEOUT = 10.0
"""Seconds that a cluster may take to answer at its address."""

_READY_SECONDS = 120.0  # for a first worker to stand ready: a node may have to start
_LONGEST = 600  # characters of what Ray says
_LOCAL = "ray"  # the cluster of RAY_ADDRESS, or one that is started here


class RayCluster:
    """So many workers on a cluster: that of an address, of RAY_ADDRESS, or one started here."""

    def __init__(self, cluster: str, workers: int) -> None:
        self.workers = workers
        self._ray = _import_ray()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            reach(cluster)
            self._join(cluster)
        # A killed actor is replaced by our crew, which knows its job.
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Worker)
        self._sent: tuple[Work, Any] | None = None  # the work of late, and its message

    def hire(self, work: Work) -> _Actor:
        """An actor that does this work."""
        if self._sent is None or self._sent[0] is not work:
            # Once, however many fetch it: models are large.
            self._sent = work, self._ray.put(pack(work, self._ray.cloudpickle.dumps))
        return _Actor(self._ray, self._actor, self._sent[1])

    def patience(self, work: Work) -> float:
        """Seconds until a worker is there: a node may have to start."""
        return _READY_SECONDS

    def otherwise(self, work: Work, why: str) -> RayCluster:
        """There is no other way to workers of a cluster."""
        raise InvalidInput(
            f"no worker of the cluster was ready within {_READY_SECONDS:g} seconds; each needs "
            "one CPU: is one free?"
        )

    def wait(self, hands: Sequence[_Actor], seconds: float | None = None) -> list[_Actor]:
        """Those whose answer is there, or will never be."""
        answers = [hand.answer for hand in hands]
        ready, _ = self._ray.wait(answers, num_returns=1, timeout=seconds)
        return [hand for hand in hands if hand.answer in ready]

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._ours:
            self._ray.shutdown()

    def _join(self, cluster: str) -> None:
        address = _address(cluster)
        given: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if address and address != "local":
            given["address"] = address
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            # Ray lets its workers give way to every other program; ours must not wait for one that
            # happens to run beside them.
            os.environ.setdefault("RAY_worker_niceness", "0")
            given |= {"num_cpus": self.workers, "include_dashboard": False}
        try:
            with warnings.catch_warnings(action="ignore"):  # the sentence below says it
                self._ray.init(**given)
        except Exception as error:
            hint = ""
            if isinstance(error, ConnectionError) and not os.environ.get("RAY_AUTH_MODE"):
                # Its port is open, as was tried before; a client without a token is not answered.
                hint = "; if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
            raise InvalidInput(
                f"the cluster {address or 'of this machine'} cannot be used: "
                f"{type(error).__name__}: {_in_one_line(error)}{hint}"
            ) from None


def versions() -> dict[str, str]:
    """Of limi and Python in this process."""
    return {"limi": importlib.metadata.version("limi"), "Python": platform.python_version()}


def require_same(here: dict[str, str], there: dict[str, str]) -> None:
    """InvalidInput where two processes differ, naming both versions."""
    for name, mine in here.items():
        theirs = there.get(name, "none")
        if mine != theirs:
            raise InvalidInput(
                f"the cluster has {name} {theirs}, but this machine has {name} {mine}; findings "
                "are only guaranteed to be the same with the same versions, so install one of "
                "them on both"
            )


def _in_one_line(error: BaseException) -> str:
    """All that Ray says: which versions differ, for instance, stands in its last lines."""
    said = " ".join(str(error).split())
    return said[:_LONGEST] or "no reason was given"


class _Worker:
    """What an actor holds: the work, once its message has come."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._work: Work | None = None
        self._kept = settle(handles_signals=False)

    def versions(self) -> dict[str, str]:
        """Of limi and Python where this actor lives."""
        return versions()

    def prepare(self) -> None:
        """Unpack the work, before the first job waits for it."""
        if self._work is None:
            self._work = unpack(self._message)

    def do(self, job: Any) -> Any:
        """The result of a job."""
        self.prepare()
        assert self._work is not None
        return attempt(self._work, job)


class _Actor:
    """One actor, with one job at a time."""

    is_expected = True  # nobody knows when, and whether, Ray finds a place for it

    def __init__(self, ray: Any, actor: Any, message: Any) -> None:
        self._ray = ray
        self._actor = actor.remote(message)
        # Each is asked, because every node has an installation of its own.
        self._versions: Any = self._actor.versions.remote()
        self.answer = self._actor.prepare.remote()  # while the process that hires it goes on

    def begin(self, job: Any) -> None:
        """Send it a job."""
        try:
            self.answer = self._actor.do.remote(job)
        except (TypeError, ValueError) as error:  # a job that does not fit into a message
            raise cannot_travel(error) from None

    def result(self) -> Any:
        """What it answers; Killed where it is gone."""
        answer, self.answer = self.answer, None
        try:
            self._require_same()
            return self._ray.get(answer)
        except self._ray.exceptions.OutOfMemoryError:
            return Failed(MemoryError())
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError) as error:
            if getattr(error, "actor_init_failed", False):
                raise InvalidInput(
                    "the cluster's workers cannot run limi; install the same version on every node "
                    f"({_in_one_line(error)})"
                ) from None
            raise Killed(
                "a worker of the cluster was killed every time it was given the same job; did "
                "memory run out there? Use fewer --workers, or a smaller --max-batch"
            ) from None

    def end(self) -> None:
        """End it, at work or not."""
        with suppress(Exception):  # a cluster that is gone has no actors
            self._ray.kill(self._actor)

    def _require_same(self) -> None:
        """InvalidInput where this actor has another limi or Python than this process."""
        if self._versions is not None:
            there, self._versions = self._ray.get(self._versions), None
            require_same(versions(), there)


def reach(cluster: str) -> None:
    """InvalidInput where nobody listens at the address of a cluster; Ray itself is not needed."""
    ray, address = sys.modules.get("ray"), _address(cluster)
    is_joined = ray is not None and ray.is_initialized()
    if address and address not in ("local", "auto") and not is_joined:
        _require_reachable(address)
        if address.startswith("ray://") and importlib.util.find_spec("grpc") is None:
            raise MissingDependency(
                f"the cluster {address} is joined by Ray's client, of which a part is not "
                "installed; try: pip install 'limi[ray]'"
            )


def _address(cluster: str) -> str | None:
    return os.environ.get("RAY_ADDRESS") if cluster == _LOCAL else cluster


def _require_reachable(address: str) -> None:
    """InvalidInput where nobody listens at an address; told before Ray tries for a minute."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.scheme not in ("", "ray"):
        raise InvalidInput(
            f"the cluster {address!r} is not an address; write ray://HOST:PORT (usually 10001), or "
            "ray for the cluster in RAY_ADDRESS or a local one"
        )
    try:
        with socket.create_connection((host, port), timeout=TIMEOUT):
            pass
    except OSError as error:
        why = error.strerror or str(error)
        raise InvalidInput(
            f"the cluster {address} did not answer within {TIMEOUT:g} seconds ({why}); is it "
            "running, and is the port open from here?"
        ) from None


def _import_ray() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise missing("ray", "ray", "a cluster") from None
    return ray
