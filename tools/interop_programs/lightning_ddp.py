"""Lightning with DDP: ``lightning_ddp.py BACKEND``."""

from __future__ import annotations

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from problem import BACKEND, SIZE, batches, network, report


class Module(lightning.LightningModule):
    """The network and its training step."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()
        self.losses: list[float] = []

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], number: int) -> torch.Tensor:
        """Return the loss of a batch."""
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.losses.append(loss.item())
        self.log("loss", loss, sync_dist=True)  # an additional collective
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.AdamW(self.parameters(), lr=0.01)


module = Module()
trainer = lightning.Trainer(
    accelerator="cpu", devices=SIZE, strategy=DDPStrategy(process_group_backend=BACKEND), max_epochs=1, logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
)  # fmt: skip
trainer.fit(module, torch.utils.data.DataLoader(batches(), batch_size=None))
report(module.losses, torch.distributed.group.WORLD)
