"""Short runs: all counts are reported before a process ends, for every kind of process."""

import subprocess
import sys

import pytest
from conftest import wait_until

# A job that ends long before the first report is due, and does not close its samples.
JOB = """
import sys, stoker, stoker.torch
if __name__ == "__main__":
    workers, context = int(sys.argv[1]), sys.argv[2]
    samples = stoker.open("train")
    dataset = stoker.torch.Dataset(samples, decode=bytes)
    sampler = stoker.torch.Sampler(dataset, 1, 0, seed=3)
    loader = stoker.torch.DataLoader(dataset, batch_size=16, sampler=sampler, num_workers=workers, collate_fn=list,
                                     multiprocessing_context=context or None)
    print(sum(len(batch) for batch in loader))
"""

HOWEVER_IT_READS = pytest.mark.parametrize("workers, context", [(0, ""), (2, "fork"), (2, "spawn")])


def run_job(tmp_path, workers, context):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    run = subprocess.run([sys.executable, str(script), str(workers), context], capture_output=True, text=True)
    assert (run.stdout.strip(), run.returncode) == ("200", 0), run.stderr


@HOWEVER_IT_READS
def test_run_shorter_than_a_report_is_counted_in_full(tmp_path, sidecar, workers, context):
    sidecar.start()
    run_job(tmp_path, workers, context)
    reports = sidecar.wait_for("report")
    assert sum(report["samples"] for report in reports) == 200


@HOWEVER_IT_READS
def test_every_read_is_acknowledged_before_processes_end(tmp_path, sidecar, workers, context):
    sidecar.start()
    run_job(tmp_path, workers, context)

    def told():
        return sorted(id for event in sidecar.events("consumed") for id in event["samples"])

    wait_until("all acknowledgements", lambda: len(told()) >= 200)
    assert told() == list(range(200))


def test_batch_counts_in_the_epoch_in_which_it_was_read(sidecar):
    sidecar.start()
    script = """
import stoker
samples = stoker.open("train")
samples.set_plan(0, [1, 2])
samples.fetch([1, 2])
samples.set_plan(1, [3])
samples.fetch([3])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    told = sidecar.wait_for("consumed", 2)
    assert [(event["epoch"], event["samples"]) for event in told] == [(0, [1, 2]), (1, [3])]


def test_process_without_reads_reports_nothing(sidecar):
    sidecar.start()
    run = subprocess.run([sys.executable, "-c", "import stoker; stoker.open('train')"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    sidecar.wait_for("hello")
    assert sidecar.events("report") == []


def test_exit_without_a_sidecar_prints_no_traceback(sidecar):
    sidecar.start()
    script = "import stoker, os, signal; s = stoker.open('train'); s.fetch([1]); os.kill(int(os.sys.argv[1]), 9)"
    run = subprocess.run([sys.executable, "-c", script, str(sidecar.process.pid)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr


def test_dataset_in_a_local_variable_tells_its_last_reads(sidecar):
    sidecar.start()
    script = """
import stoker
def main():
    samples = stoker.open("train")
    samples.fetch([1, 2])
main()
print(stoker.stats()["samples"])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.stdout.strip(), run.returncode, run.stderr) == ("2", 0, "")
    assert [event["samples"] for event in sidecar.wait_for("consumed")] == [[1, 2]]
    assert [event["samples"] for event in sidecar.wait_for("report")] == [2]
