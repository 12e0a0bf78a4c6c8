"""Short aliases of numpy types, for type checkers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, Union

import numpy as np

__all__ = ["Array", "Ids"]

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]  # each use documents element type and shape
    Ids = Union[Sequence[int], Array]  # any sequence of integers; int64 is fastest
else:
    Array = Ids = Any
