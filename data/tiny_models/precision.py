"""`transformers` in double throughout.

model.double() is not enough: norms, softmax, rotary angles and routers go through float32 whatever the weights are. They
say so by the names `torch.float32`, `torch.float` and `Tensor.float`; inside the block these names mean double. The model
must also be loaded inside, for the rotary frequencies are computed then.
"""

from contextlib import contextmanager

import torch


@contextmanager
def everything_double():
    kept = torch.float32, torch.float, torch.Tensor.float, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept[:3]
        torch.set_default_dtype(kept[3])
