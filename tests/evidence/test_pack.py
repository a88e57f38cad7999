"""Packs: the same bytes for the same run, and no pack of a run that was touched."""

import hashlib
import json
import shutil
import zipfile

import numpy as np
import pandas as pd
import pytest

import limi
from limi.errors import CorruptStore, InvalidInput
from limi.evidence import SUMS, pack
from tests.changes.small import by_sex, people

NAMES = [
    "README.md",
    "report.html",
    "summary.json",
    "metrics.json",
    "schema.toml",
    "manifest.json",
    "model-card.md",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack") / "run"
    limi.audit(
        by_sex(20),
        people(),
        protected=["sex"],
        target="ok",
        favorable="yes",
        output="score",
        generator=None,
        method="real",
        rate_rows=200,
        out=folder,
        command="limi test people.csv --model x | <b>",
    )
    return folder


@pytest.fixture(scope="module")
def packed(run):
    place = run.parent / "evidence.zip"
    return pack(run, place), place


def contents(place):
    with zipfile.ZipFile(place) as whole:
        return {name: whole.read(name) for name in whole.namelist()}


def test_a_pack_holds_the_run_and_its_texts_with_their_sums(run, packed):
    told, place = packed
    files = contents(place)
    assert list(files) == [*NAMES, SUMS]
    for name in ("summary.json", "schema.toml", "manifest.json"):
        assert files[name] == (run / name).read_bytes()
    listed = dict(reversed(line.split("  ")) for line in files[SUMS].decode().splitlines())
    assert listed == {name: hashlib.sha256(files[name]).hexdigest() for name in NAMES}
    assert told.files == listed
    assert told.sha256 == hashlib.sha256(place.read_bytes()).hexdigest()


def test_the_same_run_packs_to_the_same_bytes_wherever_it_lies(run, packed, tmp_path):
    shutil.copytree(run, tmp_path / "elsewhere")
    again = pack(tmp_path / "elsewhere", tmp_path / "again.zip")
    assert again.sha256 == packed[0].sha256


def test_the_texts_say_what_was_and_was_not_tested_and_claim_nothing(packed):
    files = {name: data.decode() for name, data in contents(packed[1]).items()}
    readme = files["README.md"]
    for part in ("What was tested", "What was not tested", "How to repeat it", "Files"):
        assert f"## {part}" in readme
    assert "Protected column sex: f, m" in readme
    assert "no generator was given" in readme or "natural rows" in readme
    assert "limi test people.csv --model x | <b>" in readme
    assert "does not claim conformity" in readme
    assert "your" not in readme
    for heading in ("## Bias, Risks, and Limitations", "## Evaluation", "### Results"):
        assert heading in files["model-card.md"]
    for text in files.values():
        assert "complies" not in text
        assert "compliant" not in text


def test_whoever_repeats_a_run_has_its_settings_though_a_limi_toml_held_them(packed, run, tmp_path):
    readme = contents(packed[1])["README.md"].decode()
    part = readme[readme.index("## How to repeat it") : readme.index("## Files")]
    for words in (
        *("- table: table", "- target: ok", "- favorable: yes", "- protected: sex = f, m"),
        *(
            "- decision: favorable",
            "- seed: 0",
            "- method: real",
            "- rate rows: 200",
            "- generator: none",
        ),
        *("- output: score", "max\\_rows = 100000", "limi.toml", "schema.toml"),
    ):
        assert words in part, words
    # The model is a function: there is no sum of it.
    assert "and therefore has no checksum" in part
    assert "their checksums" not in part
    shutil.copytree(run, tmp_path / "run")
    for name in ("summary.json", "manifest.json"):
        _edit(name, _put("command", value=""))(tmp_path / "run")
    _edit("summary.json", _put("hashes", "model_sha256", value="ab"))(tmp_path / "run")
    _edit("manifest.json", _put("model_sha256", value="ab"))(tmp_path / "run")
    pack(tmp_path / "run", tmp_path / "x.zip")
    readme = contents(tmp_path / "x.zip")["README.md"].decode()
    part = readme[readme.index("## How to repeat it") : readme.index("## Files")]
    assert "started from Python: call `limi.audit`" in part
    assert "limi.toml" not in part
    assert "their checksums are above" in part


def test_a_setting_has_one_value_in_all_files_and_what_the_budget_left_of_it_stands_beside(
    tmp_path,
):
    limi.audit(
        *(by_sex(20), people()),
        protected=["sex"],
        target="ok",
        favorable="yes",
        output="score",
        method="limi",
        settings={"n_latents": 2_000},
        max_rows=500,
        rate_rows=50,
        out=tmp_path / "run",
    )
    pack(tmp_path / "run", tmp_path / "x.zip")
    files = contents(tmp_path / "x.zip")
    summary, manifest = (json.loads(files[f"{n}.json"]) for n in ("summary", "manifest"))
    assert summary["settings"] == manifest["settings"]
    assert summary["settings"]["n_labelled"] == 100_000
    assert summary["used"] == {"n_labelled": 200}
    assert "n\\_labelled the budget left 200" in files["README.md"].decode()
    assert "100,000 (200 used" in files["report.html"].decode()


def test_findings_go_along_on_request_alone(run, packed, tmp_path):
    assert "findings.parquet" not in packed[0].files
    told = pack(run, tmp_path / "all.zip", findings=True)
    assert "findings.parquet" in told.files
    assert (
        contents(tmp_path / "all.zip")["findings.parquet"]
        == (run / "findings.parquet").read_bytes()
    )


def _edit(name, change):
    def edit(folder):
        tree = json.loads((folder / name).read_text())
        change(tree)
        (folder / name).write_text(json.dumps(tree))

    return edit


def _put(*keys, value):
    def change(tree):
        for key in keys[:-1]:
            tree = tree[key]
        tree[keys[-1]] = value

    return change


def _cut_findings(folder):
    path = folder / "findings.parquet"
    path.write_bytes(path.read_bytes()[:-50])


def _findings(change):
    def edit(folder):
        path = folder / "findings.parquet"
        change(pd.read_parquet(path)).to_parquet(path)

    return edit


def _other_schema(folder):
    path = folder / "schema.toml"
    path.write_text(path.read_text().replace('"m"', '"x"'))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_cut_findings, "the findings in .* cannot be read"),
        (lambda folder: (folder / "findings.parquet").unlink(), "has no findings.parquet"),
        (_findings(lambda frame: frame.iloc[1:]), "counts 56 findings, .* holds 55"),
        (_findings(lambda frame: frame.drop(columns="score")), "the findings in .*score"),
        (_findings(lambda frame: frame.drop(columns="sex__partner")), "the findings in .*sex"),
        (_findings(lambda frame: frame.assign(sex="x")), "the findings in"),
        (_edit("summary.json", _put("findings", value=0)), "counts 0 findings"),
        (_edit("summary.json", _put("rates", "uniform", "estimate", value=0.01)), "rate_flips"),
        (_edit("summary.json", _put("rates", "uniform", "n", value=900)), "rate_flips"),
        (_edit("summary.json", _put("rates", "real", "low", value=-1.0)), "real rows"),
        (_edit("summary.json", _put("rate_flips", "natural", value="AA==")), "natural"),
        (_edit("summary.json", _put("rate_flips", "uniform", value="?")), "is damaged"),
        (_edit("summary.json", _put("hashes", "data_sha256", value="0" * 64)), "data_sha256"),
        (_edit("manifest.json", _put("seed", value=7)), "differ in seed"),
        (_edit("manifest.json", _put("model", value="other")), "differ in model"),
        (_edit("manifest.json", _put("protected", "sex", value=["f"])), "differ in protected"),
        (_other_schema, "schema.toml and summary.json|the schema in|the findings in"),
    ],
)
def test_a_run_that_was_damaged_or_edited_is_not_packed(run, tmp_path, damage, says):
    shutil.copytree(run, tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(CorruptStore, match=says) as raised:
        pack(tmp_path / "run", tmp_path / "x.zip")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize("case", ["nothing found", "classes", "numbers", "two columns"])
def test_runs_of_every_kind_are_packed(tmp_path, case):
    table = people(120)
    young = {"nothing found": 0}.get(case, 20)
    options = {"target": "ok", "favorable": "yes", "output": "score"}
    model = by_sex(young)
    protected = ["sex"]
    if case == "classes":

        def model(frame):
            return np.where(frame["sex"] == "m", frame["job"], "clerk")

        table = table.assign(ok=table["job"])
        options = {"target": "ok", "decision": "class"}
    elif case == "numbers":

        def model(frame):
            return frame["age"].to_numpy(dtype=float) + 5.0 * (frame["sex"] == "m")

        table = table.assign(ok=table["age"] * 1.0)
        options = {"target": "ok", "decision": "difference > 1"}
    elif case == "two columns":
        protected = ["sex", "job"]
    limi.audit(
        model,
        table,
        protected=protected,
        generator=None,
        method="real",
        rate_rows=50,
        out=tmp_path / "run",
        **options,
    )
    told = pack(tmp_path / "run", tmp_path / "x.zip", findings=True)
    assert set(told.files) == {*NAMES, "findings.parquet"}


def test_what_cannot_be_packed_is_refused(run, packed, tmp_path):
    with pytest.raises(InvalidInput, match="exists already; replace it with --force"):
        pack(run, packed[1])
    with pytest.raises(InvalidInput, match="there is no run folder"):
        pack(tmp_path / "gone", tmp_path / "x.zip")
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "schema.toml").write_text("x = 1")
    with pytest.raises(CorruptStore, match="the schema in"):
        pack(tmp_path / "run", tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()
