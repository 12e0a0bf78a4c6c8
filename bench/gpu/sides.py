"""The ways to get batches onto a device that run.py compares. Each is an endless iterator of (data, labels) on the
device, with data normalised to bfloat16 in channels_last."""

import os

import stoker.torch
import torch
import torch.utils.data

SHAPE = (3, 224, 224)
SAMPLE_BYTES = 3 * 224 * 224
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # ImageNet's, for pixels 0..255


class Normalise:
    def __init__(self, device):
        self.mean, self.std = (torch.tensor(values, device=device, dtype=torch.bfloat16).view(1, 3, 1, 1)
                               for values in (MEAN, STD))

    def __call__(self, data):
        return data.to(dtype=torch.bfloat16, memory_format=torch.channels_last).sub_(self.mean).div_(self.std)


class Files(torch.utils.data.Dataset):
    """The samples as plain files, as a program without Stoker reads them."""

    def __init__(self, root):
        folders = sorted(os.listdir(root))
        self.files = [(os.path.join(root, folder, name), label) for label, folder in enumerate(folders)
                      for name in sorted(os.listdir(os.path.join(root, folder)))]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        with open(path, "rb", buffering=0) as file:
            raw = bytearray(SAMPLE_BYTES)
            file.readinto(raw)
        return torch.frombuffer(raw, dtype=torch.uint8).view(SHAPE), label


def shaped(tensor):
    return tensor.view(SHAPE)


def synthetic(batch_size, device):
    """Side "synthetic": one batch that is on the device already."""
    data = torch.randint(0, 256, (batch_size, *SHAPE), dtype=torch.uint8).to(device)
    labels = torch.randint(0, 10, (batch_size,)).to(device)
    normalise = Normalise(device)
    while True:
        with torch.no_grad():
            batch = normalise(data)
        yield batch, labels


def tensor_loader(samples, batch_size, device, transform):
    """Stoker's TensorLoader; without a transform the data stay uint8."""
    loader = stoker.torch.TensorLoader(samples, batch_size, shape=SHAPE, device=device, transform=transform,
                                       shuffle=True, seed=7, drop_last=True)
    for epoch in range(1 << 30):
        loader.set_epoch(epoch)
        yield from loader


def workers(dataset, sampler, kind, batch_size, device, count):
    """A loader with worker processes and pinned memory: `kind` is torch's DataLoader or Stoker's."""
    loader = kind(dataset, batch_size=batch_size, sampler=sampler, num_workers=count, drop_last=True,
                  pin_memory=torch.device(device).type == "cuda", persistent_workers=True, prefetch_factor=2)
    normalise = Normalise(device)
    for epoch in range(1 << 30):
        sampler.set_epoch(epoch)
        for data, labels in loader:
            yield normalise(data.to(device, non_blocking=True)), labels.to(device, non_blocking=True)


def stoker_workers(samples, batch_size, device, count):
    dataset = stoker.torch.Dataset(samples, transform=shaped, decode=stoker.torch.decode_raw)
    sampler = stoker.torch.Sampler(dataset, seed=7)
    return workers(dataset, sampler, stoker.torch.DataLoader, batch_size, device, count)


def file_workers(root, batch_size, device, count):
    dataset = Files(root)
    sampler = torch.utils.data.DistributedSampler(dataset, 1, 0, seed=7)
    return workers(dataset, sampler, torch.utils.data.DataLoader, batch_size, device, count)
