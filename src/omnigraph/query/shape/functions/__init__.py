"""The functions and operators of expressions over Arrow columns: one kernel for each name of the registry.

A kernel gets the arguments as columns and, when an argument is the same for every row, also its plain value. It raises a
ValueError that says what is wrong; the caller adds the expression. Unless the registry says otherwise, a null argument gives
null.

Each family of functions is a file with a table of its kernels: `numbers` (and operators), `texts`, `dates`, `lists`, `choices`
(and conversions). `arguments` is what they share, `sizes` what those of them need that make much of little.
"""

from __future__ import annotations

from omnigraph.query.shape.functions.arguments import Arguments, Kernel, as_type
from omnigraph.query.shape.functions.choices import CHOICES
from omnigraph.query.shape.functions.dates import DATES
from omnigraph.query.shape.functions.lists import LISTS
from omnigraph.query.shape.functions.numbers import NUMBERS
from omnigraph.query.shape.functions.sizes import made_bytes
from omnigraph.query.shape.functions.texts import TEXTS

#: The kernels by name: operators, and every function of the registry except `if`, `id` and `type`, which the plan handles.
KERNELS: dict[str, Kernel] = {**NUMBERS, **TEXTS, **DATES, **LISTS, **CHOICES}

__all__ = ["KERNELS", "Arguments", "Kernel", "as_type", "made_bytes"]
