"""What a command asks of somebody at a terminal, and of nobody else."""

import numpy as np
import pandas as pd
import pytest

from limi.cli import _asking

FRAME = pd.DataFrame(
    {
        "age": np.arange(40) % 17,
        "sex": ["f", "m"] * 20,
        "approved": ["yes", "no", "no", "yes"] * 10,
    }
)


@pytest.fixture
def asked(monkeypatch):
    """Answers that somebody gives, and the questions with what was offered."""
    questions = []

    def answering(*answers):
        given = iter(answers)

        def prompt(question, default=None):
            questions.append((question, default))
            answer = next(given)
            return default if answer is None else answer

        monkeypatch.setattr("typer.prompt", prompt)
        monkeypatch.setattr(_asking, "can_ask", lambda: True)
        return questions

    return answering


def given(**more):
    return {"frame": FRAME, "target": None, "favorable": None, "schema": None} | more


def test_what_is_missing_is_asked_for_with_guesses(asked):
    questions, told, answers = asked(None, None, None), given(), []
    assert _asking.fill_in(told, (), answers) == ["sex"]
    # As options, so that a command that is shown later does not ask again.
    assert answers == ["--target", "approved", "--favorable", "yes", "--protected", "sex"]
    assert (told["target"], told["favorable"]) == ("approved", "yes")
    assert [default for _, default in questions] == ["approved", "yes", "sex"]


def test_no_label_column_is_an_answer(asked):
    asked("-", "sex; age=1-9:4")
    told = given()
    assert _asking.fill_in(told, (), []) == ["sex", "age=1-9:4"]
    assert told["target"] is None


def test_what_is_said_is_not_asked(asked):
    questions = asked()
    assert _asking.fill_in(given(), ["sex"], []) == ["sex"]
    assert questions == []


def test_a_pipe_is_asked_nothing(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr("typer.prompt", refuse)
    told = given()
    assert _asking.fill_in(told, (), []) == []
    assert told["target"] is None
