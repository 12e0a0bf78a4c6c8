"""One rank of an Accelerate program: `python accelerate_job.py FOLDER '{"epochs": 2}'`. Writes FOLDER/RANK.json: the ids
that it read in each epoch. Option prepare: also prepares the loader.
"""

import json
import pathlib
import sys

import accelerate
import stoker.torch
import torch
from features import features


def main():
    folder, options = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
    accelerator = accelerate.Accelerator(cpu=True)
    dataset = stoker.torch.Dataset("train", decode=features).with_ids()
    sampler = stoker.torch.Sampler(dataset, seed=7)
    loader = stoker.torch.DataLoader(dataset, batch_size=10, sampler=sampler)
    model = torch.nn.Linear(2, 3)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    if options.get("prepare"):
        loader = accelerator.prepare(loader)
    read = [[] for _ in range(options["epochs"])]
    for epoch in range(options["epochs"]):
        sampler.set_epoch(epoch)
        for inputs, labels, ids in loader:
            read[epoch] += ids.tolist()
            inputs, labels = inputs.to(accelerator.device), labels.to(accelerator.device)
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
    (folder / f"{accelerator.process_index}.json").write_text(json.dumps(read))


if __name__ == "__main__":
    main()
