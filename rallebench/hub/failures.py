"""Failures of the hub as one sentence each. The library's own words are left out, since they may hold signed addresses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.errors import BackendError, NotFoundError, RalleError, UsageError
from rallebench.core.files import is_full

TOKEN, ENDPOINT = "HF_TOKEN", "HF_ENDPOINT"


@dataclass(frozen=True, slots=True)
class Failures:
    """Words for what goes wrong with a dataset of a hub. ``cache``: the folder of downloads."""

    repo: str
    address: str
    cache: Path
    has_token: bool

    @contextlib.contextmanager
    def about(self, revision: str = "") -> Iterator[None]:
        """Turn every error in the block into a RalleError. ``revision``: the one that is asked for."""
        try:
            yield
        except RalleError:
            raise
        except Exception as error:  # a foreign server can make the library raise anything
            raise self._word(error, revision) from error

    def _word(self, error: Exception, revision: str) -> RalleError:
        """Return an error of the library or of the disk as one sentence. The library's own words may hold signed addresses."""
        from huggingface_hub import errors

        repo, address, chain = self.repo, self.address, list(_causes(error))
        token = f"set {TOKEN} in the environment to a token of an account that may read it"
        statuses = (getattr(getattr(x, "response", None), "status_code", 0) for x in chain)
        status = next(filter(None, statuses), 0)
        if isinstance(error, errors.GatedRepoError):
            return UsageError(
                f"{repo} is gated: accept its terms at {address}/datasets/{repo}, and {token}."
            )
        if isinstance(error, errors.DisabledRepoError):
            return UsageError(f"{repo} has been disabled on {address}; take another dataset.")
        if isinstance(error, errors.RevisionNotFoundError):
            return NotFoundError(
                f"{repo} has no revision {revision!r}; give a branch, a tag or a commit of it, or leave it out."
            )
        if isinstance(error, errors.RemoteEntryNotFoundError):
            return BackendError(f"A file of {repo} is no longer on {address}; try again.")
        if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 404):
            own = f", or the token in {TOKEN} may not read it" if self.has_token else f"; {token}"
            return NotFoundError(
                f"There is no dataset {repo!r} on {address}, or it is private{own}. Check its name."
            )
        if status == 403:
            return UsageError(f"{address} refuses access to {repo}; {token}.")
        if status == 429:
            return BackendError(f"{address} limits the number of requests; try again later.")
        if status >= 400:
            return BackendError(f"{address} failed for {repo} (status {status}); try again later.")
        if any(isinstance(x, OSError) and is_full(x) for x in chain):
            return BackendError(
                f"The disk of {self.cache} is full; free space, or set HF_HOME to a folder on another disk."
            )
        return self._word_connection(error, chain)

    def _word_connection(self, error: Exception, chain: Sequence[BaseException]) -> RalleError:
        import httpx2

        check = f"the network, the proxy, and {ENDPOINT} if it is set"
        if any(isinstance(x, (httpx2.TimeoutException, TimeoutError)) for x in chain):
            return BackendError(
                f"{self.address} does not answer; try again later, or check {check}."
            )
        if any(isinstance(x, httpx2.TransportError) for x in chain):
            return BackendError(
                f"{self.address} cannot be reached, or the connection broke; check {check}."
            )
        if "Consistency check failed" in str(error):
            return BackendError(f"A file of {self.repo} arrived incomplete; try again.")
        return BackendError(
            f"{self.address} does not answer as a Hugging Face hub does ({type(error).__name__}); check {check}."
        )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors behind it."""
    seen: list[BaseException] = []
    while error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__ or error
