"""Numbers as they appear in tables.

>>> mean_sd(0.92, 0.016)
'0.920 ± 0.016'
>>> p_value(0.0625)
'.0625'
"""

import math


def mean_sd(mean: float, sd: float) -> str:
    """Mean ± sample standard deviation.

    A NaN standard deviation, of a single run, is left out; a NaN mean is of a run that diverged.
    """
    if math.isnan(mean):
        return "diverged"
    return f"{mean:.3f}" if math.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"


def p_value(value: float) -> str:
    """Four decimals, without the leading zero."""
    return "1" if value == 1 else f"{value:.4f}".lstrip("0")
