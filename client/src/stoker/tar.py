"""The samples of tar shards (WebDataset) as dictionaries of their members."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from . import _core
from ._core import Sample
from .arrays import Ids
from .errors import OriginError
from .samples import Samples

__all__ = ["TarSample", "TarSamples"]


class TarSample(Dict[str, Any]):
    """One sample of a tar shard, as WebDataset has it: `{"__key__": "n01/0001", "jpg": ..., "cls": ...}`.

    The value of an extension (in lower case) is a read-only memoryview of the member's bytes, in place; they stay valid
    for as long as the view is held. The dictionary belongs to the caller. Pickles as a plain dictionary of bytes.

    Attributes:
        raw: the Sample whose bytes are the members with their tar headers.

    Raises:
        OriginError: the bytes are not a sample of a tar shard.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: Sample) -> None:
        try:
            stem, members = _core.parse_tar_sample(raw)
        except _core.CoreError as error:
            raise OriginError(f"'{raw.key}': {error.args[-1]}", raw.key) from None
        super().__init__(__key__=stem)
        view = raw.view
        for extension, begin, end in members:
            self[extension] = view[begin:end]
        self.raw = raw

    @property
    def id(self) -> int:
        """Dense id of the sample in its dataset revision."""
        return self.raw.id

    @property
    def label(self) -> int:
        """Index of its folder in the shard into Samples.classes; -1: it is in no folder."""
        return self.raw.label

    @property
    def key(self) -> str:
        """Key in the dataset: the shard's, "/", the stem."""
        return self.raw.key

    @property
    def source(self) -> str:
        """'node' or 'origin'."""
        return self.raw.source

    def __reduce__(self) -> Tuple[Any, ...]:
        return dict, ({key: bytes(value) if isinstance(value, memoryview) else value for key, value in self.items()},)


class TarSamples(Samples):
    """Samples of a dataset in tar shards: `samples[id]` and `samples.fetch(ids)` give `TarSample` dictionaries.
    fetch_raw() and gather() give the bytes of whole samples, tar headers included."""

    def __getitem__(self, id: int) -> TarSample:  # type: ignore[override]
        return TarSample(super().__getitem__(id))

    def fetch(self, ids: Ids) -> List[TarSample]:  # type: ignore[override]
        """The samples of a batch as dictionaries; raises as Samples.fetch()."""
        return [TarSample(raw) for raw in self.fetch_raw(ids)]
