"""Contrast as WCAG 2 defines it, and what colours look like to colour-blind people.

Dichromats: the matrices of Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
Deficiency" (2009), severity 1, on linear light. Differences: Euclidean in OKLab (Ottosson 2020), times 100.
"""

DICHROMATS = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear(colour):
    """'#rrggbb' or (r, g, b) of 0..255 as linear light, 0..1."""
    if isinstance(colour, str):
        colour = [int(colour[k:k + 2], 16) for k in (1, 3, 5)]
    return [c / 255 / 12.92 if c <= 0.04045 * 255 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]


def luminance(colour):
    r, g, b = linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def _times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def _oklab(light):
    lms = _times(((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566),
                  (0.0883024619, 0.2817188376, 0.6299787005)), light)
    return _times(((0.2104542553, 0.7936177850, -0.0040720468), (1.9779984951, -2.4285922050, 0.4505937099),
                   (0.0259040371, 0.7827717662, -0.8086757660)), [max(c, 0) ** (1 / 3) for c in lms])


def difference(a, b, eyes=None):
    """How far apart two colours look; eyes: a key of DICHROMATS. Just noticeable: about 2."""
    a, b = linear(a), linear(b)
    if eyes:
        a, b = ([min(max(c, 0), 1) for c in _times(DICHROMATS[eyes], x)] for x in (a, b))
    return 100 * sum((x - y) ** 2 for x, y in zip(_oklab(a), _oklab(b))) ** 0.5
