"""One rank that reads three batches under contract windowed: `python elastic_rank.py SOCKET`. Prints a JSON object with
its ids and the state of the job."""

import json
import sys

import stoker
import stoker.torch
import torch


def main():
    torch.distributed.init_process_group("gloo")
    with stoker.open("train", socket=sys.argv[1]) as samples:
        dataset = stoker.torch.Dataset(samples, decode=bytes)
        loader = stoker.torch.DataLoader(dataset, batch_size=10, contract="windowed", seed=5, collate_fn=list)
        batches = iter(loader)
        ids = [id for _ in range(3) for id in next(batches)[-1].tolist()]
        state = loader.job_state_dict()
    print(json.dumps({"ids": ids, "state": state}, default=bytes.hex), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
