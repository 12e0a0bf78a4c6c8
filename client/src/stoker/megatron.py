"""The sequences of Megatron's indexed datasets (.bin and .idx) as arrays of tokens."""

from __future__ import annotations

from typing import List

import numpy as np

from ._core import Sample
from .arrays import Array, Ids
from .samples import Samples

__all__ = ["MegatronSamples", "tokens_of"]


def tokens_of(sample: Sample) -> Array:
    """The tokens of a sample in place, read-only: shape (tokens,), of the type that its .idx names."""
    tokens: Array = np.frombuffer(sample.view, dtype=sample.key.rpartition(".")[2])
    return tokens


class MegatronSamples(Samples):
    """Samples of a dataset of format Megatron: sample `i` has the bytes of `IndexedDataset[i]`."""

    def tokens(self, id: int) -> Array:
        """The tokens of one sequence; raises as Samples.fetch()."""
        return tokens_of(self[id])

    def fetch_tokens(self, ids: Ids) -> List[Array]:
        """The tokens of a batch of sequences, in the order of `ids`; raises as Samples.fetch()."""
        return [tokens_of(sample) for sample in self.fetch(ids)]
