"""Proofs: for models made of trees, that nobody near a person flips, or somebody who does."""

from __future__ import annotations

from limi.proofs._result import Domain, Proof
from limi.proofs._run import Progress, certify
from limi.proofs.near import NearBy
from limi.proofs.people import Answer, Stage

__all__ = ["Answer", "Domain", "NearBy", "Progress", "Proof", "Stage", "certify"]
