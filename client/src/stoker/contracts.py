"""Sampling contracts: what a job allows its sample stream to become, and the numbers that go with it.

    exact       the sampler's own stream
    windowed    every sample once per epoch, in an order that suits the cache
    importance  samples that matter more are read more often; near-equal ones may stand for each other
    replicate   draws with replacement, by priority

A TrainingJob says what is allowed; the program may ask for less (`narrow`), never for more.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from . import _core
from .errors import SettingsError

__all__ = ["CONTRACTS", "EpochReport", "Terms", "check_nodes", "narrow", "terms"]

CONTRACTS = tuple(_core.CONTRACTS)
NEEDS_LOSSES = ("importance", "replicate")

Value = Union[int, float, str, bool]


@dataclasses.dataclass(frozen=True)
class Terms:
    """A contract with its parameters, ready for the sidecar.

    Attributes:
        contract: one of CONTRACTS.
        parameters: by their names in the TrainingJob ("warmupEpochs"), as numbers; what is left out is chosen by the
            sidecar.
    """

    contract: str = "exact"
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def needs_losses(self) -> bool:
        """Whether the contract is worth nothing without loader.report()."""
        return self.contract in NEEDS_LOSSES


@dataclasses.dataclass
class EpochReport:
    """What one rank got in one epoch; `requested == distinct + repeated`.

    Attributes:
        epoch: its number. contract: under which it was drawn; "exact" after a fallback.
        requested: draws. distinct, repeated: of the samples that were served.
        substituted: draws that got another sample than they asked for.
        skipped: samples of this rank's share that the epoch left out.
        losses_used, losses_ignored: per-sample losses that were learnt from, and those that were not (not finite,
            wrong length, unknown id). losses_dropped: not sent, because the sidecar was busy or away.
        node_bytes: size of the samples whose bytes were on the node, or were fetched for another job at the same time.
        origin_bytes: size of the samples that were fetched for these draws.
        alone: draws without a sidecar, of the rank's share in full; alone_bytes: their size.
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
        SettingsError: no such contract, or no such parameter of it, or a value that is none.
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
    """What the program gets: what it asks for, as far as the TrainingJob allows it.

    Args:
        allowed: of the TrainingJob; None: it says nothing, so the program decides.
        asked: of the program; None: whatever is allowed.

    Raises:
        SettingsError: the program asks for more than it may; the message says what may be asked.
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


def check_nodes(terms: Terms, nodes: int) -> None:
    """Refuses what would leave ranks on several nodes with different numbers of batches.

    Family iowa reads what the losses (and fingerprints) of a rank's own node leave in its bucket, so ranks on different
    nodes would end an epoch at different batches, and a collective call would wait for ever.

    Raises:
        SettingsError: the terms are such, and there is more than one node.
    """
    if nodes > 1 and terms.contract == "importance" and terms.parameters.get("family"):
        raise SettingsError(
            f"family 'iowa' works on one node: the job's ranks on {nodes} nodes would not read equally many samples, and "
            "a collective call would wait for ever; use family 'icache', or one node"
        )


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
    """`value` as it travels: a word as its place among `words`."""
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
