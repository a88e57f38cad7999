"""Chat models: rows become prompts, replies decisions, wordings replicates, refusals a class.

No language model can be had here, so the server is a small model that reads the prompt.
"""

import json

import numpy as np
import pytest

from limi import Remote, audit, models
from limi.errors import BadModel, InvalidInput
from limi.remote.prompts import READY, read_prompts
from tests.remote.servers import COLUMNS, App, favorable_chance, people, serving

GIVEN = {
    "protected": "sex",
    "target": "ok",
    "method": "themis",
    "generator": None,
    "rate_rows": 10,
    "seed": 0,
}
ONE = """
favorable = ["yes"]
unfavorable = ["no"]
prompts = ['''{% for n, v in person.items() %}- {{ n }}: {{ v }}
{% endfor %}''']
"""


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture
def app():
    return App()


@pytest.fixture
def address(app):
    with serving(app) as there:
        yield there


@pytest.fixture
def template(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(ONE)
    return path


def opened(address, options, **given):
    remote = Remote(max_queries=1000, backoff=0.001, **given)
    return models.load(f"chat:{address}#small?{options}", favorable=1, remote=remote)


def scores(address, options, rows):
    model = opened(address, options)
    try:
        return model.score(rows)
    finally:
        model.exchange.rest()


def test_words_json_and_log_probabilities_are_read(app, address, table, template):
    rows = table[COLUMNS][:8]
    true = favorable_chance(rows)
    words = scores(address, f"template={template}", rows)
    assert np.array_equal(words, (true > 0.5).astype(float))
    told = scores(address, f"template={template}&answer=logprobs", rows)
    assert told == pytest.approx(true)
    app.say = lambda score: f'I think: {{"score": {score}}}.'
    assert scores(address, f"template={template}&answer=json", rows) == pytest.approx(true)
    app.say = lambda score: json.dumps({"decision": "Yes" if score > 0.5 else "No"})
    assert np.array_equal(scores(address, f"template={template}&answer=json", rows), words)


def test_settings_are_passed_on_and_wordings_take_turns(app, address, table):
    model = opened(address, "template=loans&temperature=0.5&seed=7&max_tokens=3")
    rows = table[COLUMNS][:1]
    with model.anew():
        for _ in range(4):
            model.score(rows)
    model.exchange.rest()
    asked = app.prompts
    assert {(one["model"], one["temperature"], one["max_tokens"]) for one in asked} == {
        ("small", 0.5, 3)
    }
    assert [one["seed"] for one in asked] == [7, 8, 9, 10]
    texts = [one["messages"][-1]["content"] for one in asked]
    assert len(set(texts)) == 3
    assert texts[0] == texts[3]
    assert asked[0]["messages"][0]["role"] == "system"


def test_findings_are_those_of_the_model_in_process(app, address, table, template):
    given = {**GIVEN, "max_queries": 300}
    place = f"chat:{address}#small?template={template}&temperature=0&answer=logprobs"
    through = audit(place, table, **given, remote=Remote(concurrency=8))
    with serving(App()) as other:
        plain = audit(f"mlflow:{other}", table, **given)
    assert len(plain.found) > 5
    assert np.array_equal(through.found.rows, plain.found.rows, equal_nan=True)
    assert through.found.score == pytest.approx(plain.found.score)
    assert app.asked <= 300


def test_several_wordings_make_a_run_by_chance_with_refusals_counted(app, address, table):
    app.say = lambda score: (
        "I cannot say." if 0.48 < score < 0.52 else "Yes" if score > 0.5 else "No, sorry."
    )
    given = {**GIVEN, "max_queries": 800, "remote": Remote(concurrency=8)}
    result = audit(f"chat:{address}#small?template=hiring&temperature=0", table, **given)
    assert result.summary.noise["shown"] == len(result.found) > 3
    assert app.asked <= 800
    remote = result.summary.remote
    assert 0 < remote["refused"] < remote["answers"]
    assert any("refusals" in note for note in result.summary.notes)


def test_a_filtered_or_empty_reply_is_a_refusal(template):
    shape = opened("http://127.0.0.1:1", f"template={template}").exchange.shape
    for choice in (
        {"finish_reason": "content_filter", "message": {"content": "Yes"}},
        {"message": {"content": None}},
        {"message": {"content": "Yes", "refusal": "I will not"}},
        {"message": {"content": "Yes and no"}},
        {"message": {"content": "Yesterday"}},
    ):
        assert shape.read(json.dumps({"choices": [choice]}).encode(), 1) == [None]
    other = opened("http://127.0.0.1:1", f"template={template}&answer=logprobs").exchange.shape
    with pytest.raises(BadModel, match="no log-probabilities"):
        other.read(b'{"choices": [{"message": {}}]}', 1)


@pytest.mark.parametrize("name", READY)
def test_ready_templates_ask_about_every_column(name):
    prompts = read_prompts(name)
    record = {"age": 30, "marital-status": None}
    assert len(prompts.texts) >= 3
    for turn in range(len(prompts.texts)):
        text = prompts.render(record, turn)
        assert "- age: 30" in text
        assert "- marital-status: unknown" in text
    assert prompts.side("Yes.") is True
    assert prompts.side("no") is False
    assert prompts.side("Yes or no?") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "not valid TOML"),
        (ONE.replace("prompts", "prompt"), "did you mean 'prompts'"),
        (ONE.replace('["no"]', '["yes"]'), "favorable and unfavorable"),
        (ONE.replace('["no"]', "[]"), "must have unfavorable"),
        (ONE.replace("{{ n }}", "{{ n"), "not valid"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(tmp_path, text, words):
    path = tmp_path / "t.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        read_prompts(str(path))


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("{{ agee }}", "did you mean 'age'"),
        ("{{ person['agee'] }}", "needs a value that is not there"),
        ("{{ ''.__class__.__mro__ }}", "needs a value that is not there|cannot be filled"),
        ("{{ person.update(age=1) }}", "cannot be filled"),
    ],
)
def test_a_template_reaches_for_nothing_but_the_row(tmp_path, prompt, words):
    path = tmp_path / "t.toml"
    path.write_text(f'favorable = ["y"]\nunfavorable = ["n"]\nprompts = ["{prompt}"]\n')
    with pytest.raises(InvalidInput, match=words):
        read_prompts(str(path)).render({"age": 3}, 0)


@pytest.mark.parametrize(
    ("place", "most", "words"),
    [
        ("chat:http://h#m?template=loans", None, "--max-queries N"),
        ("chat:http://h?template=loans", 100, "does not name a model"),
        ("chat:http://h#m", 100, "needs a template"),
        ("chat:http://h#m?template=lones", 100, "did you mean 'loans'"),
        ("chat:http://h#m?template=none.toml", 100, "there is no file"),
        (
            "chat:http://h#m?template=loans&answer=maybe",
            100,
            "unknown way to read answers, 'maybe'",
        ),
        ("chat:http://h#m?template=loans&temperature=hot", 100, "must be 0 or more"),
    ],
)
def test_bad_input_is_refused(place, most, words):
    with pytest.raises(InvalidInput, match=words):
        models.load(place, favorable=1, remote=Remote(max_queries=most))


@pytest.mark.parametrize(
    ("said", "side"),
    [
        ("Yes", True),
        ("**Yes**, of course.", True),
        ("Approved.", True),
        ("I would approve this.", True),
        ("No, I would not approve it.", False),
        ("No.\n\nThe applicant cannot be approved.", False),
        ("I reject it", False),
        ("I cannot approve this loan.", None),
        ("I can't approve or deny that.", None),
        ("I won\N{RIGHT SINGLE QUOTATION MARK}t approve it", None),
        ("It was not denied", None),
        ("Yes or No?", None),
        ("As a language model I am unable to say yes.", None),
        ("", None),
    ],
)
def test_a_denied_word_is_no_answer_and_the_first_word_alone_is_one(said, side):
    assert read_prompts("loans").side(said) is side


@pytest.mark.parametrize(
    "text",
    [
        "{{ '{5}'.format(1) }}",
        "{{ 'a'.encode('nope') }}",
        "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{{ person|map('nope')|list }}",
        "{{ lipsum() }}",
        "{{ [1, 2]|random }}",
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_a_template_that_cannot_be_filled_is_named_and_nothing_is_sent(
    app, address, table, tmp_path, text
):
    path = tmp_path / "odd.toml"
    words = 'favorable = ["yes"]\nunfavorable = ["no"]\nprompts = [{}]\n'
    path.write_text(words.format(json.dumps(text)))
    with pytest.raises(InvalidInput, match=r"the template '.*odd.toml'"):
        scores(address, f"template={path}", table[COLUMNS][:1])
    assert app.requests == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('favorable = ["loan granted"]', "give single words"),
        ("system = 3", "it must be text"),
    ],
)
def test_words_that_could_never_be_found_are_refused(tmp_path, line, words):
    key = line.partition(" ")[0]
    kept = [one for one in ONE.strip().splitlines() if not one.startswith(key)]
    path = tmp_path / "mine.toml"
    path.write_text("\n".join([line, *kept]))
    with pytest.raises(InvalidInput, match=words):
        read_prompts(str(path))


def test_a_reply_of_endless_json_is_a_refusal(app, address, table, template):
    app.say = lambda score: '{"a":' * 100_000 + "1}"
    model = opened(address, f"template={template}&answer=json")
    assert model.score(table[COLUMNS][:1]).tolist() == [0.5]
    model.exchange.rest()
    assert model.exchange.tally.refused == 1
