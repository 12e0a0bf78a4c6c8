"""One rank of a program with the Hugging Face Trainer: `python transformers_job.py FOLDER '{"epochs": 2}'`. Writes
FOLDER/RANK.json: the ids that it read, in order. Options: stop (end after so many steps, with a checkpoint), resume.
"""

import json
import pathlib
import sys

import stoker.torch
import torch
import transformers
from features import features


def collate(items):
    inputs, labels, ids = torch.utils.data.default_collate(items)
    return {"inputs": inputs, "labels": labels, "ids": ids}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.read = torch.nn.Linear(2, 3), []

    def forward(self, inputs, labels, ids):
        self.read += ids.tolist()
        logits = self.layer(inputs)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        dataset = stoker.torch.Dataset("train", decode=features).with_ids()
        sampler = stoker.torch.Sampler(dataset, seed=7)
        return stoker.torch.DataLoader(dataset, self._train_batch_size, sampler=sampler, collate_fn=collate)


def main():
    folder, options = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
    stop = options.get("stop", -1)
    arguments = transformers.TrainingArguments(
        str(folder / "out"), num_train_epochs=options["epochs"], per_device_train_batch_size=10, use_cpu=True,
        report_to=[], disable_tqdm=True, save_strategy="steps" if stop > 0 else "no", save_steps=max(stop, 1), max_steps=stop,
        ddp_backend="gloo", remove_unused_columns=False)
    model = Model()
    trainer = Trainer(model, arguments)
    trainer.train(resume_from_checkpoint=options.get("resume"))
    (folder / f"{arguments.process_index}.json").write_text(json.dumps(model.read))


if __name__ == "__main__":
    main()
