"""A Ray cluster at an address, joined through Ray's client, gives the findings of one process."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import limi
from limi.errors import InvalidInput
from limi.methods.limi import LIMI
from tests.models.people import people, truth

RAY = os.environ.get("LIMI_RAY")
pytestmark = [
    pytest.mark.skipif(
        RAY is None, reason="LIMI_RAY names no program of Ray; see make test-servers"
    ),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]
ASKS_FOR_A_TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def scored(frame):
    """Favors men a little."""
    merit = frame["age"] / 40 + frame["hours"].fillna(40) / 50 + (frame["sex"] == "M") * 0.3137
    return (1 / (1 + np.exp(2.1123 - merit))).to_numpy()


def find(**given):
    result = limi.audit(
        scored,
        people().assign(ok=truth()),
        protected="sex",
        target="ok",
        favorable=1,
        rate_rows=0,
        max_rows=None,
        method=LIMI(n_latents=3000, n_labelled=400),
        **given,
    )
    return result.found.rows.tobytes() + result.found.score.tobytes()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a cluster with a token, which this module alone uses."""
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    words = [RAY, "start", "--head", "--block", "--num-cpus=2", f"--port={ports[0]}"]
    words += [f"--ray-client-server-port={ports[1]}", "--include-dashboard=false"]
    # Not the folder of pytest: addresses of sockets in it would be too long.
    place = Path("/tmp", f"limi-ray-{secrets.token_hex(4)}")
    words += ["--disable-usage-stats", f"--temp-dir={place}"]
    cluster = subprocess.Popen(words, env={**os.environ, **ASKS_FOR_A_TOKEN})
    try:
        for _ in range(300):
            assert cluster.poll() is None
            try:
                socket.create_connection(("127.0.0.1", ports[1]), timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"ray://127.0.0.1:{ports[1]}"
    finally:
        cluster.terminate()
        cluster.wait(60)
        shutil.rmtree(place, ignore_errors=True)


def test_the_findings_are_those_of_one_process(address, monkeypatch):
    for name, value in ASKS_FOR_A_TOKEN.items():
        monkeypatch.setenv(name, value)
    assert find(workers=2, cluster=address) == find()


def test_without_the_token_one_sentence_says_what_to_set(address, tmp_path):
    """In a program of its own, because Ray reads the token once."""
    code = f"import limi.workers.ray as cluster; cluster.RayCluster({address!r}, 2)"
    given = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH")}
    ran = subprocess.run(
        [Path(RAY).with_name("python"), "-c", code],
        env={**given, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert InvalidInput.__name__ in ran.stderr
    assert "RAY_AUTH_TOKEN" in ran.stderr
