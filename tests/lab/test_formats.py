"""Tables as text, Markdown, LaTeX and HTML: whatever a cell holds is text."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from lab import api as studies
from lab.formats import StudyTable, render
from limi.errors import InvalidInput
from limi.system.words import markdown
from tests.lab.small import small_study, tiny

ODD = StudyTable(
    "50% & more_", ("a|b", "c_d"), (("x|y*<b>", "1 & 2 \\ {3} λ^~#$"),), ("a note",), 1
)


def test_markdown_is_escaped():
    shown = render(ODD, "markdown")
    assert "| x\\|y\\*&lt;b> | 1 & 2 \\\\ {3} λ^~#$ |" in shown
    assert "**50% & more\\_**" in shown
    lines = shown.splitlines()
    assert lines[3] == "| --- | ---: |"


def test_latex_is_escaped():
    shown = render(ODD, "latex")
    assert r"\caption{50\% \& more\_}" in shown
    wanted = r"x|y*\textless{}b\textgreater{} & 1 \& 2 \textbackslash{} \{3\} $\lambda$"
    assert wanted + r"\textasciicircum{}\textasciitilde{}\#\$ \\" in shown
    assert shown.count(r"\begin{tabular}{lr}") == 1


def test_html_is_escaped():
    shown = render(ODD, "html")
    assert "<caption>50% &amp; more_</caption>" in shown
    assert '<th scope="row">x|y*&lt;b&gt;</th><td>1 &amp; 2' in shown
    ElementTree.fromstring(f"<div>{shown}</div>")


def test_latex_names_a_benchmark_once():
    (table,) = studies.tables(small_study(), tiny())
    shown = render(table, "latex")
    assert shown.count("census-sex & ") == 1
    assert shown.count(r"\midrule") == 3


def test_an_unknown_format_is_refused():
    with pytest.raises(InvalidInput, match="no format 'markdwn'; did you mean 'markdown'"):
        render(ODD, "markdwn")


NASTY = "</td><script>alert(1)</script>|`x`[l](http://e)\n# H\x1b[31m"


def test_marks_of_markdown_and_notes():
    assert markdown("a|b") == r"a\|b"
    table = StudyTable("t", ("a", "b"), (("x", "y"),), (f"failed: `x`: {NASTY}",))
    drawn = render(table, "markdown")
    assert "<script" not in drawn
    assert "\n# H" not in drawn
    assert "- failed: `x`: " in drawn
    assert np.array([line.startswith("- ") for line in drawn.splitlines()]).sum() == 1
