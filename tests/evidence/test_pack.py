"""Packs: the same bytes for the same run, and a sentence for every one that was touched."""

import hashlib
import io
import json
import shutil
import zipfile

import numpy as np
import pandas as pd
import pytest

import limi
from limi.errors import CorruptStore, InvalidInput
from limi.evidence import MANIFEST, pack, verify
from tests.changes.small import by_sex, people

NAMES = [
    "README.md",
    "report.html",
    "summary.json",
    "metrics.json",
    "schema.toml",
    "manifest.json",
    "model-card.md",
    "mapping.md",
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


def rewritten(place, to, change, method=zipfile.ZIP_STORED):
    """The pack with its files changed, as a new ZIP file."""
    files = contents(place)
    change(files)
    with zipfile.ZipFile(to, "w", method) as whole:
        for name, data in files.items():
            whole.writestr(name, data)
    return to


def test_a_pack_holds_the_run_and_its_texts_with_their_sums(run, packed):
    told, place = packed
    files = contents(place)
    assert list(files) == [*NAMES, MANIFEST]
    for name in ("summary.json", "schema.toml", "manifest.json"):
        assert files[name] == (run / name).read_bytes()
    tree = json.loads(files[MANIFEST])
    for name in NAMES:
        assert tree["files"][name] == {
            "sha256": hashlib.sha256(files[name]).hexdigest(),
            "bytes": len(files[name]),
        }
    assert told.sha256 == hashlib.sha256(place.read_bytes()).hexdigest()
    assert verify(place).files == told.files


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
    mapping = files["mapping.md"]
    lines = [line for line in mapping.splitlines() if line.startswith(("| AI Verify", "| NIST"))]
    assert {line.split(" | ")[1] for line in lines} >= {"7.1.1", "MEASURE 2.11", "MEASURE 2.1"}
    for line in lines:
        for name in line.split(" | ")[3].split(", "):
            assert name.strip("`") in NAMES
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
    assert verify(tmp_path / "all.zip").files == told.files


def test_a_pack_that_was_only_compressed_is_whole(packed, tmp_path):
    place = rewritten(packed[1], tmp_path / "x.zip", lambda files: None, zipfile.ZIP_DEFLATED)
    assert verify(place).files == packed[0].files


def _alter(files):
    files["summary.json"] = files["summary.json"].replace(b"1", b"2", 1)


def _grow(files):
    files["README.md"] += b"\n"


def _lose(files):
    del files["report.html"]


def _add(files):
    files["more.txt"] = b"x"


def _climb(files):
    files["../evil.txt"] = b"x"


def _nest(files):
    files["a/b.txt"] = b"x"


def _drop_manifest(files):
    del files[MANIFEST]


def _manifest(**change):
    def edit(files):
        tree = json.loads(files[MANIFEST])
        files[MANIFEST] = json.dumps(tree | change).encode()

    return edit


def _relist(change):
    """Change files, and list the sums of what is left as whoever forges a pack would."""

    def edit(files):
        change(files)
        tree = json.loads(files.pop(MANIFEST))
        tree["files"] = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in files.items()
        }
        files[MANIFEST] = json.dumps(tree).encode()

    return edit


def _empty(files):
    for name in NAMES:
        del files[name]


def _break_manifest(files):
    files[MANIFEST] = b"{"


def _deep_manifest(files):
    files[MANIFEST] = b"[" * 100_000


def _huge_manifest(files):
    files[MANIFEST] = b" " * (2 << 20)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_alter, "summary.json was altered"),
        (_grow, "README.md was altered"),
        (_lose, "it lacks report.html"),
        (_add, r"it holds more.txt, which its pack.json does not list"),
        (_climb, r"a file named '\.\./evil.txt'"),
        (_nest, "a file named 'a/b.txt'"),
        (_drop_manifest, "it has no pack.json"),
        (_manifest(format=99), "packed by a newer limi"),
        (_manifest(format="x"), "has no format"),
        (_manifest(files=[]), "lists no checksums"),
        (_manifest(files={"x": 1}), "lists no checksums"),
        (_relist(_empty), "it lacks README.md, report.html"),
        (_relist(_lose), "it lacks report.html"),
        (_relist(_add), "it holds more.txt, which does not belong in a pack"),
        (_break_manifest, "cannot be read"),
        (_deep_manifest, "cannot be read"),
        (_huge_manifest, "larger than a megabyte"),
    ],
)
def test_a_pack_that_was_touched_is_told_in_a_sentence(packed, tmp_path, change, says):
    place = rewritten(packed[1], tmp_path / "x.zip", change)
    with pytest.raises(CorruptStore, match=says) as raised:
        verify(place)
    assert "\n" not in str(raised.value)


def test_a_damaged_stream_is_told_in_a_sentence(packed, tmp_path):
    place = rewritten(packed[1], tmp_path / "x.zip", lambda files: None, zipfile.ZIP_DEFLATED)
    whole = place.read_bytes()
    start = whole.index(b"README.md") + len(b"README.md")
    for at in range(start, start + 60):
        place.write_bytes(whole[:at] + b"\xff\xff" + whole[at + 2 :])
        with pytest.raises(CorruptStore) as raised:
            verify(place)
        assert "\n" not in str(raised.value)


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
    assert verify(tmp_path / "x.zip").files == told.files


def test_bombs_are_refused_before_they_unpack(tmp_path):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("big.txt", bytes(1 << 20))
    data = bytearray(sink.getvalue())
    place = data.rfind(b"PK\x01\x02") + 24  # where the central directory says how large it would be
    data[place : place + 4] = (2 << 30).to_bytes(4, "little")
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(CorruptStore, match="unpack to more than a gigabyte"):
        verify(tmp_path / "x.zip")


def test_a_file_that_is_longer_than_it_says_is_refused(packed, tmp_path):
    data = bytearray(packed[1].read_bytes())
    at = data.rfind(b"PK\x01\x02", 0, data.rfind(b"mapping.md"))
    size = int.from_bytes(data[at + 24 : at + 28], "little")
    for place in (20, 24):
        data[at + place : at + place + 4] = (size - 5).to_bytes(4, "little")
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(CorruptStore):
        verify(tmp_path / "x.zip")


def test_twice_the_same_name_and_too_many_files_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as whole:
        whole.writestr("README.md", "a")
        with pytest.warns(UserWarning, match="Duplicate name"):
            whole.writestr("README.md", "b")
    with pytest.raises(CorruptStore, match=r"holds README.md twice"):
        verify(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as whole:
        for number in range(101):
            whole.writestr(f"f{number}", "")
    with pytest.raises(CorruptStore, match="101 files"):
        verify(tmp_path / "y.zip")


@pytest.mark.parametrize("cut", [0, 10, 500, -1])
def test_files_that_are_no_packs_are_told_so(packed, tmp_path, cut):
    (tmp_path / "x.zip").write_bytes(packed[1].read_bytes()[:cut])
    with pytest.raises(CorruptStore):
        verify(tmp_path / "x.zip")


def test_every_byte_that_is_turned_is_noticed_or_changes_nothing(packed, tmp_path):
    import numpy as np

    whole = packed[1].read_bytes()
    before = {name: data for name, data in contents(packed[1]).items() if name != MANIFEST}
    place = tmp_path / "x.zip"
    for at in np.random.default_rng(0).choice(len(whole), 150, replace=False).tolist():
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            verify(place)
        except CorruptStore:
            continue
        assert {name: data for name, data in contents(place).items() if name != MANIFEST} == before


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
