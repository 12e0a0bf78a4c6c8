"""From a sample's bytes to what a DataLoader collates."""

from __future__ import annotations

import io
from typing import Any, Callable, Tuple

import numpy as np
import torch

from ._core import Sample
from .arrays import Array
from .megatron import MegatronSamples, tokens_of
from .samples import Samples
from .tar import TarSamples

__all__ = ["decode_image", "decode_raw", "decode_tokens", "decoding"]


def decode_image(view: memoryview) -> Any:
    """Decodes an image as torchvision's ImageFolder does: a PIL image in RGB."""
    from PIL import Image

    with Image.open(io.BytesIO(view)) as image:
        return image.convert("RGB")


def decode_raw(view: memoryview) -> torch.Tensor:
    """The raw bytes: uint8 tensor of shape (size,), a writable copy."""
    return torch.frombuffer(bytearray(view), dtype=torch.uint8) if len(view) else torch.empty(0, dtype=torch.uint8)


def decode_tokens(tokens: Array) -> torch.Tensor:
    """The tokens as a tensor of shape (tokens,), a writable copy: int64 of integers, which torch embeds; else their
    own type."""
    return torch.from_numpy(tokens.astype(np.int64 if tokens.dtype.kind in "iu" else tokens.dtype))


def _keep(sample: Any) -> Any:
    return sample


def _view(sample: Sample) -> memoryview:
    return sample.view


def decoding(source: Samples) -> Tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The argument of `decode` from a sample, and the default of `decode`."""
    if isinstance(source, TarSamples):
        return _keep, _keep
    if isinstance(source, MegatronSamples):
        return tokens_of, decode_tokens
    if source.sources.settings.format in ("records", "tfrecord"):
        return _view, decode_raw
    try:
        import PIL.Image  # noqa: F401  (tests whether it is installed)
    except ImportError:
        return _view, decode_raw
    return _view, decode_image
