"""Sampling contracts: how far the sample stream may differ from the sampler's own, and the contract's parameters.

    exact       the sampler's own stream
    windowed    every sample once per epoch, in an order that suits the cache
    importance  samples with higher losses are read more often; near-duplicates may replace each other
    replicate   draws with replacement, by priority

A TrainingJob says what is allowed; the program may ask for less (`narrow`), never for more.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from . import _core
from .errors import SettingsError

__all__ = ["CONTRACTS", "EpochReport", "Terms", "narrow", "terms"]

CONTRACTS = tuple(_core.CONTRACTS)
NEEDS_LOSSES = ("importance", "replicate")

Value = Union[int, float, str, bool]


@dataclasses.dataclass(frozen=True)
class Terms:
    """A contract with its parameters, in the form that the sidecar expects.

    Attributes:
        contract: one of CONTRACTS.
        parameters: numbers by their TrainingJob name ("warmupEpochs"); the sidecar chooses missing ones.
    """

    contract: str = "exact"
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def needs_losses(self) -> bool:
        """Whether the contract needs loader.report(): without losses it falls back to "exact"."""
        return self.contract in NEEDS_LOSSES


@dataclasses.dataclass
class EpochReport:
    """One rank's counts for one epoch; `requested == distinct + repeated`.

    Attributes:
        epoch: its number. contract: the one that applied; "exact" after a fallback.
        requested: number of draws. distinct, repeated: samples served for the first time, and again.
        substituted: draws that were served a sample other than the requested one.
        skipped: samples of this rank's share that the epoch did not serve.
        losses_used, losses_ignored: per-sample losses that the sampler used, and that it rejected (not finite, wrong
            length, unknown id). losses_dropped: losses not sent, because the sidecar was busy or not connected.
        node_bytes: size of served samples that were on the node, or were fetched for another job at the same time.
        origin_bytes: size of served samples that were fetched from the origin for these draws.
        alone: draws made without a sidecar, from the rank's full share; alone_bytes: size of their samples.
    """

    epoch: int = 0
    contract: str = "exact"
    requested: int = 0
    distinct: int = 0
    repeated: int = 0
    substituted: int = 0
    skipped: int = 0
    losses_used: int = 0
    losses_ignored: int = 0
    losses_dropped: int = 0
    node_bytes: int = 0
    origin_bytes: int = 0
    alone: int = 0
    alone_bytes: int = 0

    def __str__(self) -> str:
        losses = f"{self.losses_used} losses used, {self.losses_ignored} ignored, {self.losses_dropped} dropped"
        return (
            f"epoch {self.epoch} ({self.contract}): {self.requested} requested, {self.distinct} distinct, "
            f"{self.repeated} repeated, {self.substituted} substituted, {self.skipped} skipped; {losses}; "
            f"{self.node_bytes} bytes from the node, {self.origin_bytes} from the origin, {self.alone_bytes} alone"
        )


def terms(contract: str, parameters: Optional[Mapping[str, Value]] = None) -> Terms:
    """Checks a contract and its parameters.

    Args:
        contract: a name of CONTRACTS, in any case.
        parameters: by name, in snake_case or as in the TrainingJob; None values are left out.

    Raises:
        SettingsError: unknown contract, unknown parameter, or a bad value.
    """
    name = str(contract).lower()
    if name not in CONTRACTS:
        raise SettingsError(f"no contract '{contract}'; there are: {', '.join(CONTRACTS)}")
    numbers: Dict[str, float] = {}
    for key, value in (parameters or {}).items():
        own = _core.PARAMETERS[name]
        known = _camel(key)
        if known not in own:
            there_are = ", ".join(sorted(map(_snake, own))) or "none"
            raise SettingsError(f"contract '{name}' has no parameter '{key}'; there are: {there_are}")
        if value is not None:
            numbers[known] = _number(_snake(known), own[known][1], value)
    return Terms(name, numbers)


def narrow(allowed: Optional[Terms], asked: Optional[Terms]) -> Terms:
    """The program's effective terms: the terms that it asks for, if the TrainingJob allows them.

    Args:
        allowed: terms of the TrainingJob; None: it sets none, so the program decides.
        asked: terms of the program; None: use `allowed`.

    Raises:
        SettingsError: the program asks for more than the TrainingJob allows; the message lists the allowed values.
    """
    if allowed is None or asked is None:
        return asked or allowed or Terms()
    if asked.contract not in _core.CONTRACTS[allowed.contract]:
        may = " or ".join(f"'{name}'" for name in _core.CONTRACTS[allowed.contract])
        raise SettingsError(
            f"the TrainingJob allows contract '{allowed.contract}', so the program may ask for {may}, "
            f"not for '{asked.contract}'; change the contract in the TrainingJob"
        )
    if asked.contract != allowed.contract:
        return asked
    return Terms(asked.contract, {**allowed.parameters, **_narrowed(allowed, asked)})


def _narrowed(allowed: Terms, asked: Terms) -> Dict[str, float]:
    for key, value in asked.parameters.items():
        limit = allowed.parameters.get(key)
        way, _ = _core.PARAMETERS[asked.contract][key]
        if limit is None or value == limit or (way == "less" and value < limit) or (way == "more" and value > limit):
            continue
        rule = {"less": f"at most {limit:g}", "more": f"at least {limit:g}", "same": f"{limit:g}"}[way]
        raise SettingsError(f"the TrainingJob sets {key}={limit:g}; the program may ask for {rule}, not for {value:g}")
    return dict(asked.parameters)


def _number(name: str, words: Sequence[str], value: Any) -> float:
    """`value` as a number for the sidecar: a word becomes its index in `words`."""
    if words:
        if isinstance(value, str) and value.lower() in words:
            return float(words.index(value.lower()))
        raise SettingsError(f"parameter '{name}' is one of {', '.join(words)}, not {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SettingsError(f"parameter '{name}' must be a number, not {value!r}") from None


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
