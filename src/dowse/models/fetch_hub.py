"""A hub id goes in, files of that repository lie in a folder afterwards; safetensors only, never pickled weights.

`huggingface_hub` does the talking, so HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE mean what they mean elsewhere.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dowse.errors import ModelUnavailableError

_TIMEOUT_S = 10.0


def download_files(hub_id: str, names: Sequence[str], into: Path, *, optional: Sequence[str] = ()) -> None:
    """Copy the named files below `into`; an optional one may be missing from the repository."""
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # we report our own
    # Its cache is put beside, not into the home directory: what is wanted is copied, the rest is thrown away.
    cache = into.parent / f"{into.name}-hub-cache"
    with _translated(hub_id, names[0]):
        # One question without retries, or a machine that is offline would wait for half a minute.
        huggingface_hub.get_hf_file_metadata(huggingface_hub.hf_hub_url(hub_id, names[0]), timeout=_TIMEOUT_S)
    for name in [*names, *optional]:
        with _translated(hub_id, name):
            try:
                found = huggingface_hub.hf_hub_download(hub_id, name, cache_dir=cache)
            except EntryNotFoundError as err:
                # The local one says that the hub fell silent, not that there is no such file.
                if name in optional and not isinstance(err, LocalEntryNotFoundError):
                    continue
                raise
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, into / name)


@contextmanager
def _translated(hub_id: str, name: str) -> Iterator[None]:
    """The border: whatever the hub's library raises for reasons of its own says what was asked for."""
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
        raise ModelUnavailableError(f"the model hub has no {hub_id}, or not for everyone") from err
    except LocalEntryNotFoundError as err:
        raise ModelUnavailableError(f"the model hub fell silent over {name}") from err
    except EntryNotFoundError as err:
        raise ModelUnavailableError(f"the model hub has no {name} for {hub_id}") from err
    except (TransportError, OSError) as err:
        reason = next(iter(str(err).splitlines()), type(err).__name__).rstrip(".")
        raise ModelUnavailableError(f"the model hub does not give {name}: {reason}") from err
