"""Half precision: matrix products in bfloat16, on machines that compute it natively."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rallebench.core.versions import imported_module


def has_bfloat16(device: Any) -> bool:
    """Return whether the machine computes bfloat16 products natively."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.get_device_capability(device) >= (8, 0))
    if device.type != "cpu":
        return False
    checks = (
        getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("avx512_bf16", "amx_tile")
    )
    if any(check is not None and check() for check in checks):
        return True
    return bool(getattr(torch.cpu, "_is_arm_bf16_supported", lambda: False)())


def has_bfloat16_here() -> bool:
    """Return ``has_bfloat16`` for this processor without importing torch, from the system's list of its features.

    If the system has no such list, torch is used if already imported; otherwise False.
    """
    if (torch := imported_module("torch")) is not None:
        return has_bfloat16(torch.device("cpu"))
    try:
        features = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return bool(re.search(r"\b(avx512_bf16|amx_tile|bf16)\b", features))


def to_half_precision(model: Any) -> Any:
    """Copy ``model`` with matrix products in bfloat16 and everything else in float32.

    Sums between layers in bfloat16 would be little faster and change twice as many places of a ranking. Only the
    matrices are copied; the rest is shared with ``model``.
    """
    import torch

    class HalfPrecisionLinear(torch.nn.Module):  # type: ignore[misc]
        """A linear layer with its product in bfloat16."""

        def __init__(self, layer: Any) -> None:
            super().__init__()
            self.weight = layer.weight.detach().to(torch.bfloat16)
            self.bias = None if layer.bias is None else layer.bias.detach().to(torch.bfloat16)

        def forward(self, x: Any) -> Any:
            product = torch.nn.functional.linear(x.to(torch.bfloat16), self.weight, self.bias)
            return product.to(x.dtype)

    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return with_linear_layers(copy.deepcopy(model, shared), HalfPrecisionLinear)


def with_linear_layers(model: Any, kind: Callable[[Any], Any]) -> Any:
    """Replace each linear layer of ``model``, in place, with ``kind(layer)``."""
    import torch

    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if type(layer) is torch.nn.Linear:
                setattr(module, name, kind(layer))
    return model
