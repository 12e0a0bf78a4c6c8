"""Tar shards: the client alone, and with the real stoker-sidecar, against Python's tarfile."""

import contextlib
import io
import json
import os
import pickle
import random
import re
import shutil
import tarfile
import time

import pytest
import stoker
import stoker.torch
import torch.utils.data
from conftest import stats, wait_until
from stoker import _core
from test_real_sidecar import RealSidecar

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def write_tar(path, members, format, pax_headers=None):
    """members: (name, bytes), or a TarInfo."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w", format=FORMATS[format], pax_headers=pax_headers) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            tar.addfile(info, io.BytesIO(member[1]))


def wds_samples(path):
    """The samples as webdataset.tariterators groups them, in order; members whose names begin with a dot are left out."""
    samples = []
    with tarfile.open(path, "r|*") as tar:
        for info in tar:
            found = re.match(r"^((?:.*/|)[^./][^./]*)[.]([^/]*)$", info.name) if info.isreg() else None
            if found is None or re.match(r"__[^/]*__($|/)", info.name):
                continue
            stem, extension = found.groups()
            if not samples or samples[-1]["__key__"] != stem:
                samples.append({"__key__": stem})
            samples[-1][extension.lower()] = tar.extractfile(info).read()
    return samples


def plain(sample):
    return {key: bytes(value) if isinstance(value, memoryview) else value for key, value in sample.items()}


def expected_of(folder):
    """{key in the dataset: sample} of all shards below a folder."""
    expected = {}
    for path in folder.rglob("*.tar"):
        for sample in wds_samples(path):
            expected[f"{path.relative_to(folder)}/{sample['__key__'].removeprefix('./')}"] = sample
    return expected


def random_members(rng, count):
    """Members of `count` samples and, between them, what is no member of a sample."""
    members = []
    for number in range(count):
        folder = rng.choice(["", "n01/", "./n02/", "a.b/" + "d" * rng.choice([1, 90]) + "/"])
        stem = folder + f"{number:04d}" + rng.choice(["", "ü", "x" * rng.choice([1, 60, 80])])
        for extension in rng.sample(["jpg", "JSON", "cls", "seg.png", ""], rng.randint(1, 4)):
            size = rng.choice([0, 1, 511, 512, 513, rng.randint(0, 3000), rng.randint(0, 90_000)])
            members.append((f"{stem}.{extension}", rng.randbytes(size)))
        if rng.random() < 0.3:
            other = tarfile.TarInfo(f"other{number}")
            other.type = rng.choice([tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
            other.linkname = "l" * rng.choice([1, 90]) if other.type in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            members.append(rng.choice([other, ("README", b"r"), (".hidden.jpg", b"h"), ("__meta__/1.json", b"m")]))
    return members


@pytest.fixture
def shards(tmp_path):
    folder = tmp_path / "shards"
    rng = random.Random(7)
    for at, format in enumerate(["pax", "gnu", "ustar"]):
        members = []
        for number in range(40):
            stem = f"n{number % 3}/{at}-{number:03d}"
            label = str(number % 3).encode()
            members += [(stem + ".jpg", rng.randbytes(rng.randint(1, 20_000))), (stem + ".cls", label)]
        write_tar(folder / f"train-{at}.tar", members, format)
    (folder / "train.json").write_text("{}")
    return folder


@pytest.mark.parametrize("format", FORMATS)
def test_random_shards_give_the_samples_of_tarfile(tmp_path, format):
    seed = int(os.environ.get("STOKER_TEST_SEED", time.time_ns() % 2**32))
    print(f"STOKER_TEST_SEED={seed}")
    rng = random.Random(seed)
    for shard in range(6):
        comment = {"comment": "c" * 600} if format == "pax" and rng.random() < 0.5 else None
        write_tar(tmp_path / f"sub/{shard}.tar", random_members(rng, rng.randint(1, 40)), format, comment)
    expected = expected_of(tmp_path)
    with stoker.open(f"file://{tmp_path}", format="tar") as samples:
        got = {sample.key: plain(sample) for sample in samples.fetch(range(len(samples)))}
    assert got == expected


def test_cut_shard_is_an_error_or_has_fewer_samples(tmp_path):
    rng = random.Random(5)
    write_tar(tmp_path / "a.tar", random_members(rng, 10), "gnu")
    whole = (tmp_path / "a.tar").read_bytes()
    full = set(expected_of(tmp_path))
    for _ in range(60):
        (tmp_path / "a.tar").write_bytes(whole[: rng.randrange(1, len(whole))])
        with contextlib.suppress(stoker.OriginError), stoker.open(f"file://{tmp_path}", format="tar") as samples:
            assert {samples.sources.catalog.describe(id)[0].decode() for id in range(len(samples))} <= full


def test_sample_is_a_dictionary_of_views(shards):
    with stoker.open(f"file://{shards}", format="tar") as samples:
        assert isinstance(samples, stoker.TarSamples) and len(samples) == 120
        sample = samples[0]
        assert isinstance(sample, dict) and list(sample) == ["__key__", "jpg", "cls"]
        assert sample["jpg"].obj is sample.raw and sample["jpg"].readonly
        assert sample.key == "train-0.tar/n0/0-000" and sample["__key__"] == "n0/0-000"
        assert samples.classes == ["n0", "n1", "n2"] and sample.label == int(bytes(sample["cls"]))
        assert pickle.loads(pickle.dumps(sample)) == plain(sample)
        sample["image"] = "the dictionary is the caller's"
        assert "image" not in samples[0]
        with tarfile.open(fileobj=io.BytesIO(bytes(samples.fetch_raw([0])[0]) + bytes(1024))) as raw:
            assert raw.getnames() == ["n0/0-000.jpg", "n0/0-000.cls"]
        out = bytearray(samples.sources.catalog.bytes_of([3, 1]))
        offsets = samples.gather([3, 1], out)
        assert out[: offsets[1]] == bytes(samples[3].raw)


def test_labels_need_a_folder_in_the_shard(tmp_path):
    write_tar(tmp_path / "folder/a.tar", [("1.jpg", b"1")], "ustar")
    with stoker.open(f"file://{tmp_path}", format="tar") as samples:
        assert samples.labels == [-1] and samples.classes == []


def test_torch_dataset_decodes_dictionaries(shards):
    def decode(sample):
        return len(sample["jpg"]), int(bytes(sample["cls"]))

    expected = expected_of(shards)
    with stoker.open(f"file://{shards}", format="tar") as samples:
        dataset = stoker.torch.Dataset(samples, decode=decode)
        loader = stoker.torch.DataLoader(dataset, batch_size=7, num_workers=2)
        sizes = [size for (batch, _), _ in loader for size in batch.tolist()]
        assert sizes == [len(expected[key]["jpg"]) for key in sorted(expected)]
        whole = stoker.torch.Dataset(samples)
        loader = torch.utils.data.DataLoader(whole, batch_size=7, num_workers=2, collate_fn=list)
        assert [item for batch in loader for item, _ in batch] == [expected[key] for key in sorted(expected)]
        with pytest.raises(stoker.SettingsError, match="use a DataLoader"):
            stoker.torch.TensorLoader(samples, shape=(1,))


def test_errors_name_the_shard(tmp_path, shards):
    def refuse(match, kind=stoker.OriginError):
        with pytest.raises(kind, match=match):
            stoker.open(f"file://{shards}", format="tar").close()

    (shards / "z.tar.gz").write_bytes(b"x")
    refuse("'z.tar.gz'.*compressed")
    (shards / "z.tar.gz").rename(shards / "z.tar")
    refuse("'z.tar': at byte 0: ends inside an entry")
    write_tar(shards / "z.tar", [("1.jpg", b"1"), ("2.jpg", b"2"), ("1.cls", b"1")], "gnu")
    refuse("'z.tar/1' is listed twice: the members of a sample must follow each other")
    with pytest.raises(stoker.NotFoundError, match="ends in .tar"):
        os.makedirs(tmp_path / "none")
        stoker.open(f"file://{tmp_path}/none", format="tar")
    with pytest.raises(stoker.OriginError, match="not one sample|not a tar header"):
        stoker.TarSample(_core.Sample(b"x" * 600, 0, -1, ("k", "e")))


@pytest.fixture
def run(tmp_path, origin, shards, monkeypatch):
    """Makes sidecars over the shards and stops them when the test ends."""
    entry = {"uri": f"file://{shards}", "format": "tar"}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": entry}))
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(RealSidecar(tmp_path, origin, source=entry, **settings))


def read_all(samples):
    return {sample.key: plain(sample) for sample in samples.fetch(range(len(samples)))}


def test_client_alone_lists_what_the_sidecar_lists(shards, run):
    with stoker.open(f"file://{shards}", format="tar") as alone, run().open() as samples:
        assert alone.revision == samples.revision and alone.labels == samples.labels
        assert read_all(alone) == read_all(samples) == expected_of(shards)


def test_client_goes_on_without_its_sidecar(shards, run):
    sidecar = run(grant="0", window="1Mi")
    with sidecar.open() as samples:
        samples.fetch([0])
        sidecar.stop()
        with pytest.warns(stoker.StokerWarning):
            assert read_all(samples) == expected_of(shards)
        assert samples.stats()["origin_samples"] > 0


def test_changed_shard_is_an_error(shards):
    with stoker.open(f"file://{shards}", format="tar") as samples:
        write_tar(shards / "train-0.tar", [("1.jpg", b"1")], "gnu")
        with pytest.raises(stoker.OriginError, match="'train-0.tar'.*changed since it was listed"):
            samples.fetch([0])


def test_second_epoch_makes_no_request(tmp_path, origin, programs, shards, monkeypatch):
    shutil.copytree(shards, tmp_path / "s3" / "b" / "shards")
    for name, value in {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(name, value)
    s3 = programs("stoker-fake-s3", "--root", tmp_path / "s3", "--access-key", "AKID", "--secret-key", "secret")

    def gets():
        return stats(s3.address)["get"]

    entry = {"uri": "s3://b/shards", "endpoint": s3.address, "format": "tar"}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": entry}))
    expected = expected_of(shards)
    with RealSidecar(tmp_path, origin, source=entry) as sidecar, sidecar.open() as samples:
        listing = gets()
        assert listing <= 3 * 3, "three shards of some 400 KB, in windows of 256 KiB"
        assert read_all(samples) == expected
        cold = gets() - listing
        assert cold <= 120
        wait_until("the samples on the node", lambda: all(samples.sources.reader.resident(range(120))))
        assert read_all(samples) == expected
        assert gets() == listing + cold, "epoch 2 has no GET"
        assert all(sample.source == "node" for sample in samples.fetch(range(120)))
    with stoker.open("s3://b/shards", endpoint=s3.address, format="tar") as alone:
        assert read_all(alone) == expected
