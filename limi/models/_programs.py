"""torch.export and TorchScript files: what may be opened of them.

Both formats are programs. A .pt2 archive says all it does in JSON, so it is held against what a
network needs before torch sees it: whatever else it holds is refused, because torch unpickles
constants, loads compiled libraries and pastes some of the texts into Python that it then runs.
A TorchScript archive is compiled and partly run by the very call that opens it, so nobody can look
first: it is opened only where the user vouches for it.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from limi.errors import BadModel, InvalidInput, LimiError
from limi.models._files import content_of, unreadable

__all__ = ["read"]

_RECORDS = re.compile(
    r"archive_format|archive_version|byteorder|version|\.data/\w+|models/model\.json|"
    r"data/(weights|constants)/(model_\w+_config\.json|weight_\d+|tensor_\d+)|"
    r"data/sample_inputs/model\.pt"
)

# Arithmetic on tensors and their shapes, each also in place (`relu_`). What else aten offers reads
# and writes files (save, from_file), prints, seeds, or trusts sizes and offsets that it is given.
_NAMES = """
abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d add addbmm addcdiv addcmul addmm
addmv addr alias all amax amin aminmax any arange arccos arccosh arcsin arcsinh arctan arctan2
arctanh argmax argmin argsort asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d
avg_pool1d avg_pool2d baddbmm batch_norm bilinear bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor block_diag bmm broadcast_tensors broadcast_to bucketize
cat cdist ceil celu chunk clamp clamp_max clamp_min clip clone column_stack concat concatenate
constant_pad_nd contiguous conv1d conv2d conv_transpose1d convolution copy copysign cos cosh
cosine_similarity count_nonzero cross cummax cummin cumprod cumsum deg2rad detach diag diag_embed
diagonal diff digamma dim dist div divide dot dropout dstack einsum elu embedding embedding_bag
empty empty_like eq equal erf erfc erfinv exp exp2 expand expand_as expm1 eye feature_dropout fill
flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac full full_like gather
gcd ge gelu glu greater greater_equal group_norm gru gru_cell gt hardshrink hardsigmoid hardswish
hardtanh heaviside hstack hypot index index_add index_fill index_put index_select inner
instance_norm isclose isfinite isin isinf isnan isneginf isposinf item kron kthvalue layer_norm lcm
le leaky_relu lerp less less_equal lgamma lift_fresh lift_fresh_copy linalg_cross linalg_det
linalg_inv linalg_matmul linalg_matrix_norm linalg_norm linalg_solve linalg_vecdot
linalg_vector_norm linear linspace log log10 log1p log2 log_sigmoid log_softmax logaddexp logaddexp2
logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lstm lstm_cell lt
masked_fill masked_scatter masked_select matmul max max_pool1d max_pool2d maximum mean median
meshgrid min minimum mish mm moveaxis movedim mul multiply mv nan_to_num nanmean nanmedian
nanquantile nansum narrow native_batch_norm native_dropout native_group_norm native_layer_norm ne
neg negative new_empty new_full new_ones new_zeros nonzero norm not_equal numel one_hot ones
ones_like outer pad pairwise_distance permute pixel_shuffle polygamma positive pow prelu prod
quantile rad2deg ravel reciprocal reflection_pad1d relu relu6 remainder renorm repeat
repeat_interleave replication_pad1d reshape reshape_as rms_norm rnn_relu rnn_tanh roll round rrelu
rsqrt rsub scalar_tensor scaled_dot_product_attention scatter scatter_add scatter_reduce
searchsorted select select_scatter selu sgn sigmoid sign signbit silu sin sinc sinh size slice
slice_scatter softmax softplus softshrink sort special_entr special_erf special_erfc special_erfcx
special_exp2 special_expit special_expm1 special_gammaln special_log1p special_log_softmax
special_logit special_logsumexp special_ndtr special_ndtri special_softmax special_xlog1py
special_xlogy split split_with_sizes sqrt square squeeze stack std std_mean sub subtract sum
sum_to_size swapaxes swapdims sym_constrain_range sym_constrain_range_for_size sym_numel sym_size
sym_stride t take take_along_dim tan tanh tensor_split tensordot threshold tile to topk trace
transpose tril triu true_divide trunc type_as unbind unflatten unfold unsafe_chunk unsafe_split
unsqueeze upsample_linear1d upsample_nearest1d var var_mean vdot view view_as vstack where xlogy
zero zeros zeros_like __and__ __lshift__ __or__ __rshift__ __xor__ _adaptive_avg_pool2d
_assert_scalar _assert_tensor_metadata _cdist_forward _log_softmax _native_batch_norm_legit
_native_batch_norm_legit_no_training _softmax _to_copy _unsafe_view
"""
_OPERATORS = frozenset(_NAMES.split())
_OVERLOAD = re.compile(r"torch\.ops\.aten\.([A-Za-z_]\w*)\.[A-Za-z_]\w*")
_SCALAR_OPERATION = re.compile(
    r"torch\.sym_(float|int|ite|max|min|not|sum)|"
    r"_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|neg|pow|eq|ne|lt|le|gt|ge|and_|or_|not_)"
)
_ARGUMENTS = {
    *("as_bool", "as_bools", "as_device", "as_expr", "as_float", "as_floats", "as_int", "as_ints"),
    *("as_layout", "as_memory_format", "as_name", "as_none", "as_optional_tensors"),
    *("as_scalar_type", "as_string", "as_strings", "as_sym_bool", "as_sym_bools", "as_sym_float"),
    *("as_sym_floats", "as_sym_int", "as_sym_ints", "as_tensor", "as_tensors"),
}
_PATH = re.compile(r"[\w.]*")
_WORDS = re.compile(r"[\w .,:<>=!+*/()-]*")  # modes and equations, such as "tanh" and "bi,oi->bo"
_NUMBER_WORDS = {"Infinity", "-Infinity", "NaN"}
_FUNCTIONS = {"Symbol", "Integer", "Add", "Mul", "Pow", "Max", "Min", "Mod", "FloorDiv", "CeilDiv"}

# How torch writes the shapes of arguments and results: of one tensor, several, no keywords.
_TENSOR: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
_NO_KEYWORDS: dict[str, Any] = {"type": "builtins.dict", "context": "[]", "children_spec": []}


def read(path: Path, *, trusted: bool = False) -> Any:
    """The program in a file: an ExportedProgram, or a ScriptModule where its author is trusted."""
    import torch

    content = content_of(path)
    try:
        archive = torch._C.PyTorchFileReader(io.BytesIO(content))
        names = archive.get_all_records()
    except Exception as error:
        raise unreadable(str(path), "a torch.export or TorchScript program", error) from error
    if "models/model.json" in names:
        _check_exported(path, archive, names)
        loader = torch.export.load
    elif "constants.pkl" in names:
        if not trusted:
            raise _unvouched(path)
        loader = torch.jit.load
    elif "serialized_exported_program.json" in names:
        raise BadModel(
            f"{str(path)!r} was exported by an older torch, in a format that holds pickles; export "
            "the module again with torch 2.8 or later"
        )
    else:
        raise BadModel(
            f"{str(path)!r} holds pickled objects from torch.save, which limi does not open; "
            "export the module with torch.export.save, or pass it in Python"
        )
    try:
        with _weights_only(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            # Up to torch 2.11 reading an archive warns of torch's own buffers.
            warnings.filterwarnings("ignore", "The given buffer is not writable")
            return loader(io.BytesIO(content))
    except Exception as error:
        raise unreadable(str(path), "a torch program", error) from error


@contextmanager
def _weights_only() -> Iterator[None]:
    """torch.export reads some tensors by unpickling; this holds torch.load to tensors alone."""
    switch = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(switch)
    os.environ[switch] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before


def _check_exported(path: Path, archive: Any, names: list[str]) -> None:
    try:
        for name in names:
            if not _RECORDS.fullmatch(name):
                raise _refuse(path, f"it holds {name!r}")
            if name.endswith("_config.json"):
                payloads = json.loads(archive.get_record(name))["config"].values()
                if any(p["use_pickle"] or not p["tensor_meta"] for p in payloads):
                    raise _refuse(path, "it holds pickled tensors")
        program = json.loads(archive.get_record("models/model.json"))
        if program.get("guards_code"):
            raise _refuse(path, "it brings guards written in Python")
        _check_texts(path, program, "")
    except LimiError:
        raise
    # What a damaged archive raises is as manifold as damage.
    except Exception as error:
        raise unreadable(str(path), "a torch.export program", error) from error


def _check_texts(path: Path, part: Any, key: str) -> None:
    """Each text of a program is an operation, a size, a shape of arguments or a name."""
    if isinstance(part, dict):
        for name, value in part.items():
            # What an operation's metadata say is for people: stack traces, names of layers.
            words = isinstance(value, dict) and all(isinstance(w, str) for w in value.values())
            if name == "metadata" and "target" in part and words:
                continue
            if name.startswith("as_") and name not in _ARGUMENTS:
                raise _refuse(path, f"it has an argument of the kind {name[:60]!r}")
            _check_texts(path, name, "key")
            _check_texts(path, value, name)
    elif isinstance(part, list):
        for value in part:
            _check_texts(path, value, key)
    elif isinstance(part, str) and not _RULES.get(key, _is_path)(part):
        raise _refuse(path, f"its {key} is {part[:60]!r}")


def _is_path(text: str) -> bool:
    return _PATH.fullmatch(text) is not None


def _is_name(text: str) -> bool:
    """Names of values become names of variables; torch leaves some empty."""
    return not text or text.isidentifier()


def _is_operation(text: str) -> bool:
    found = _OVERLOAD.fullmatch(text)
    if found is None:
        return _SCALAR_OPERATION.fullmatch(text) is not None
    return found[1] in _OPERATORS or found[1].removesuffix("_") in _OPERATORS


def _takes_tensors(text: str) -> bool:
    """Whether the arguments are `((tensor, ...), {})`: names of keywords would be run as Python."""
    tree = json.loads(text)
    count = len(tree[1]["children_spec"][0]["children_spec"])
    tensors = _sequence("tuple", count)
    wanted = {**_sequence("tuple", 0), "children_spec": [tensors, _NO_KEYWORDS]}
    return count > 0 and tree == [1, wanted]


def _gives_tensors(text: str) -> bool:
    """Whether the result is a tensor, or a tuple or list of them."""
    tree = json.loads(text)
    count = len(tree[1]["children_spec"])
    known = (_TENSOR, _sequence("tuple", count), _sequence("list", count))
    return any(tree == [1, one] for one in known)


def _sequence(kind: str, count: int) -> dict[str, Any]:
    return {"type": f"builtins.{kind}", "context": "null", "children_spec": [_TENSOR] * count}


def _is_size(text: str) -> bool:
    """Whether a text is arithmetic of sizes, such as `Symbol('s0', integer=True)`."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    arithmetic = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.keyword)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            plain = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        elif isinstance(node, ast.Name):
            plain = node.id in _FUNCTIONS or re.fullmatch(r"[su]\d+", node.id) is not None
        elif isinstance(node, ast.Constant):
            plain = not isinstance(node.value, str) or re.fullmatch(r"\w+", node.value) is not None
        else:
            plain = isinstance(node, (*arithmetic, ast.Load))
        if not plain:
            return False
    return True


_RULES: dict[str, Callable[[str], bool]] = {
    "target": _is_operation,
    "expr_str": _is_size,
    "in_spec": _takes_tensors,
    "out_spec": _gives_tensors,
    "forward_arg_names": str.isidentifier,
    "name": _is_name,
    "as_name": _is_name,
    "as_string": lambda text: _WORDS.fullmatch(text) is not None,
    "as_strings": lambda text: _WORDS.fullmatch(text) is not None,
    "as_float": _NUMBER_WORDS.__contains__,
    "as_floats": _NUMBER_WORDS.__contains__,
    "torch_version": lambda text: True,
}


def _refuse(path: Path, why: str) -> BadModel:
    return BadModel(
        f"{str(path)!r} was not opened: {why}, which a network has no use for and which could run "
        "code; export the module again, or give it as ONNX"
    )


def _unvouched(path: Path) -> InvalidInput:
    return InvalidInput(
        f"torch:{path} was not opened: it is a TorchScript program, which can write any file on "
        "this machine while it is read; save the module with torch.export.save(torch.export.export("
        "module, inputs), 'model.pt2') or torch.onnx.export, or allow it with trust_pickle=True "
        "(--trust-pickle) if you know who wrote it"
    )
