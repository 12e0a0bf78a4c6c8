"""Rows of one size, Megatron's .bin and .idx, and TFRecords: the client alone, and with the real stoker-sidecar, against readers
that are written from the formats' own descriptions."""

import contextlib
import json
import random
import re
import shutil
import struct

import numpy as np
import pytest
import stoker
import stoker.torch
import torch
from conftest import SEED, stats, wait_until
from nodefiles import crc32c
from stoker import _core
from test_real_sidecar import RealSidecar

# --- rows ------------------------------------------------------------------------------------------------------------

ROW = 3073


def write_rows(folder, prng):
    expected = {}
    for name, count in (("data_batch_1", 70), ("data_batch_2", 50), ("sub/test", 1), ("empty", 0)):
        rows = [prng.randbytes(ROW) for _ in range(count)]
        (folder / f"{name}.bin").parent.mkdir(exist_ok=True, parents=True)
        (folder / f"{name}.bin").write_bytes(b"".join(rows))
        expected.update({f"{name}.bin/{row:09}": data for row, data in enumerate(rows)})
    (folder / "readme.html").write_text("<html>")
    return expected


# --- Megatron: megatron/core/datasets/indexed_dataset.py, without torch ----------------------------------------------

TENSORS = {np.float64: torch.float64, np.float32: torch.float32}
DTYPES = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.float64, 7: np.float32, 8: np.uint16}


def write_pair(prefix, documents, code, with_modes=False):
    """documents: lists of sequences, which are lists of tokens."""
    dtype = DTYPES[code]
    sequences = [np.array(sequence, dtype) for document in documents for sequence in document]
    lengths = np.array([len(sequence) for sequence in sequences], np.int32)
    pointers = np.cumsum(lengths.astype(np.int64) * dtype().itemsize) - lengths.astype(np.int64) * dtype().itemsize
    ends = np.cumsum([0] + [len(document) for document in documents]).astype(np.int64)
    prefix.parent.mkdir(exist_ok=True, parents=True)
    with open(f"{prefix}.bin", "wb") as file:
        file.write(b"".join(sequence.tobytes() for sequence in sequences))
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(ends)))
        file.write(lengths.tobytes() + pointers.tobytes() + ends.tobytes())
        file.write(bytes(len(lengths)) if with_modes else b"")


class IndexedDataset:
    """What Megatron's IndexedDataset gives for an index: the tokens of a sequence."""

    def __init__(self, prefix):
        with open(f"{prefix}.idx", "rb") as file:
            assert file.read(9) == b"MMIDIDX\x00\x00" and struct.unpack("<Q", file.read(8)) == (1,)
            self.dtype = DTYPES[file.read(1)[0]]
            count, documents = struct.unpack("<QQ", file.read(16))
            offset = file.tell()
        index = np.memmap(f"{prefix}.idx", mode="r", order="C")
        self.lengths = np.frombuffer(index, dtype=np.int32, count=count, offset=offset)
        self.pointers = np.frombuffer(index, dtype=np.int64, count=count, offset=offset + self.lengths.nbytes)
        ends = np.frombuffer(index, dtype=np.int64, count=documents,
                             offset=offset + self.lengths.nbytes + self.pointers.nbytes)
        assert ends[-1] == count
        self.bin = np.memmap(f"{prefix}.bin", mode="r", order="C")

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, at):
        return np.frombuffer(self.bin, dtype=self.dtype, count=self.lengths[at], offset=self.pointers[at])


def write_megatron(folder, prng):
    def documents(count, most):
        return [[[prng.randrange(50_000) for _ in range(prng.randrange(most))] for _ in range(prng.choice([1, 1, 2]))]
                for _ in range(count)]

    write_pair(folder / "c4_text_document", documents(80, 900), 8)
    write_pair(folder / "sub/wiki", documents(20, 300), 4, with_modes=True)
    (folder / "vocab.json").write_text("{}")
    expected = {}
    for prefix, dtype in (("c4_text_document", "uint16"), ("sub/wiki", "int32")):
        whole = IndexedDataset(folder / prefix)
        expected.update({f"{prefix}.bin/{at:09}.{dtype}": whole[at].tobytes() for at in range(len(whole))})
    return expected


# --- TFRecord: tensorflow/core/lib/io/record_writer.h ----------------------------------------------------------------

def masked_crc(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length) + data + masked_crc(data)


def write_tfrecord(folder, prng):
    expected = {}
    folder.mkdir(exist_ok=True)
    for name, count, most in (("train.tfrecord-00000-of-00002", 60, 3_000), ("train.tfrecord-00001-of-00002", 40, 9_000),
                              ("large.tfrecords", 12, 130_000)):
        payloads = [prng.randbytes(prng.randrange(most)) for _ in range(count)] + [b""]
        (folder / name).write_bytes(b"".join(map(record, payloads)))
        expected.update({f"{name}/{at:09}": data for at, data in enumerate(payloads)})
    (folder / "features.json").write_text("{}")
    return expected


FORMATS = {
    "records": (write_rows, {"records": {"bytes": ROW, "suffix": ".bin"}}),
    "megatron": (write_megatron, {}),
    "tfrecord": (write_tfrecord, {}),
}


class Data:
    def __init__(self, format, folder):
        write, self.settings = FORMATS[format]
        self.format, self.folder = format, folder
        self.expected = write(folder, random.Random(SEED))

    def entry(self, **other):
        return {"uri": f"file://{self.folder}", "format": self.format, **self.settings, **other}


@pytest.fixture(params=FORMATS)
def data(request, tmp_path, monkeypatch):
    data = Data(request.param, tmp_path / "data")
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": data.entry()}))
    monkeypatch.setenv("STOKER_SOCKET", str(tmp_path / "none"))
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)
    return data


@pytest.fixture
def run(tmp_path, origin, data):
    """Makes sidecars over the data and stops them when the test ends."""
    with contextlib.ExitStack() as stack:
        yield lambda source=None, **settings: stack.enter_context(
            RealSidecar(tmp_path, origin, source=source or data.entry(), **settings))


def read_all(samples):
    return {sample.key: bytes(sample) for sample in samples.fetch(range(len(samples)))}


def test_client_and_sidecar_find_every_sample(data, run):
    records = data.settings.get("records", {})
    with stoker.open(data.entry()["uri"], format=data.format, record_bytes=records.get("bytes"),
                     record_suffix=records.get("suffix")) as alone, run().open() as samples:
        assert alone.revision == samples.revision and samples.classes == [] and set(samples.labels) == {-1}
        assert read_all(alone) == read_all(samples) == data.expected
        in_order = [data.expected[key] for key in sorted(data.expected)]
        assert [bytes(samples[at]) for at in range(len(samples))] == in_order


def test_client_goes_on_without_its_sidecar(data, run):
    sidecar = run(grant="0", window="1Mi")
    with sidecar.open() as samples:
        samples.fetch([0])
        sidecar.stop()
        with pytest.warns(stoker.StokerWarning):
            assert read_all(samples) == data.expected


@pytest.fixture
def gets(data, tmp_path, programs, monkeypatch):
    """Serves the data as s3://b/set, in data.s3; gives the number of GET requests."""
    shutil.copytree(data.folder, tmp_path / "s3" / "b" / "set")
    for name, value in {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(name, value)
    s3 = programs("stoker-fake-s3", "--root", tmp_path / "s3", "--access-key", "AKID", "--secret-key", "secret")

    data.s3 = data.entry(uri="s3://b/set", endpoint=s3.address)
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": data.s3}))
    return lambda: stats(s3.address)["get"]


def test_samples_that_are_asked_in_order_share_requests(data, run, gets):
    with run(data.s3).open() as samples:
        samples.fetch([0])  # from the first answer the origin knows what a gap may cost
        before = gets()
        samples.fetch(range(1, len(samples)))
        requests = gets() - before
        print(f"{data.format}: {requests} GETs of {len(samples)} samples")
        assert 0 < requests < 0.8 * len(samples)


def test_epochs_read_each_sample_once_and_the_second_makes_no_request(data, run, gets):
    with run(data.s3).open() as samples:
        listing = gets()
        assert listing <= {"records": 0, "megatron": 2, "tfrecord": 2 * 2 + 13}[data.format]
        dataset = stoker.torch.Dataset(samples, decode=bytes)
        sampler = stoker.torch.Sampler(dataset, 1, 0, seed=3)
        loader = stoker.torch.DataLoader(dataset, batch_size=16, sampler=sampler, collate_fn=list)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            before = gets()
            got = [payload for batch in loader for payload, _ in batch]
            assert sorted(got) == sorted(data.expected.values())
            print(f"{data.format}: listing {listing} GETs, epoch {epoch} {gets() - before} of {len(samples)} samples")
            assert gets() - before <= (len(samples) if epoch == 0 else 0)
            wait_until("the samples on the node", lambda: all(samples.sources.reader.resident(range(len(samples)))))
        assert {sample.source for sample in samples.fetch(range(len(samples)))} == {"node"}


# --- what is special to a format -------------------------------------------------------------------------------------


def refuse(folder, format, match, kind=stoker.OriginError, **options):
    with pytest.raises(kind, match=match):
        stoker.open(f"file://{folder}", format=format, **options).close()


def test_a_rest_of_a_row_names_the_object(tmp_path):
    write_rows(tmp_path, random.Random(SEED))
    refuse(tmp_path, "records", "'readme.html' has 6 bytes.*records.suffix", record_bytes=ROW)
    refuse(tmp_path, "records", "'data_batch_..bin' has .* bytes, which are .9 rows of 3074", record_bytes=ROW + 1,
           record_suffix=".bin")
    refuse(tmp_path, "records", "records.suffix", stoker.NotFoundError, record_bytes=ROW, record_suffix=".npy")
    refuse(tmp_path, "records", "belong together", stoker.SettingsError)
    for format in ("tar", "objects"):
        refuse(tmp_path, format, "belong together", stoker.SettingsError, record_bytes=-5)
        refuse(tmp_path, format, "belong together", stoker.SettingsError, record_suffix=".bin")
    for size in (-5, 2**30 + 1, 2**40):
        refuse(tmp_path, "records", "between 1 and 1073741824", stoker.SettingsError, record_bytes=size)
    for size in (3.5, True, "10"):
        refuse(tmp_path, "records", "must be an integer", stoker.SettingsError, record_bytes=size)
    refuse(tmp_path, "records", "a text", stoker.SettingsError, record_bytes=1, record_suffix=b".bin")


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_another_format_drops_the_rows_of_the_environment(tmp_path, monkeypatch):
    write_rows(tmp_path, random.Random(SEED))
    entry = {"uri": f"file://{tmp_path}", "format": "records", "records": {"bytes": ROW, "suffix": ".bin"}}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": entry}))
    monkeypatch.setenv("STOKER_SOCKET", str(tmp_path / "none"))
    with stoker.open("train", format="objects") as samples:
        assert samples[0].key == "data_batch_1.bin"
    with stoker.open("train", format="records") as samples:
        assert len(samples[0].view) == ROW


def test_shards_without_samples_are_counted(tmp_path):
    for name in ("a.tfrecord", "b.tfrecord"):
        (tmp_path / name).touch()
    refuse(tmp_path, "tfrecord", "its 2 shards have no samples")


def test_the_index_of_a_shard_lives_as_long_as_it_is_read(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(record(b"one"))
    listing = [(b"a.tfrecord", len(record(b"one")), "e")]
    shard, = _core.find_shards(_core.ShardFormat("tfrecord"), listing)
    for _ in range(2):
        assert shard.next() == (0, len(record(b"one")))
        shard.take(record(b"one"))
        assert shard.next() is None and len(shard.take_samples()) == 1 and shard.take_samples() == []


def test_rows_fill_a_tensor(tmp_path):
    expected = write_rows(tmp_path, random.Random(SEED))
    with stoker.open(f"file://{tmp_path}", format="records", record_bytes=ROW, record_suffix=".bin") as samples:
        rows = np.empty((len(samples), ROW), np.uint8)
        samples.gather(range(len(samples)), rows)
        assert [row.tobytes() for row in rows] == [expected[key] for key in sorted(expected)]
        loader = stoker.torch.DataLoader(stoker.torch.Dataset(samples), batch_size=7)
        loaded = [row.numpy().tobytes() for batch, _ in loader for row in batch]
        assert loaded == [expected[key] for key in sorted(expected)]


@pytest.mark.parametrize("code", DTYPES)
def test_tokens_are_those_of_indexed_dataset(tmp_path, code):
    prng = random.Random(SEED + code)
    documents = [[[prng.randrange(100) for _ in range(prng.randrange(50))]] for _ in range(30)]
    write_pair(tmp_path / "x", [*documents, [[1]], [[]]], code)
    whole = IndexedDataset(tmp_path / "x")
    with stoker.open(f"file://{tmp_path}", format="megatron") as samples:
        assert isinstance(samples, stoker.MegatronSamples) and len(samples) == len(whole)
        for at, tokens in enumerate(samples.fetch_tokens(range(len(samples)))):
            np.testing.assert_array_equal(tokens, whole[at])
            assert tokens.dtype == whole[at].dtype and not tokens.flags.writeable
            np.testing.assert_array_equal(samples.tokens(at), whole[at])
        items = [tokens for tokens, _ in map(stoker.torch.Dataset(samples).__getitem__, range(len(samples)))]
        assert [tokens.tolist() for tokens in items] == [whole[at].tolist() for at in range(len(whole))]
        assert {tokens.dtype for tokens in items} == {TENSORS.get(DTYPES[code], torch.int64)}
        with pytest.raises(stoker.SettingsError, match="use a DataLoader"):
            stoker.torch.TensorLoader(samples, shape=(1,))


@pytest.mark.filterwarnings("error")
def test_sequences_of_one_length_are_batches_of_embeddable_tokens(tmp_path):
    write_pair(tmp_path / "x", [[[1, 2, 65535]], [[4, 5, 6]], [[7, 8, 9]]], 8)
    with stoker.open(f"file://{tmp_path}", format="megatron") as samples:
        batches = [batch for batch, _ in stoker.torch.DataLoader(stoker.torch.Dataset(samples), batch_size=2)]
        assert [batch.tolist() for batch in batches] == [[[1, 2, 65535], [4, 5, 6]], [[7, 8, 9]]]
        assert torch.nn.Embedding(65536, 2)(batches[0]).shape == (2, 3, 2)
        batches[0] += 1
        assert samples.tokens(0).tolist() == [1, 2, 65535]


def test_half_a_pair_and_a_damaged_index_are_errors(tmp_path):
    write_pair(tmp_path / "x", [[[1, 2, 3]]], 8)
    (tmp_path / "y.bin").write_bytes(b"x")
    refuse(tmp_path, "megatron", "'y.bin' has no 'y.idx' beside it")
    (tmp_path / "y.bin").unlink()
    index = (tmp_path / "x.idx").read_bytes()
    (tmp_path / "x.idx").write_bytes(index[:-1])
    refuse(tmp_path, "megatron", "'x.idx': has 61 bytes, which do not fit to its 1 sequences and 2 documents")
    (tmp_path / "x.idx").write_bytes(index)
    (tmp_path / "x.bin").write_bytes(b"12345")
    refuse(tmp_path, "megatron", "'x.idx': sequence 0 has 6 bytes from byte 0 of 'x.bin', which has 5 bytes")


def test_damaged_records_are_named_with_their_offset(tmp_path):
    path = tmp_path / "a.tfrecord"
    good = record(b"one") + record(b"two")
    path.write_bytes(good[:13] + b"X" + good[14:])
    with stoker.open(f"file://{tmp_path}", format="tfrecord") as samples:
        with pytest.raises(stoker.OriginError, match=re.escape("'a.tfrecord/000000000'") + ".*byte 12"):
            samples.fetch([0])
        assert bytes(samples[1]) == b"two"
    path.write_bytes(good[:19] + b"X" + good[20:])
    refuse(tmp_path, "tfrecord", "'a.tfrecord': at byte 19: the length of a record does not match its CRC")
    path.write_bytes(good[:-1])
    refuse(tmp_path, "tfrecord", "'a.tfrecord': at byte 19: ends inside a record")
    path.rename(tmp_path / "a.tfrecord.gz")
    refuse(tmp_path, "tfrecord", "'a.tfrecord.gz' is compressed")


def test_wrong_records_in_the_environment_are_refused(monkeypatch):
    for records in ({"bytes": "10"}, [], {"bytes": -1}):
        entry = {"uri": "s3://b/x", "format": "records", "records": records}
        monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": entry}))
        with pytest.raises(stoker.SettingsError, match="records"):
            stoker.open("train")
