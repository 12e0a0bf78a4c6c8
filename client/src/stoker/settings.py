"""Location and options of a dataset: from the environment that the operator injects, or from the caller's arguments.

STOKER_SOCKET    path of the sidecar's unix socket (default /stoker/run/stoker.sock)
STOKER_DATASETS  JSON object {name: {"uri", "index", "endpoint", "region", "pathStyle", "caFile", "credentialsFile",
                 "authenticate", "directory", "guest", "contract", "sampling", "format", "records"}}: for each dataset
                 its origin (used without a sidecar) and how samples are stored there, the node directory as mounted
                 here, whether another namespace owns it, and the sampling contract that the job allows, with
                 parameters
STOKER_JOB       name of the job for the sidecar; ranks with the same name share losses and fingerprints
STOKER_EPOCHS    number of epochs of the training, so that the sidecar can fetch the next epoch's first samples while
                 this one ends; unset: unknown, and nothing is fetched beyond the epoch
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import operator
import os
import sys
from collections import defaultdict
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from .contracts import Terms, terms
from .errors import SettingsError

__all__ = [
    "DEFAULT_SOCKET", "DatasetSettings", "World", "epoch_count", "initialised_world", "job_name", "resolve", "sampler_name",
    "socket_path", "world",
]

DEFAULT_SOCKET = "/stoker/run/stoker.sock"
_KEYS = {
    "uri", "index", "endpoint", "region", "pathStyle", "caFile", "credentialsFile", "authenticate", "directory", "guest",
    "contract", "sampling", "format", "records",
}
_ROW_BYTES_MAX = 2**30
_FORMATS = ("objects", "chunks", "tar", "records", "megatron", "tfrecord")
_ordinals: Dict[str, Iterator[int]] = defaultdict(itertools.count)


@dataclasses.dataclass(frozen=True)
class DatasetSettings:
    """Location and options of one dataset.

    Attributes:
        name: name under spec.datasets; None: opened by URI, so no sidecar serves it.
        uri: `s3://bucket/prefix`, `https://host/folder` or `file:///folder`; None: unknown, so there is no fallback.
        index: of a web server's folder: name of the list of its files; None: index.txt.
        authenticate: STOKER_HTTP_TOKEN, or _USERNAME and _PASSWORD, are for this dataset's web server.
        endpoint: URL of the S3 API; None: AWS's endpoint of the region.
        region: region to sign for.
        path_style: bucket in the path (`endpoint/bucket/key`), not in the host name; None: chosen by the endpoint.
        ca_file: certificates to trust instead of the system's; None: AWS_CA_BUNDLE, SSL_CERT_FILE, the system's.
        credentials_file: JSON file with keys that another program refreshes; None: the environment's keys.
        format: how the origin stores samples.
        record_bytes, record_suffix: of format "records": size of a row, and ending of the keys that have rows.
        directory: node directory as mounted in this process; None: as the sidecar reports it.
        guest: another namespace owns the node directory, so samples are copied out of it and verified at each read.
        terms: the sampling contract that the job allows; None: the job sets none.
    """

    name: Optional[str] = None
    uri: Optional[str] = None
    index: Optional[str] = None
    authenticate: bool = False
    endpoint: Optional[str] = None
    region: str = "us-east-1"
    path_style: Optional[bool] = None
    ca_file: Optional[str] = None
    credentials_file: Optional[str] = None
    format: str = "objects"
    record_bytes: int = 0
    record_suffix: str = ""
    directory: Optional[str] = None
    guest: bool = False
    terms: Optional[Terms] = None

    def describe(self) -> str:
        """Readable name of the dataset."""
        return self.name or self.uri or "dataset"


def resolve(
    name_or_uri: str,
    *,
    endpoint: Optional[str] = None,
    region: Optional[str] = None,
    path_style: Optional[bool] = None,
    directory: Optional[str] = None,
    format: Optional[str] = None,
    record_bytes: Optional[int] = None,
    record_suffix: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
) -> DatasetSettings:
    """Combines the settings of one dataset; arguments override the environment.

    Raises:
        SettingsError: STOKER_DATASETS is malformed, or an argument is wrong.
    """
    env = os.environ if env is None else env
    base = DatasetSettings(uri=name_or_uri) if "://" in name_or_uri else _from_environment(name_or_uri, env)
    endpoint = endpoint or base.endpoint or env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
    region = region or (base.region if base.region != "us-east-1" else None)
    region = region or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"
    if path_style is None:
        path_style = base.path_style
    if format is not None and format != base.format:
        base = dataclasses.replace(base, format=_known_format(format, "format"), record_bytes=0, record_suffix="")
    settings = dataclasses.replace(
        base,
        endpoint=endpoint,
        region=region,
        path_style=path_style,
        directory=directory or base.directory,
        record_bytes=base.record_bytes if record_bytes is None else record_bytes,
        record_suffix=base.record_suffix if record_suffix is None else record_suffix,
    )
    return _with_checked_rows(settings)


def _with_checked_rows(settings: DatasetSettings) -> DatasetSettings:
    where = f"dataset '{settings.describe()}'"
    size, suffix = settings.record_bytes, settings.record_suffix
    if isinstance(size, bool) or not hasattr(size, "__index__") or not isinstance(suffix, str):
        raise SettingsError(f"{where}: record_bytes must be an integer and record_suffix a text, not {size!r}, {suffix!r}")
    size = operator.index(size)
    if (settings.format == "records") != (size != 0) or (suffix and settings.format != "records"):
        raise SettingsError(
            f"{where}: format records and record_bytes belong together, and record_suffix with them; the format is "
            f"'{settings.format}'"
        )
    if size and not 1 <= size <= _ROW_BYTES_MAX:
        raise SettingsError(f"{where}: record_bytes is {size}, and must be between 1 and {_ROW_BYTES_MAX}")
    return dataclasses.replace(settings, record_bytes=size)


def dataset_names() -> List[str]:
    """The names in STOKER_DATASETS, sorted."""
    text = os.environ.get("STOKER_DATASETS", "")
    return sorted(_parse_datasets(text)) if text else []


def _from_environment(name: str, env: Mapping[str, str]) -> DatasetSettings:
    text = env.get("STOKER_DATASETS", "")
    entry = _parse_datasets(text).get(name, {}) if text else {}
    return DatasetSettings(
        name=name,
        uri=entry.get("uri"),
        index=entry.get("index"),
        authenticate=entry.get("authenticate") is True,
        endpoint=entry.get("endpoint"),
        region=entry.get("region") or "us-east-1",
        path_style=None if entry.get("pathStyle") is None else bool(entry["pathStyle"]),
        ca_file=entry.get("caFile"),
        credentials_file=entry.get("credentialsFile"),
        format=_format_of(name, entry),
        record_bytes=_records_of(name, entry, "bytes", 0),
        record_suffix=_records_of(name, entry, "suffix", ""),
        directory=entry.get("directory"),
        guest=entry.get("guest") is True,
        terms=_terms_of(name, entry),
    )


def _format_of(name: str, entry: Mapping[str, Any]) -> str:
    return _known_format(entry.get("format", "objects"), f"STOKER_DATASETS, dataset '{name}': format")


def _records_of(name: str, entry: Mapping[str, Any], key: str, default: Any) -> Any:
    records = entry.get("records", {})
    value: Any = records.get(key, default) if isinstance(records, dict) else None
    if type(value) is not type(default) or (key == "bytes" and value < 0):
        raise SettingsError(f"STOKER_DATASETS, dataset '{name}': records must be {{\"bytes\": N, \"suffix\": TEXT}}")
    return value


def _known_format(text: Any, what: str) -> str:
    if text == "blocks":
        raise SettingsError(
            f"{what} is blocks: its objects are cached in ranges. Read them with an S3 client (boto3, s3fs, pyarrow, ...) "
            "through the pod's S3 endpoint, AWS_ENDPOINT_URL"
        )
    if text not in _FORMATS:
        raise SettingsError(f"{what} must be {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}, not '{text}'")
    return str(text)


def _terms_of(name: str, entry: Mapping[str, Any]) -> Optional[Terms]:
    if entry.get("contract") is None:
        return None
    try:
        return terms(entry["contract"], entry.get("sampling"))
    except SettingsError as error:
        raise SettingsError(f"STOKER_DATASETS, dataset '{name}': {error}") from None


def _parse_datasets(text: str) -> Mapping[str, Mapping[str, Any]]:
    try:
        datasets = json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(f"STOKER_DATASETS is not JSON: {error}") from None
    if not isinstance(datasets, dict) or not all(isinstance(entry, dict) for entry in datasets.values()):
        raise SettingsError("STOKER_DATASETS must be a JSON object of objects")
    unknown = sorted({key for entry in datasets.values() for key in entry} - _KEYS)
    if unknown:
        raise SettingsError(f"STOKER_DATASETS has unknown keys: {', '.join(unknown)}")
    return datasets


def socket_path(env: Optional[Mapping[str, str]] = None) -> str:
    """Path of the sidecar's socket."""
    return (os.environ if env is None else env).get("STOKER_SOCKET") or DEFAULT_SOCKET


def job_name(env: Optional[Mapping[str, str]] = None) -> Optional[str]:
    """Name that all ranks of this job share and no other job has; None: not set."""
    env = os.environ if env is None else env
    if env.get("STOKER_JOB"):
        return env["STOKER_JOB"]
    keys = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    return "/".join(filter(None, map(env.get, keys))) or None


def sampler_name(dataset: str, stream: int) -> str:
    """Name of a dataset's next sampler: the same on all ranks, different for each loader of a process. `stream`
    replaces the job's name if there is none."""
    return f"{job_name() or f'{stream:016x}'}/{dataset}/{next(_ordinals[dataset])}"


def epoch_count(env: Optional[Mapping[str, str]] = None) -> int:
    """The training's number of epochs, as the TrainingJob sets it; 0: not set.

    Raises:
        SettingsError: STOKER_EPOCHS is not a number of epochs.
    """
    text = (os.environ if env is None else env).get("STOKER_EPOCHS") or "0"
    if not text.isdecimal():
        raise SettingsError(f"STOKER_EPOCHS must be a number of epochs, not '{text}'")
    return int(text)


class World(NamedTuple):
    """The place of this process among the job's ranks. `is_rank_known`: False where WORLD_SIZE is set and RANK is not,
    because a trainer sets RANK later; `rank` is 0 then."""

    rank: int
    size: int
    is_rank_known: bool


def initialised_world() -> Optional[World]:
    """torch.distributed's world; None where it is not initialised. Does not import torch."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return World(distributed.get_rank(), distributed.get_world_size(), True)


def world() -> World:
    """torch.distributed's world where it is initialised, else RANK and WORLD_SIZE as torchrun and the operator set them,
    else rank 0 of 1.

    Raises:
        SettingsError: not numbers, or the rank is outside the world.
    """
    initialised = initialised_world()
    if initialised is not None:
        return initialised
    try:
        rank, size = int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)
    except ValueError as error:
        raise SettingsError(f"RANK and WORLD_SIZE must be numbers: {error}") from None
    if not 0 <= rank < size:
        raise SettingsError(f"RANK={rank} is outside WORLD_SIZE={size}")
    return World(rank, size, size == 1 or bool(os.environ.get("RANK")))
