"""The CI examples of the documentation: parsed as their systems do, and run in a small project."""

import re
import runpy
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from limi.testing.export import MODULE, export

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "gate.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
GITHUB, GITLAB = map(yaml.safe_load, BLOCKS)
MODEL = """
def fair(frame):
    return (frame["age"] > 40) * 0.6 + 0.2


def unfair(frame):
    return (frame["sex"] == "m") * 0.6 + 0.2
"""


def github_commands(job):
    return [step["run"] for step in GITHUB["jobs"][job]["steps"] if "run" in step]


WORKFLOWS = {
    "github-gate": github_commands("gate"),
    "github-evidence": github_commands("evidence"),
    "gitlab-gate": [*GITLAB["fairness"]["script"], *GITLAB["pairs"]["script"]],
    "gitlab-evidence": GITLAB["evidence"]["script"],
}
GATED = [name for name in WORKFLOWS if name.endswith("gate")]


def test_the_workflow_has_the_shape_that_github_reads():
    # YAML 1.1 reads the key `on` as true.
    assert set(GITHUB) == {"name", True, "permissions", "jobs"}
    for job in GITHUB["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert set(step) <= {"uses", "run", "with", "if"}
            assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step.get("uses", "a/b@v1"))
    assert set(GITHUB["jobs"]["evidence"]["needs"].split()) <= set(GITHUB["jobs"])


def test_the_pipeline_has_the_shape_that_gitlab_reads():
    jobs = {name: job for name, job in GITLAB.items() if name not in ("stages", "default")}
    for job in jobs.values():
        assert job["stage"] in GITLAB["stages"]
        assert all(isinstance(line, str) for line in job["script"])
    assert jobs["fairness"]["allow_failure"] == {"exit_codes": 3}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a limi.toml, whose model is what the test says."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(
        {"age": np.arange(400) % 60 + 18, "sex": ["f", "m"] * 200, "ok": [0, 1] * 200}
    ).to_csv("people.csv", index=False)
    Path("model.py").write_text(MODEL)

    def settle(name):
        Path("limi.toml").write_text(
            f'table = "people.csv"\nmodel = "python:model.py:{name}"\ntarget = "ok"\n'
            'favorable = 1\nprotected = "sex"\ngenerator = "none"\nmethod = "real"\n'
            'rate_rows = 100\n[gate]\nreal_rate = "<= 3 %"\n'
        )
        return Path.cwd()

    return settle


def run(commands, limi):
    """The exit codes of what can be run here: all but installing limi."""
    codes = []
    for command in commands:
        words = shlex.split(command)
        if words[0] == "limi":
            code, _, err = limi(*words[1:])
            assert code < 2, err
            codes.append(code)
            written = {value for option, value in pairwise(words) if option == "--out"}
            assert all(Path(path).exists() for path in written)
        elif words[0] == "pytest":
            codes.append(run_test(Path(words[1]) / MODULE))
        else:
            assert words[:2] == ["pip", "install"]
    return codes


def run_test(path):
    """What pytest would say of the one test of a module; `tests/testing` runs pytest itself."""
    (test,) = (thing for name, thing in runpy.run_path(path).items() if name.startswith("test_"))
    try:
        test()
    except AssertionError:
        return 1
    return 0


@pytest.mark.parametrize("workflow", GATED)
def test_a_model_that_decides_by_sex_stops_the_build_and_a_fair_one_passes(workflow, project, limi):
    project("unfair")
    assert limi("test", "--out", "runs/last")[0] == 0
    export("runs/last", "tests/fairness", pairs=10, model="python:model.py:unfair")
    assert run(WORKFLOWS[workflow], limi) == [1, 1]
    project("fair")
    kept = Path("tests/fairness/test_fairness.py")
    kept.write_text(kept.read_text().replace("model.py:unfair", "model.py:fair"))
    assert run(WORKFLOWS[workflow], limi) == [0, 0]


@pytest.mark.parametrize("workflow", [name for name in WORKFLOWS if name not in GATED])
def test_evidence_is_left_behind(workflow, project, limi):
    place = project("unfair")
    assert run(WORKFLOWS[workflow], limi) == [0, 0]
    assert (place / "evidence.zip").exists()
    assert (place / "runs" / "new" / "report.html").exists()


def test_a_workflow_s_summary_and_annotations_are_written(project, limi, monkeypatch):
    project("unfair")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(Path.cwd() / "summary.md"))
    (gate,) = [line for line in WORKFLOWS["github-gate"] if line.startswith("limi gate")]
    code, out, _ = limi(*shlex.split(gate)[1:])
    assert code == 1
    assert "::error" in out
    assert "Fairness gate" in Path("summary.md").read_text()
