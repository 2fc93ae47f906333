"""Download from the model hub: files of a repository, safetensors only, never pickled weights.

It uses `huggingface_hub`, so HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE work as everywhere.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dowse.errors import ModelUnavailableError

_TIMEOUT_S = 10.0


def download_files(
    hub_id: str, names: Sequence[str], into: Path, *, optional: Sequence[str] = (), revision: str | None = None
) -> None:
    """Copy the named files below `into`; an optional one may be missing from the repository."""
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # Dowse reports its own progress
    # A temporary cache instead of the one in the home directory: the wanted files are copied, the rest is deleted.
    cache = into.parent / f"{into.name}-hub-cache"
    with _translated(hub_id, names[0]):
        # One request without retries first: an offline machine would otherwise wait for half a minute.
        url = huggingface_hub.hf_hub_url(hub_id, names[0], revision=revision)
        huggingface_hub.get_hf_file_metadata(url, timeout=_TIMEOUT_S)
    for name in [*names, *optional]:
        with _translated(hub_id, name):
            try:
                found = huggingface_hub.hf_hub_download(hub_id, name, revision=revision, cache_dir=cache)
            except EntryNotFoundError as err:
                # The local error means that the hub did not reply, not that the file is missing.
                if name in optional and not isinstance(err, LocalEntryNotFoundError):
                    continue
                raise
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, into / name)


@contextmanager
def _translated(hub_id: str, name: str) -> Iterator[None]:
    """Turn errors of the hub library into ModelUnavailableError that names the file or repository."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )
    from huggingface_hub.errors import HTTPError as TransportError  # type: ignore[attr-defined] # requests' or httpx's

    try:
        yield
    except HFValidationError as err:
        raise ModelUnavailableError(f"{hub_id!r} is not a hub id") from err
    except RepositoryNotFoundError as err:
        raise ModelUnavailableError(f"the model hub has no public repository {hub_id}") from err
    except LocalEntryNotFoundError as err:
        raise ModelUnavailableError(f"the model hub did not reply to the request for {name}") from err
    except EntryNotFoundError as err:
        raise ModelUnavailableError(f"repository {hub_id} on the model hub has no {name}") from err
    except (TransportError, OSError) as err:
        reason = next(iter(str(err).splitlines()), type(err).__name__).rstrip(".")
        raise ModelUnavailableError(f"cannot download {name} from the model hub: {reason}") from err
