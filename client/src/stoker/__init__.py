"""Stoker: training samples at the speed of mapped memory.

    import stoker
    with stoker.open("train") as samples:
        batch = samples.fetch([3, 1, 2])      # list of Sample: read-only buffers with id, label, key
        batch[0].view                         # memoryview over the mapped bytes, no copy

`stoker.torch` has Dataset, Sampler and DataLoader for PyTorch, `stoker.order` epoch orders without it.
"""

import logging

from ._core import Sample, __version__
from .errors import (
    ChangedError,
    ForbiddenError,
    NotFoundError,
    OriginError,
    SettingsError,
    StokerError,
    StokerWarning,
    TooLargeError,
)
from .megatron import MegatronSamples
from .samples import Samples, open, stats
from .tar import TarSample, TarSamples

logging.getLogger("stoker").addHandler(logging.NullHandler())

__all__ = [
    "ChangedError",
    "ForbiddenError",
    "MegatronSamples",
    "NotFoundError",
    "OriginError",
    "Sample",
    "Samples",
    "SettingsError",
    "StokerError",
    "StokerWarning",
    "TarSample",
    "TarSamples",
    "TooLargeError",
    "__version__",
    "open",
    "stats",
]
