"""WebDataset with its shards from stoker.wds.shards()."""

import io
import json
import tarfile

import pytest
import stoker
import stoker.wds
import torch.utils.data
import webdataset
from stoker.filesystem import StokerFileSystem
from webdataset.gopen import gopen

SHARDS, SAMPLES = 4, 150  # a shard is more than one request


def make_shards(folder):
    for shard in range(SHARDS):
        path = folder / ("en" if shard % 2 else "de") / f"{shard:04}.tar"
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
            for number in range(SAMPLES):
                stem = f"n{number % 3}/{shard}-{number:04}" + "ü" * (number % 2)
                for extension, data in ("bin", bytes([shard]) * (number * 7 % 1500)), ("cls", str(number % 3).encode()):
                    info = tarfile.TarInfo(f"{stem}.{extension}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    (folder / "README").write_text("no shard")
    return sorted(map(str, folder.rglob("*.tar")))


@pytest.fixture(params=["tar", "objects"])
def paths(request, tmp_path, monkeypatch):
    """The shards as files; dataset "train" has them in both formats."""
    found = make_shards(tmp_path / "origin")
    place = {"uri": f"file://{tmp_path}/origin", "format": request.param}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": place}))
    monkeypatch.setenv("STOKER_SOCKET", str(tmp_path / "no.sock"))
    monkeypatch.setattr("stoker.sources.PATIENCE_S", 0.0)
    monkeypatch.setattr(stoker.wds, "_files", StokerFileSystem(skip_instance_cache=True))
    return found


def keys_in_order(urls):
    return [sample["__key__"] for sample in webdataset.WebDataset(urls, shardshuffle=False)]


def samples_of(urls, workers=0):
    dataset = webdataset.WebDataset(urls, shardshuffle=100).shuffle(20)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
    places = ("__url__", "__local_path__")
    samples = [{key: value for key, value in sample.items() if key not in places} for sample in loader]
    return sorted(samples, key=lambda sample: sample["__key__"])


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_webdataset_reads_each_sample_once(paths, workers):
    samples = samples_of(stoker.wds.shards("train"), workers)
    assert len(samples) == SHARDS * SAMPLES and samples == samples_of(paths)


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_samples_of_a_tar_shard_are_sorted_by_key_and_whole_shards_are_in_the_archives_order(paths, request):
    for url, path in zip(stoker.wds.shards("train"), paths):
        stored = keys_in_order([path])
        by_key = sorted(stored, key=lambda key: key.encode())
        is_tar = request.node.callspec.params["paths"] == "tar"
        assert stored != by_key and keys_in_order([url]) == (by_key if is_tar else stored)


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_urls_with_braces_and_folders_of_a_dataset_are_read(paths):
    assert stoker.wds.shards("train/en") == [f"stoker://train/en/{shard:04}.tar" for shard in (1, 3)]
    assert samples_of("stoker://train/en/{0001..0001}.tar") == samples_of(paths[2:3])


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_what_is_no_shard_is_refused(paths):
    with pytest.raises(FileNotFoundError):
        stoker.wds.shards("other")
    with pytest.raises(FileNotFoundError):
        gopen("stoker://train/9999.tar")
    with pytest.raises(OSError, match="read-only"):
        gopen("stoker://train/new.tar", "wb")


def test_dataset_without_shards_is_refused(origin, sidecar, monkeypatch):
    sidecar.start()
    monkeypatch.setattr(stoker.wds, "_files", StokerFileSystem(skip_instance_cache=True))
    with pytest.raises(stoker.SettingsError, match="no tar shards"):
        stoker.wds.shards("train")


def test_second_epoch_is_read_from_the_node(origin, sidecar, monkeypatch):
    paths = make_shards(origin.root)
    sidecar.start()
    files = StokerFileSystem(skip_instance_cache=True)
    monkeypatch.setattr(stoker.wds, "_files", files)
    urls = stoker.wds.shards("train")
    assert samples_of(urls) == samples_of(urls) == samples_of(paths)
    counts = files.samples("train").stats()
    assert (counts["node_samples"], counts["origin_samples"]) == (2 * SHARDS, 0)
    assert len(sidecar.events("fetch")) == SHARDS
