"""One rank of a Lightning program: `python lightning_job.py FOLDER '{"epochs": 2, ...}'`. Writes FOLDER/RANK.json: the ids
that it read in each epoch.

Options: epochs; ranks; contract (default: a Sampler); early (make the loader before the trainer); stop (save
FOLDER/checkpoint after so many steps and end); resume (load it); trainer (arguments of the Trainer).
"""

import json
import pathlib
import sys

import lightning
import stoker.torch
import torch
from features import features


def make_loader(contract):
    dataset = stoker.torch.Dataset("train", decode=features)
    if contract is not None:
        return stoker.torch.DataLoader(dataset, batch_size=10, contract=contract, seed=7)
    dataset = dataset.with_ids()
    return stoker.torch.DataLoader(dataset, batch_size=10, sampler=stoker.torch.Sampler(dataset, seed=7))


class Stop(lightning.Callback):
    """Saves a checkpoint after so many steps and ends the run."""

    def __init__(self, steps, path):
        self.steps, self.path = steps, path

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.steps:
            trainer.save_checkpoint(self.path)
            trainer.should_stop = True


class Model(lightning.LightningModule):
    def __init__(self, contract, epochs):
        super().__init__()
        self.layer, self.contract = torch.nn.Linear(2, 3), contract
        self.read = [[] for _ in range(epochs)]

    def _register_sharded_tensor_state_dict_hooks_if_available(self):
        """Not called: the module of torch 1.13 that it imports does not work with Python 3.11."""

    def train_dataloader(self):
        return make_loader(self.contract)

    def training_step(self, batch, _):
        inputs, labels, ids = batch
        self.read[self.current_epoch] += ids.tolist()
        losses = torch.nn.functional.cross_entropy(self.layer(inputs), labels, reduction="none")
        if self.contract is not None:
            self.trainer.train_dataloader.report(ids, losses)
        return losses.mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    folder, options = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
    loader = make_loader(options.get("contract")) if options.get("early") else None
    ranks = options.get("ranks", 1)
    checkpoint = str(folder / "checkpoint")
    trainer = lightning.Trainer(
        max_epochs=options["epochs"], callbacks=[Stop(options.get("stop"), checkpoint)], accelerator="cpu", devices=ranks,
        strategy="ddp" if ranks > 1 else "auto", logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False, **options.get("trainer", {}))
    model = Model(options.get("contract"), options["epochs"])
    trainer.fit(model, loader, ckpt_path=checkpoint if options.get("resume") else None)
    (folder / f"{trainer.global_rank}.json").write_text(json.dumps(model.read))


if __name__ == "__main__":
    main()
