"""Computes, from the table of examples/tools/common/app/colours.c, that its colours can be read and told apart.

Text reaches a contrast of 4.5:1 (WCAG 2.1) on every background of its theme, and marks reach 3:1. The colours of lines,
bars and cells, f0 to f5, lie at least FAR apart (CIEDE2000) for eyes that see all colours and for eyes that lack one
kind of cone: protanopia, deuteranopia and tritanopia, simulated after Machado, Oliveira and Fernandes (2009), with
their matrices for a severity of 1.

    python3 check_colours.py examples/tools/common/app/colours.c
"""

import itertools, math, re, sys

TEXT = ["ink", "soft", "faint", "good", "warn", "bad"]
MARKS = ["tensor", "hbm", "dma", "startup", "peer", "f0", "f1", "f2", "f3", "f4", "f5"]
SERIES = MARKS[-6:]
ON = ["bg", "card"]
FAR = 12.0
EYES = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def table_of(path):
    rows = re.findall(r'\{ "(\w+)", "(#[0-9a-f]{6})(?:[0-9a-f]{2})?", "(#[0-9a-f]{6})(?:[0-9a-f]{2})?" \}', open(path).read())
    return {name: (light, dark) for name, light, dark in rows}


def linear(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]


def contrast(a, b):
    a, b = (0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(a), linear(b)))
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def seen(rgb, eye):
    return [min(1, max(0, sum(m * v for m, v in zip(row, rgb)))) for row in EYES[eye]]


def lab(rgb):
    """CIE L*a*b*, D65."""
    rows = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    f = []
    for row, white in zip(rows, (0.95047, 1, 1.08883)):
        t = sum(m * v for m, v in zip(row, rgb)) / white
        f.append(t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def apart(one, two):
    """CIEDE2000 (Sharma, Wu and Dalal, 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, two
    c7 = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    g = 0.5 * (1 - math.sqrt(c7 / (c7 + 25**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = 0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    dl, dc, dh = l2 - l1, c2 - c1, 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn) / 2)
    l, c, h = (l1 + l2) / 2, (c1 + c2) / 2, h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    cos = lambda degrees: math.cos(math.radians(degrees))
    t = 1 - 0.17 * cos(h - 30) + 0.24 * cos(2 * h) + 0.32 * cos(3 * h + 6) - 0.20 * cos(4 * h - 63)
    sl, sc, sh = 1 + 0.015 * (l - 50) ** 2 / math.sqrt(20 + (l - 50) ** 2), 1 + 0.045 * c, 1 + 0.015 * c * t
    rt = -2 * math.sqrt(c**7 / (c**7 + 25**7)) * math.sin(math.radians(60 * math.exp(-(((h - 275) / 25) ** 2))))
    return math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * dc / sc * dh / sh)


# Pairs of that paper's table of test data, so that this is the formula.
KNOWN = [((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425), ((50, 2.5, 0), (73, 25, -18), 27.1492),
         ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0), ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082)]


def faults(table):
    for name in TEXT + MARKS + ON + ["track"]:
        if name not in table:
            yield f"there is no colour --{name}"
            return
    for theme in range(2):
        where = ("light", "dark")[theme]
        for names, need, on in ((TEXT, 4.5, ON), (MARKS, 3.0, ON), (["tensor", "hbm", "dma", "startup"], 2.5, ["track"])):
            for name, ground in itertools.product(names, on):
                is_ = contrast(table[name][theme], table[ground][theme])
                if is_ < need:
                    yield f"{where}: --{name} on --{ground} has a contrast of {is_:.2f}, not {need}"
        for eye in EYES:
            places = {name: lab(seen(linear(table[name][theme]), eye)) for name in SERIES}
            for a, b in itertools.combinations(SERIES, 2):
                if apart(places[a], places[b]) < FAR:
                    yield f"{where}, {eye}: --{a} and --{b} are {apart(places[a], places[b]):.1f} apart, not {FAR}"


def closest(table):
    def all():
        for theme, eye in itertools.product(range(2), EYES):
            places = {name: lab(seen(linear(table[name][theme]), eye)) for name in SERIES}
            for a, b in itertools.combinations(SERIES, 2):
                yield apart(places[a], places[b]), a, b, ("light", "dark")[theme], eye
    return min(all())


def main(path):
    wrong = [f"the formula gives {apart(a, b):.4f}, not {d}" for a, b, d in KNOWN if abs(apart(a, b) - d) > 1e-4]
    table = table_of(path)
    wrong += faults(table)
    bent = dict(table, f5=table["f0"], faint=("#999999", "#555555"), f1=("#ffee88", "#332200"))
    if len(list(faults(bent))) < 12:
        wrong.append("the test of colours does not see colours that are wrong on purpose")
    for fault in wrong:
        print("FAILED: " + fault)
    far, a, b, theme, eye = closest(table)
    print(f"{len(table)} colours; the closest two: --{a} and --{b}, {far:.1f} apart ({theme}, {eye})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
