"""Short names for what numpy's types say at length. They mean something to type checkers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, Union

import numpy as np

__all__ = ["Array", "Ids"]

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]  # the text beside it says which numbers, and which shape
    Ids = Union[Sequence[int], Array]  # any sequence of integers; int64 is fastest
else:
    Array = Ids = Any
