"""The Trainer of transformers, with a tiny GPT-2: ``transformers_trainer.py BACKEND group`` or ``... option``."""

from __future__ import annotations

import sys
import tempfile

import torch
from problem import BACKEND, STEPS, report
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Numbers in place of words."""

    def __len__(self) -> int:
        return 8 * STEPS

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        words = torch.randint(0, 64, (16,), generator=torch.Generator().manual_seed(place))
        return {"input_ids": words, "labels": words}


if sys.argv[2] == "group":
    torch.distributed.init_process_group(BACKEND)
torch.manual_seed(7)
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2))
with tempfile.TemporaryDirectory() as folder:
    asked = BACKEND if sys.argv[2] == "option" else None
    settings = TrainingArguments(
        output_dir=folder, use_cpu=True, ddp_backend=asked, max_steps=STEPS, per_device_train_batch_size=4,
        logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True, seed=7,
    )  # fmt: skip
    trainer = Trainer(model=model, args=settings, train_dataset=Sentences())
    trainer.train()
report([entry["loss"] for entry in trainer.state.log_history if "loss" in entry], torch.distributed.group.WORLD)
