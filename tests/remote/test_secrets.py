"""Secrets come from the environment or a file, and are shown by name."""

import pytest

from limi.errors import InvalidInput
from limi.remote.secrets import expand


def test_names_are_filled_in_and_hidden_again(tmp_path):
    (tmp_path / "key").write_text("k-12345\n")
    given = ["Authorization: Bearer $TOKEN", f"X-Key: @{tmp_path}/key", "X-Tenant: ${WHO}-1"]
    headers = expand(given, {"TOKEN": "abcdef", "WHO": "ann!"})
    assert headers.values == {
        "Authorization": "Bearer abcdef",
        "X-Key": "k-12345",
        "X-Tenant": "ann!-1",
    }
    said = headers.scrub("no abcdef, no k-12345, no ann!")
    assert said == f"no $TOKEN, no @{tmp_path}/key, no $WHO"
    assert "abcdef" not in repr(headers)


def test_a_secret_is_hidden_however_a_server_spells_it():
    headers = expand(["X-Key: $KEY"], {"KEY": 'a/b"c+d'})
    told = 'plain a/b"c+d, JSON a/b\\"c+d and a\\/b\\"c+d, an address a%2Fb%22c%2Bd or a/b%22c%2Bd'
    assert headers.scrub(told) == "plain $KEY, JSON $KEY and $KEY, an address $KEY or $KEY"


def test_a_key_of_the_address_is_filled_in_as_it_is_asked():
    url = "http://h/x?api_key=$KEY&$format=json&v=$5"
    headers = expand([], {"KEY": "k&1=2", "5": "five"}, url=url)
    assert headers.fill(url) == "http://h/x?api_key=k%261%3D2&$format=json&v=five"
    assert headers.scrub("no k&1=2") == "no $KEY"
    with pytest.raises(InvalidInput, match=r"address reads .KEY from the environment"):
        expand([], {}, url=url)


def test_a_plain_header_that_holds_no_secret_is_taken():
    assert expand(["Accept-Language: de"], {}).values == {"Accept-Language": "de"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("Authorization: Bearer $TOKEN", "TOKEN from the environment, but it is not set"),
        ("Authorization: Bearer $BLANK", "BLANK from the environment, but it is not set"),
        ("Authorization: Bearer abcdef", "plain text"),
        ("X-Api-Key: abc", "plain text"),
        ("X-Other: 9f8e7d6c5b4a39281706", "plain text"),
        ("Authorization", "not of the form"),
        ("Host: elsewhere", "set by limi"),
        ("X-Odd: $ODD", "characters that are not allowed in a header"),
        ("X-Key: @/no/such/file", "there is no file"),
    ],
)
def test_a_header_that_cannot_be_is_refused_without_its_value(given, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        expand([given], {"ODD": "a\nb: c", "BLANK": "  "})
    assert not any(secret in str(refused.value) for secret in ("abcdef", "9f8e7d6c", "a\nb"))
