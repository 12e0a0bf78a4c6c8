"""One rank of a DistributedDataParallel run: `python ddp_rank.py SOCKET CONTRACT EPOCHS [PARAMETERS]`.

PARAMETERS: of the contract, as JSON; with them, warnings are not errors. Prints a line at the start of each epoch, then
a JSON object.
"""

import dataclasses
import json
import sys
import warnings

import stoker
import stoker.torch
import torch


def features(view):
    """Length and mean of the bytes, as the model's input."""
    data = stoker.torch.decode_raw(view).float()
    return torch.tensor([len(data) / 400, data.mean() / 255])


def main():
    socket, contract, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    parameters = {"warmup_epochs": 1, "beta": 1.0} if contract == "importance" else {}
    if len(sys.argv) > 4:
        parameters = json.loads(sys.argv[4])
    result = {"rank": torch.distributed.get_rank(), "epochs": [], "reports": []}
    with stoker.open("train", socket=socket) as samples:
        dataset = stoker.torch.Dataset(samples, decode=features)
        loader = stoker.torch.DataLoader(dataset, batch_size=10, contract=contract, seed=5, **parameters)
        for epoch in range(epochs):
            print("epoch", epoch, flush=True)
            served = []
            for inputs, labels, ids in loader:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    losses = criterion(model(inputs), labels)
                optimizer.zero_grad()
                losses.mean().backward()
                optimizer.step()
                loader.report(ids, losses)
                served += ids.tolist()
            result["epochs"].append(served)
            result["reports"].append(dataclasses.asdict(loader.epoch_report()))
    result["weights"] = [round(float(value), 5) for value in model.module.weight.detach().flatten()]
    print(json.dumps(result), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("error" if len(sys.argv) <= 4 else "ignore", stoker.StokerWarning)
        main()
