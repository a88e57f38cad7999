"""Addresses are read as a user means them, or refused in a sentence."""

import pytest

from limi.errors import InvalidInput
from limi.remote.address import parse


def test_a_name_and_options_stand_behind_the_number_sign():
    there = parse(
        "http://h:1/p?q=1#credit?form=matrix&columns=a,b", "F", known=["form"], named=True
    )
    assert (there.url, there.name, there.host) == ("http://h:1/p?q=1", "credit", "h:1")
    assert there.options == {"form": "matrix", "columns": "a,b"}
    assert there.columns == ["a", "b"]


def test_without_a_name_the_options_stand_alone():
    assert parse("http://h#form=lists", "F", known=["form"]).options == {"form": "lists"}
    assert parse("http://h#?form=lists", "F", known=["form"]).options == {"form": "lists"}


def test_a_path_is_not_doubled():
    assert parse("http://h/invocations/", "F").join("/invocations") == "http://h/invocations"
    assert parse("http://h", "F").join("/invocations") == "http://h/invocations"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("ftp://h/x", "not an http or https address"),
        ("file:///etc/passwd", "not an http or https address"),
        ("h:8000", "not an http or https address"),
        ("http://", "not an http or https address"),
        ("http://h:port/", "is not an address"),
        ("http://a..b/", "is not an address"),
        (f"http://{'a' * 70}/", "is not an address"),
        ("http://[::1", "is not an address"),
        ("http://h#x", "no model is named there"),
        ("http://h#?foo=1", "unknown option 'foo'"),
    ],
)
def test_what_is_no_address_is_refused(place, words):
    with pytest.raises(InvalidInput, match=words):
        parse(place, "mlflow:http://HOST")


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(InvalidInput) as refused:
        parse("http://ann:s3cret@h/x", "F")
    assert "s3cret" not in str(refused.value)
    assert "--header" in str(refused.value)


def test_a_path_stands_before_the_query():
    there = parse("http://h/api?version=2", "F")
    assert there.join("/invocations") == "http://h/api/invocations?version=2"


def test_a_key_in_an_address_is_given_by_name():
    assert parse("http://h/x?api_key=$KEY&v=1", "F").url == "http://h/x?api_key=$KEY&v=1"
    for plain in ("api_key=abc", "code=9f8e7d6c5b4a39281706aa"):
        with pytest.raises(InvalidInput, match="plain text") as refused:
            parse(f"http://h/x?{plain}", "F")
        assert plain.partition("=")[2] not in str(refused.value)


def test_a_model_must_be_named_where_the_server_has_several():
    with pytest.raises(InvalidInput, match="does not name a model"):
        parse("http://h", "oip:http://HOST#MODEL", named=True)
