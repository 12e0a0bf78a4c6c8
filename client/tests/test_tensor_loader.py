"""TensorLoader: the samples, order, state and reports of DataLoader, without workers. On the CPU, and on CUDA if it is there."""

import gc
import json
import os
import threading
import traceback

import numpy as np
import pytest
import stoker
import stoker.torch
import torch
import torch.utils.data
from conftest import SEED, Origin, wait_until
from stoker.torch_pipeline import overlapped
from test_real_sidecar import run  # noqa: F401  (a fixture)

SHAPE, DTYPE, COUNT = (3, 5), torch.int16, 50
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


class Fixed(Origin):
    """An origin whose samples have `sizes` bytes in turns."""

    def __init__(self, root, count=COUNT, sizes=(30,)):
        super().__init__(root, count=count)
        for number, key in enumerate(self.keys):
            self.payloads[key] = np.random.default_rng([SEED, number]).bytes(sizes[number % len(sizes)])
            (root / key).write_bytes(self.payloads[key])


@pytest.fixture
def origin(tmp_path):
    return Fixed(tmp_path / "origin")


def as_record(view):
    return torch.frombuffer(bytearray(view), dtype=DTYPE).view(SHAPE)


def tensor_loader(source, batch_size=8, **options):
    return stoker.torch.TensorLoader(source, batch_size, **{"shape": SHAPE, "dtype": DTYPE, **options})


def plain_loader(source, sampler_options, **options):
    dataset = stoker.torch.Dataset(source, decode=as_record)
    sampler = stoker.torch.Sampler(dataset, **sampler_options)
    return stoker.torch.DataLoader(dataset, batch_size=8, sampler=sampler, **options)


def as_lists(batches):
    return [[part.cpu().tolist() for part in batch] for batch in batches]


def loader_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("stoker-tensors")]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("replicas, rank", [(1, 0), (3, 2)])
def test_batches_equal_data_loaders(origin, device, drop_last, replicas, rank):
    world = {"num_replicas": replicas, "rank": rank, "seed": 3}
    theirs = plain_loader(origin.uri, world, drop_last=drop_last)
    ours = tensor_loader(origin.uri, device=device, shuffle=True, drop_last=drop_last, **world)
    assert len(ours) == len(theirs)
    for epoch in (0, 1, 5):
        theirs.sampler.set_epoch(epoch)
        ours.set_epoch(epoch)
        got = list(ours)
        assert {part.device.type for batch in got for part in batch} == {device}
        assert {(data.dtype, data.shape[1:], labels.dtype) for data, labels in got} == {(DTYPE, SHAPE, torch.int64)}
        assert as_lists(got) == as_lists(theirs)
    assert loader_threads() == []


@pytest.mark.parametrize("device", DEVICES)
def test_batches_keep_their_content_while_others_are_read(origin, device):
    loader = tensor_loader(origin.uri, device=device, shuffle=True, prefetch=3)
    batches = iter(loader)
    held = [next(batches) for _ in range(5)]
    before = as_lists(held)
    held[0][0].fill_(7)
    list(batches)
    assert as_lists(held)[1:] == before[1:]


@pytest.mark.parametrize("dtype, shape", [(torch.uint8, (30,)), (torch.float32, ()), (torch.bfloat16, (3, 5))])
def test_sample_bytes_become_elements_of_any_type(tmp_path, dtype, shape):
    size = torch.empty(shape, dtype=dtype).nelement() * torch.empty(0, dtype=dtype).element_size()
    origin = Fixed(tmp_path / "typed", count=9, sizes=(size,))
    got = torch.cat([data for data, _ in tensor_loader(origin.uri, 4, shape=shape, dtype=dtype)])
    assert got.shape == (9, *shape) and got.dtype == dtype
    assert got.view(-1).view(torch.uint8).numpy().tobytes() == b"".join(origin.payloads[key] for key in origin.keys)


def test_default_order_is_that_of_ids(origin):
    got = torch.cat([data for data, _ in tensor_loader(origin.uri)])
    assert got.numpy().tobytes() == b"".join(origin.payloads[key] for key in origin.keys)


def test_subset_reads_its_samples(origin):
    dataset = stoker.torch.Dataset(origin.uri)
    subset = torch.utils.data.Subset(dataset, [40, 3, 17])
    (data, labels), = tensor_loader(subset)
    assert data.numpy().tobytes() == b"".join(origin.payloads[origin.keys[id]] for id in (40, 3, 17))
    assert labels.tolist() == [dataset.targets[id] for id in (40, 3, 17)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("after", [0, 1, 4, 7])
def test_resumed_run_equals_an_uninterrupted_one(origin, device, after):
    def make():
        return tensor_loader(origin.uri, device=device, shuffle=True, seed=3)
    whole, first, second = make(), make(), make()
    whole.set_epoch(2)
    first.set_epoch(2)
    batches = iter(first)
    head = [next(batches) for _ in range(after)]
    state = first.state_dict()
    assert state["position"] == min(8 * after, COUNT)
    second.load_state_dict(state)
    assert as_lists(head) + as_lists(second) == as_lists(whole)


@pytest.mark.parametrize("device", DEVICES)
def test_transform_runs_on_the_device_in_the_loaders_thread(origin, device):
    threads = set()

    def halve(data):
        threads.add(threading.current_thread().name.split("_")[0])
        assert not torch.is_grad_enabled()
        return {"half": [data.float() / 2]}
    whole = torch.cat([data for data, _ in tensor_loader(origin.uri)])
    got = [data["half"][0] for data, _ in tensor_loader(origin.uri, device=device, transform=halve)]
    assert {data.device.type for data in got} == {device}
    assert torch.equal(torch.cat(got).cpu(), whole.float() / 2)
    assert threads == {"stoker-tensors"}


@pytest.mark.parametrize("sizes, wrong", [((30, 31), "31"), ((30, 29, 30, 30, 31), "29")])
def test_sample_of_another_size_is_an_error_that_names_it(tmp_path, sizes, wrong):
    origin = Fixed(tmp_path / "sizes", sizes=sizes)
    key = origin.keys[1]
    with pytest.raises(stoker.SettingsError, match=rf"'{key}' has {wrong} bytes; shape \(3, 5\) of torch.int16 needs 30"):
        list(tensor_loader(origin.uri, 10))
    assert loader_threads() == []


def test_error_of_the_transform_has_its_traceback(origin):
    def fail(data):
        raise KeyError("lost")
    with pytest.raises(KeyError, match="lost") as error:
        list(tensor_loader(origin.uri, transform=fail))
    assert any(frame.name == "fail" for frame in traceback.extract_tb(error.tb))
    assert loader_threads() == []


def test_read_error_is_raised_after_the_earlier_batches(origin):
    loader = tensor_loader(origin.uri)
    (origin.root / origin.keys[20]).unlink()  # in the third batch
    batches = iter(loader)
    assert [len(next(batches)[1]) for _ in range(2)] == [8, 8]
    with pytest.raises(stoker.NotFoundError, match=origin.keys[20]):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.parametrize("leave", ["close", "drop", "break"])
def test_abandoned_iterator_ends_its_thread(origin, leave):
    loader = tensor_loader(origin.uri)
    if leave == "break":
        for _ in loader:
            assert len(loader_threads()) == 1
            break
    else:
        batches = iter(loader)
        next(batches)
        assert len(loader_threads()) == 1
        if leave == "close":
            batches.close()
        else:
            del batches
    gc.collect()
    assert loader_threads() == []
    assert len(list(loader)) == 7


def test_two_iterators_at_once_do_not_disturb_each_other(origin):
    loader = tensor_loader(origin.uri)
    expected = as_lists(loader)
    pairs = list(zip(loader, tensor_loader(origin.uri)))
    assert as_lists(first for first, _ in pairs) == as_lists(second for _, second in pairs) == expected


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_at_most_the_given_number_of_requests_is_read_ahead_of_the_loop(ahead):
    started = []

    def read(request):
        started.append(request)
        return request
    for number, request in enumerate(overlapped(iter(range(20)), read, ahead)):
        assert request == number
        wait_until("the requests ahead", lambda: len(started) == min(20, number + 1 + ahead))  # noqa: B023
    assert started == list(range(20))


def test_forked_child_cannot_go_on_with_its_parents_iterator(origin):
    loader = tensor_loader(origin.uri)
    expected = as_lists(loader)
    batches = iter(loader)
    got = [next(batches)]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            next(batches)
        except RuntimeError as error:
            status = 0 if "forked child" in str(error) and as_lists(loader) == expected else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert as_lists(got + list(batches)) == expected


def test_steps_waits_and_reads_are_reported(origin, sidecar):
    sidecar.start(preload=0.5)
    with stoker.open("train") as samples:
        loader = tensor_loader(samples, shuffle=True)
        loader.set_epoch(4)
        order = loader.sampler.order().tolist()
        assert len(list(loader)) == 7
        assert loader.stats()["samples"] == COUNT and loader.stats()["origin_samples"] == 0
    (plan,) = sidecar.events("plan")
    assert (plan["epoch"], plan["samples"]) == (4, order)
    assert sorted(sidecar.wait_consumed(COUNT)) == list(range(COUNT))
    assert {event["epoch"] for event in sidecar.events("consumed")} == {4}
    reports = sidecar.wait_for("report")
    assert sum(report["steps"] for report in reports) == 7
    assert sum(report["samples"] for report in reports) == COUNT
    assert all(sum(report[key] for report in reports) > 0 for key in ("wait_ns", "compute_ns"))


def test_a_loader_with_a_contract_yields_the_drawn_ids_and_takes_losses(origin, run):  # noqa: F811
    with run().open() as samples:
        loader = tensor_loader(samples, contract="importance", seed=SEED, beta=0.5)
        served = []
        for data, labels, ids in loader:
            assert data.numpy().tobytes() == b"".join(origin.payloads[origin.keys[id]] for id in ids)
            assert labels.tolist() == [samples.labels[id] for id in ids]
            loader.report(ids, torch.ones(len(ids)))
            served += ids.tolist()
        assert sorted(served) == list(range(COUNT))
        report = loader.epoch_report()
        assert report.losses_used + report.losses_dropped == COUNT
        loader.set_epoch(7)
        next(iter(loader))
        assert loader.epoch_report().epoch == 7


def test_draws_have_a_connection_that_a_fetch_does_not_block(origin, sidecar, tmp_path):
    gate = tmp_path / "gate"
    sidecar.start(stall={"ids": [7], "until": str(gate)})
    with stoker.open("train") as samples:
        tensor_loader(samples, contract="windowed")
        reader = threading.Thread(target=samples.fetch, args=([7],))
        reader.start()
        sidecar.wait_for("fetch")
        assert samples.sources.link.consumed(0, [1]) is True
        gate.touch()
        reader.join()


def test_dead_sidecar_changes_no_sample(origin, sidecar):
    sidecar.start(die_in_fetch=2)
    with stoker.open("train") as samples, pytest.warns(stoker.StokerWarning):
        got = torch.cat([data for data, _ in tensor_loader(samples)])
    assert got.numpy().tobytes() == b"".join(origin.payloads[key] for key in origin.keys)


@pytest.mark.parametrize("options, text", [
    ({"shape": (3, 0)}, "no elements"), ({"prefetch": 0}, "prefetch >= 1"), ({"batch_size": 0}, "batch_size"),
    ({"num_workers": 2}, "num_workers"), ({"beta": 0.5}, "beta"), ({"device": "meta"}, "meta"),
    ({"contract": "windowed", "shuffle": True}, "replaces shuffle"),
    ({"contract": "windowed", "num_workers": 2}, "num_workers"), ({"sampler": range(3), "shuffle": True}, "either sampler"),
])
def test_wrong_argument_is_an_error_that_names_it(origin, options, text):
    with pytest.raises(stoker.SettingsError, match=text):
        tensor_loader(origin.uri, **options)


@pytest.mark.parametrize("options", [{"transform": as_record}, {"target_transform": str}, {"decode": as_record}])
def test_dataset_with_its_own_decoding_is_refused(origin, options):
    with pytest.raises(stoker.SettingsError, match="transform"):
        tensor_loader(stoker.torch.Dataset(origin.uri, **options))


def test_report_keeps_the_steps_that_another_thread_counts_meanwhile():
    from stoker.meter import Meter
    meter = Meter(None)
    meter.note_step(5, 7, 1)
    totals = meter.totals(None, 0)
    sent = meter.report(0, totals)
    meter.note_step(100, 200, 1)
    meter.told(totals, sent)
    left = meter.report(0, totals)
    assert (left.steps, left.wait_ns, left.compute_ns) == (1, 100, 200)
