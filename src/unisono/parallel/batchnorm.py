"""Batch norm over the batch of all ranks, with the result of one process that has the whole batch.

::

    forward    count, mean, M2 of this rank's rows ─> all-gather ─> count, mean, M2 of all rows ─> normalise
    backward   sums of dy and of dy·x̂ over this rank's rows ─> all-reduce ─> gradient of this rank's rows
    eval       no communication: the running mean and variance are the same on all ranks

x̂ is the normalised input; M2 is the sum of squared distances from the mean, so that the variance is M2 / count.
From the statistics of all ranks r, every rank computes those of all rows, with the same bits everywhere:

    count = Σ count_r      mean = Σ count_r·mean_r / count      M2 = Σ M2_r + Σ count_r·(mean_r - mean)²

Sums of squares could be all-reduced instead. But if the mean is far from zero, the variance would be the difference
of two nearly equal numbers: in float32, no digit of it is correct at a mean of a few thousand standard deviations.
The gathered tensors are short, so the all-gather takes about as long as an all-reduce.

Ranks may have different numbers of rows, or none.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from unisono.errors import UsageError
from unisono.parallel.group import Group, group_of
from unisono.parallel.layer_messages import LAZY_NORM, TOO_FEW_VALUES, WRONG_NORM_INPUT


class SyncBatchNorm(_BatchNorm):
    """BatchNorm1d, 2d or 3d over the batch of all ranks; inputs are rows × features (× further dimensions).

    ``num_features``, ``options``: the arguments of torch's BatchNorm. Parameters and buffers have the same names.
    ``group``: a communicator, a torch process group, or None for torch's default group.
    ``name``: its name in the log of ``record()``.
    """

    def __init__(self, num_features: int, group: Any = None, *, name: str = "batchnorm", **options: Any) -> None:
        super().__init__(num_features, **options)
        self.group = group_of(group)
        self.name = name

    @classmethod
    def convert(cls, module: nn.Module, group: Any = None) -> nn.Module:
        """Return the module with all its batch norms replaced; parameters and buffers stay the same tensors.

        ``module``: the module, which is changed in place. ``group``: as in the class.
        """
        return _converted(module, group_of(group), "", {})

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each feature of ``x`` over all rows and further dimensions of all ranks."""
        if x.dim() < 2 or x.shape[1] != self.num_features:
            raise UsageError(WRONG_NORM_INPUT(name=self.name, found=tuple(x.shape), features=self.num_features))
        if not self.training:  # without running statistics torch uses those of this rank's batch
            from_batch = self.running_mean is None
            return functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, from_batch, 0.0, self.eps
            )
        result, mean, variance, count = _Normalise.apply(x, self.weight, self.bias, self.eps, self.group, self.name)
        if self.track_running_stats and self.running_mean is not None:
            self._update_statistics(mean, variance, count)
        return result

    def _update_statistics(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Move the running statistics towards those of this batch."""
        self.num_batches_tracked.add_(1)
        weight = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        unbiased = variance * (count / (count - 1))
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), weight)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), weight)

    def _check_input_dim(self, x: Tensor) -> None:
        """Do nothing: torch requires this method; ``forward`` checks the input."""


class _Normalise(torch.autograd.Function):
    """Forward: all-gather of statistics. Backward: all-reduce of two sums."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, group: Group, name: str
    ) -> Any:
        mean, variance, count = _statistics_of_all(x, group, name)
        if x.numel() < 2 * x.shape[1] and float(count) < 2:
            raise UsageError(TOO_FEW_VALUES(name=name, found=int(count)))
        kind = mean.dtype  # float32 at least
        wide_weight, wide_bias = (None if part is None else part.to(kind) for part in (weight, bias))
        result = functional.batch_norm(x.to(kind), mean, variance, wide_weight, wide_bias, False, 0.0, eps)
        ctx.save_for_backward(x, weight, mean, (variance + eps).rsqrt(), count)
        ctx.group, ctx.name = group, name
        ctx.mark_non_differentiable(mean, variance, count)
        return result.to(x.dtype), mean, variance, count

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, dy: Tensor, *_: Any) -> Any:
        x, weight, mean, inverse, count = ctx.saved_tensors
        across, shape = _dimensions(x)
        dy = dy.to(mean.dtype)
        normal = (x.to(mean.dtype) - mean.view(shape)) * inverse.view(shape)
        sums = torch.stack([dy.sum(across), (dy * normal).sum(across)])
        own_bias, own_weight = (
            sums.clone()
        )  # gradients of weight and bias are those of this rank's rows, as for all parameters
        dx = None
        if ctx.needs_input_grad[0]:
            ctx.group.all_reduce(sums, name=f"{ctx.name} (sums of dy, dy·x̂)", phase="backward")
            of_bias, of_weight = (sums / count).view(2, *shape)
            scale = inverse if weight is None else inverse * weight.to(mean.dtype)
            dx = ((dy - of_bias - normal * of_weight) * scale.view(shape)).to(x.dtype)
        dweight = own_weight.to(weight.dtype) if ctx.needs_input_grad[1] else None
        dbias = own_bias.to(weight.dtype) if ctx.needs_input_grad[2] else None
        return dx, dweight, dbias, None, None, None


def _statistics_of_all(x: Tensor, group: Group, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mean and variance of each feature, and its number of values, over all ranks."""
    kind = torch.promote_types(x.dtype, torch.float32)
    features = x.shape[1]
    own = torch.zeros(2 * features + 1, dtype=kind, device=x.device)
    if x.numel():
        variance, mean = torch.var_mean(x.to(kind), _dimensions(x)[0], correction=0)
        count = x.numel() // features
        own = torch.cat([mean, variance * count, own[:1] + count])
    parts = torch.empty(group.size * len(own), dtype=kind, device=x.device)
    group.all_gather(parts, own, name=f"{name} (mean, M2, count)", phase="forward")
    means, squares, counts = parts.view(group.size, -1).split([features, features, 1], 1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    squares_of_all = squares.sum(0) + ((means - mean).square() * counts).sum(0)
    return mean, squares_of_all / total, total


def _dimensions(x: Tensor) -> tuple[list[int], list[int]]:
    """Return the dimensions to sum over, and the shape that broadcasts the result to x."""
    return [0, *range(2, x.dim())], [1, -1] + [1] * (x.dim() - 2)


def _converted(module: nn.Module, group: Group, name: str, converted: dict[nn.Module, nn.Module]) -> nn.Module:
    if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
        return converted.setdefault(module, _as_synchronised(module, group, name))
    for child_name, child in module._modules.items():
        if child is not None:
            module._modules[child_name] = _converted(child, group, f"{name}.{child_name}".lstrip("."), converted)
    return module


def _as_synchronised(module: Any, group: Group, name: str) -> nn.Module:
    if isinstance(module, nn.modules.lazy.LazyModuleMixin):
        raise UsageError(LAZY_NORM(name=name))
    norm = SyncBatchNorm(
        module.num_features, group, name=name or "batchnorm", eps=module.eps, momentum=module.momentum,
        affine=module.affine, track_running_stats=module.track_running_stats,
    )  # fmt: skip
    norm._parameters, norm._buffers, norm.training = module._parameters, module._buffers, module.training
    return norm
