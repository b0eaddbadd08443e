from collections.abc import Sequence

from torch import Tensor

def grad(outputs: Tensor, inputs: Sequence[Tensor], *, allow_unused: bool = ...) -> tuple[Tensor | None, ...]: ...
