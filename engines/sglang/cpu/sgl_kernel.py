"""Stands in for the kernels of SGLang, where no build of them for CPUs is installed.

SGLang imports these names as it starts on a CPU. With its plain torch backends
(``--attention-backend torch_native``, ``--sampling-backend pytorch``) and without
speculative decoding it calls none.
"""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec
from typing import Any, NoReturn

from justitia.engines.sglang.cpu import installed

NAMES = (
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_tree_kernel_efficient_cpu",
    "copy_all_layer_kv_cache_cpu",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "verify_tree_greedy_cpu",
)


def _missing(name: str) -> Callable[..., NoReturn]:
    def called(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            f"sgl_kernel.{name} is a stand-in of justitia's, so that SGLang can be "
            "imported on a CPU: it computes nothing. Install a build of sgl-kernel for "
            "CPUs, or leave out the option that needs it"
        )

    called.__name__ = called.__qualname__ = name
    return called


globals().update({name: _missing(name) for name in NAMES})

if (_real := installed("sgl_kernel")) is not None and _real.loader is not None:
    _module = module_from_spec(_real)
    sys.modules[__name__] = _module
    _real.loader.exec_module(_module)
