"""torch.export and TorchScript files, which are opened only where their author is trusted.

Both are programs. torch pastes some of the texts of a .pt2 archive into Python that it then runs,
and a TorchScript archive is compiled and partly run by the very call that opens it, so nobody can
look at what they do first.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

from limi.errors import BadModel, InvalidInput
from limi.models._files import content_of, unreadable

__all__ = ["read"]


def read(path: Path, *, trusted: bool = False) -> Any:
    """The program in a file: an ExportedProgram or a ScriptModule."""
    import torch

    content = content_of(path)
    try:
        names = torch._C.PyTorchFileReader(io.BytesIO(content)).get_all_records()
    except Exception as error:
        raise unreadable(str(path), "a torch.export or TorchScript program", error) from error
    if "models/model.json" in names:
        loader = torch.export.load
    elif "constants.pkl" in names:
        loader = torch.jit.load
    elif "serialized_exported_program.json" in names:
        raise BadModel(
            f"{str(path)!r} was exported by an older torch; export the module again with torch 2.8 "
            "or later"
        )
    else:
        raise BadModel(
            f"{str(path)!r} holds pickled objects from torch.save, which limi does not open; "
            "export the module with torch.export.save, or pass it in Python"
        )
    if not trusted:
        raise InvalidInput(
            f"torch:{path} was not opened: it is a program, parts of which run while torch reads "
            "it; save the module with torch.onnx.export, or allow it with trust_pickle=True "
            "(--trust-pickle) if you know who wrote it"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            # Up to torch 2.11 reading an archive warns of torch's own buffers.
            warnings.filterwarnings("ignore", "The given buffer is not writable")
            return loader(io.BytesIO(content))
    except Exception as error:
        raise unreadable(str(path), "a torch program", error) from error
