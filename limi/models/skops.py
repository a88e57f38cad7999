"""Fitted scikit-learn models in files that hold no code, as `skops:FILE.skops`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from limi.errors import InvalidInput, missing
from limi.models._base import Decision, Model
from limi.models._files import content_of, existing, unreadable
from limi.models._offers import ModelOffers
from limi.models._trees import check_estimator, forget_caches
from limi.system.imports import import_library

__all__ = ["load", "open_estimator"]

OFFERS = ModelOffers(data_only=True, endings=(".skops",), library="skops.io")

# Beside the classes of scikit-learn: our own, which holds lists and asks the model inside it. The
# rest of numpy and scipy is not trusted as a whole: scipy.stats distributions run text of their own
# state as code, and numpy's DataSource deletes the folder that its state names.
_TRUSTED = {
    "limi.AveragedClassifier",
    "numpy.dtype",
    "numpy.mean",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._mutual_info.mutual_info_classif",
    "sklearn.metrics._classification.balanced_accuracy_score",
}

# Parts of scikit-learn that no fitted model consists of; callbacks open sockets.
_NOT_MODELS = {"callback", "conftest", "datasets", "externals", "tests"}


def load(place: str, decision: Decision, trust: Sequence[str] = ()) -> Model:
    """The model that a skops file holds; InvalidInput where it needs types nobody vouched for."""
    from limi.models import adapt

    return adapt(open_estimator(place, trust), decision)


def open_estimator(place: str, trust: Sequence[str] = ()) -> Any:
    """The estimator itself, as it was fitted."""
    path = existing(place, "skops", OFFERS.endings)
    try:
        sio: Any = import_library("skops.io")
    except ImportError:
        raise missing("skops", "skops", "reading a .skops model") from None
    # One reading for the check and the load, so that the file cannot change in between.
    content = content_of(path)
    try:
        asked = sio.get_untrusted_types(data=content)
    except Exception as error:
        raise unreadable(place, "a skops file", error) from error
    foreign = [name for name in asked if name not in trust and not _is_own(name)]
    if foreign:
        named = " ".join(f"--trust {name}" for name in foreign)
        raise InvalidInput(
            f"{place!r} holds types that are not scikit-learn's own: {', '.join(foreign)}; if you "
            f"trust their code, name them: {named} (trust=[...] in Python)"
        )
    try:
        target = forget_caches(sio.loads(content, trusted=asked))
        check_estimator(target)
    except Exception as error:
        raise unreadable(place, "a skops file", error) from error
    return target


def _is_own(name: str) -> bool:
    """Whether a name is a class that scikit-learn itself defines, such as its trees."""
    module_name, _, class_name = name.rpartition(".")
    parts = module_name.split(".")
    if parts[0] != "sklearn" or _NOT_MODELS & set(parts):
        return name in _TRUSTED
    try:
        found = getattr(importlib.import_module(module_name), class_name, None)
    except ImportError:
        return False
    # A class of another package that scikit-learn merely imports is not its own.
    own = isinstance(found, type) and found.__module__.partition(".")[0] == "sklearn"
    return own or name in _TRUSTED
