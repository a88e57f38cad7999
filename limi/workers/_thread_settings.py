"""Settings that libraries keep for each thread, which another thread or process would not have."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

__all__ = ["ThreadSettings"]


@dataclass(frozen=True)
class ThreadSettings:
    """What a user has set in one thread, and a model may depend on."""

    sklearn: dict[str, Any] | None = None  # its configuration; None where it is not loaded
    torch_learns: bool = True  # are gradients recorded?

    @staticmethod
    def of_this_thread() -> ThreadSettings:
        """Those of the thread that asks."""
        sklearn, torch = sys.modules.get("sklearn"), sys.modules.get("torch")
        return ThreadSettings(
            None if sklearn is None else sklearn.get_config(),
            True if torch is None else torch.is_grad_enabled(),
        )

    def take_over(self) -> None:
        """Have them in the thread that asks."""
        if self.sklearn is not None:
            import sklearn

            sklearn.set_config(**self.sklearn)
        if not self.torch_learns:
            import torch

            torch.set_grad_enabled(False)
