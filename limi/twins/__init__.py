"""Twins: the same people as somebody of another group, for models that never see the group."""

from __future__ import annotations

from limi.twins.answers import Carrier, Direction, Group, Kept, TwinExample, Twins
from limi.twins.effort import Effort, directions, least_questions
from limi.twins.groups import Groups, find_groups
from limi.twins.maker import TwinMaker, check_keep, learn, require_generator
from limi.twins.measure import measure

__all__ = [
    "Carrier",
    "Direction",
    "Effort",
    "Group",
    "Groups",
    "Kept",
    "TwinExample",
    "TwinMaker",
    "Twins",
    "check_keep",
    "directions",
    "find_groups",
    "learn",
    "least_questions",
    "measure",
    "require_generator",
]
