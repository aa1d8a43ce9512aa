"""How far apart colours look, also to readers with deuteranopia or protanopia.

Dichromacy is simulated by the matrices of Machado, Oliveira and Fernandes (2009) of full severity,
on linear RGB; the distance is CIEDE2000 in CIELAB of D65.

>>> round(difference(np.array([50, 2.6772, -79.7751]), np.array([50, 0, -82.7485])).item(), 4)
2.0425
"""

import numpy as np

VISIONS = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def parse(colour: str) -> np.ndarray:
    """Red, green and blue in [0, 1]."""
    return np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])


def invert(rgb: np.ndarray, amount: float) -> np.ndarray:
    """`invert(amount) hue-rotate(180deg)` of CSS, by which the page shows figures in the dark."""
    grey = np.array([0.213, 0.715, 0.072])
    rotate = 2 * np.tile(grey, (3, 1)) - np.eye(3)
    return np.clip(rotate @ (rgb * (1 - 2 * amount) + amount), 0, 1)


def lab(rgb: np.ndarray, vision: str) -> np.ndarray:
    """CIELAB of an sRGB colour as this vision sees it."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x = TO_XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / WHITE
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """CIEDE2000 of two colours in CIELAB (Sharma, Wu and Dalal, 2005)."""
    L, a, b = np.stack([one, other], axis=-1)
    G = 0.5 * (1 - np.sqrt(_seventh(np.hypot(a, b).mean())))
    C, h = np.hypot((1 + G) * a, b), np.degrees(np.arctan2(b, (1 + G) * a)) % 360
    step = (h[1] - h[0] + 180) % 360 - 180 if C.all() else 0.0
    dL, dC, dH = L[1] - L[0], C[1] - C[0], 2 * np.sqrt(C[0] * C[1]) * np.sin(np.radians(step / 2))
    hue = h[0] + step / 2 if C.all() else h.sum()
    T = 1 - 0.17 * _cos(hue - 30) + 0.24 * _cos(2 * hue) + 0.32 * _cos(3 * hue + 6)
    T -= 0.20 * _cos(4 * hue - 63)
    light = (L.mean() - 50) ** 2
    S_L = 1 + 0.015 * light / np.sqrt(20 + light)
    S_C, S_H = 1 + 0.045 * C.mean(), 1 + 0.015 * C.mean() * T
    turn = 60 * np.exp(-(((hue % 360 - 275) / 25) ** 2))
    R = -2 * np.sqrt(_seventh(C.mean())) * np.sin(np.radians(turn))
    l, c, s = dL / S_L, dC / S_C, dH / S_H  # noqa: E741
    return np.sqrt(l**2 + c**2 + s**2 + R * c * s)


def _seventh(chroma: float) -> float:
    return chroma**7 / (chroma**7 + 25**7)


def _cos(degrees: float) -> float:
    return np.cos(np.radians(degrees))
