"""The experiment's constants (jobs, data, pool), and the results expected by arithmetic.

Rates are payload bytes/s. All samples have the same size, so samples/s = rate / size.
"""

import dataclasses
import math

from harness import jobs, origin

MIB = 1 << 20
SAMPLE_BYTES = 128 * 1024
SAMPLES = 3072  # the job io-bound reads them in 8 s
DATASET_BYTES = SAMPLE_BYTES * SAMPLES
LINK = 16_000_000  # bytes/s of the paced origin, for all jobs together
POOL = "three-jobs"
POOL_BYTES = 360 * MIB
GRACE_SECONDS = 30
WINDOW_BYTES = 32 * MIB  # the default, 256 MiB, would hold most of these small datasets
EPOCHS = 1000  # effectively endless; a known number of epochs makes the sidecar read ahead into the next epoch
BORROWER, LENDER = "team-a", "team-b"
NOMINAL = {BORROWER: 240 * MIB, LENDER: 120 * MIB}


@dataclasses.dataclass(frozen=True)
class Job:
    """A job with `batch` samples per step. A step's compute time is such that it would read `ingest` bytes/s."""
    name: str
    namespace: str
    ingest: float
    batch: int
    contract: str = "Exact"

    @property
    def step_ms(self):
        return 1000 * self.batch * SAMPLE_BYTES / self.ingest

    @property
    def bucket(self):
        return f"three-jobs-{self.name}"

    def missed(self, share, policy="Auto"):
        """Miss ratio of the job's requests when this share of its dataset is cached."""
        if share >= 1:
            return 0.0
        if policy == "LRU":  # each sample once per epoch, shuffled
            return 1 - (share + (1 - share) * math.log(1 - share))
        return (1 - share) ** (2 if self.contract == "Importance" else 1)


IO_BOUND = Job("io-bound", BORROWER, 48e6, 64)
HALF = Job("half", BORROWER, 12e6, 32, "Importance")
COMPUTE_BOUND = Job("compute-bound", LENDER, 1.5e6, 16)
LATE = Job("late", LENDER, 24e6, 64)
THREE = (IO_BOUND, HALF, COMPUTE_BOUND)
# With beta 1 an epoch reads half of the samples, chosen by loss. Without substitution every miss is fetched. No epoch
# after the first reads all samples.
IMPORTANCE = {"family": "ICache", "beta": 1, "warmupEpochs": 1, "reuseFactor": 10000, "hShare": 1}


# --- objects ----------------------------------------------------------------------------------------------------------


def pool(allocation="Throughput"):
    return jobs.pool(str(POOL_BYTES), POOL, allocation=allocation, originBandwidth=str(LINK))


def quota(namespace):
    limits = ({"borrowingLimit": str(POOL_BYTES), "lendingLimit": "0"} if namespace == BORROWER
              else {"borrowingLimit": "0", "lendingLimit": str(NOMINAL[LENDER])})
    return jobs.quota(NOMINAL[namespace], pool_name=POOL, reclaim={"gracePeriodSeconds": GRACE_SECONDS}, **limits)


def dataset(job):
    return jobs.dataset(job.name, f"s3://{job.bucket}", origin.PACED)


def training_job(job, node, policy="Auto"):
    """The TrainingJob; it trains until it is deleted."""
    args = ["--batch-size", job.batch, "--step-ms", round(job.step_ms, 3)]
    made = jobs.training_job(job.name, args, dataset_name=job.name, on=node, script="trainer.py",
                             cache={"poolRef": {"name": POOL}, "evictionPolicy": policy})
    made["spec"]["trainer"]["epochs"] = EPOCHS
    data = made["spec"]["datasets"][0]
    data["contract"] = job.contract
    if job.contract == "Importance":
        data["importance"] = IMPORTANCE
    return made


# --- arithmetic -------------------------------------------------------------------------------------------------------


def level(needs, budget):
    """Max-min fair shares: equal, but none above its demand."""
    shares, left = {}, budget
    for count, name in zip(range(len(needs), 0, -1), sorted(needs, key=needs.get)):
        shares[name] = min(needs[name], left / count)
        left -= shares[name]
    return shares


def rates(cached, policy="Auto", running=THREE):
    """Samples/s of each job when these bytes are cached ({name: bytes}) and the link is shared fairly."""
    missed = {job.name: job.missed(cached[job.name] / DATASET_BYTES, policy) for job in running}
    shares = level({job.name: job.ingest * missed[job.name] for job in running}, LINK)
    return {job.name: min(job.ingest, shares[job.name] / max(missed[job.name], 1e-9)) / SAMPLE_BYTES
            for job in running}


def best_split(step=4 * MIB):
    """{job: bytes} with the most samples/s in total, found by trying every division in steps."""
    steps = POOL_BYTES // step
    most = min(steps, math.ceil(DATASET_BYTES / step))

    def divisions():
        for first in range(most + 1):
            for second in range(min(most, steps - first) + 1):
                third = min(most, steps - first - second)
                yield dict(zip((job.name for job in THREE), (first * step, second * step, third * step)))
    return max(divisions(), key=lambda cached: round(sum(rates(cached).values()), 3))


def even_split():
    return {job.name: POOL_BYTES // len(THREE) for job in THREE}
