"""Tokenizers and texts with the tokens that they have, by a slow reading of the definitions: Python's re, whose classes
are spelt out from unicodedata, unicodedata's NFC, and merging by looking through all pairs each time.

    tokenizer.py FOLDER      writes NAME.json, NAME.txt and NAME.ids (a number a line) for each of its patterns

tests/unit/test_tokenizer.c reads them. Vocabularies are trained on the text, by frequency of pairs.
"""
import collections
import json
import pathlib
import random
import re
import sys
import unicodedata

SPACE = "\\t-\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
UPPER, LOWER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
HEAD, SHORT, REST = "[^\\r\\n\\p{L}\\p{N}]?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)", "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
SIGNS, PATHS = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
PATTERNS = {
    "gpt2": ["'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"],
    "llama3": [SHORT + "|" + HEAD + "\\p{L}+|\\p{N}{1,3}" + SIGNS + REST],
    "qwen2": [SHORT + "|" + HEAD + "\\p{L}+|\\p{N}" + SIGNS + REST],
    "o200k": [f"{HEAD}{UPPER}*{LOWER}+{SHORT}?|{HEAD}{UPPER}+{LOWER}*{SHORT}?|\\p{{N}}{{1,3}}" + PATHS + REST],
    "tekken": [f"{HEAD}{UPPER}*{LOWER}+|{HEAD}{UPPER}+{LOWER}*|\\p{{N}}" + PATHS + REST],
    "deepseek": ["\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                 "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                 "| ?[\\p{P}\\p{S}]+[\\r\\n]*" + REST],
}
WORDS = ("the quick Brown FOX don't we'LL it'S naïve über ÀÉ 12345 3.14 ½ Ⅷ 你好 世界 日本語 カナ ひらがな \n \r\n \t "
         "\u00a0 \u2003 !!! -- /path/to // हिन्दी বাংলা ภาษา עברית العربية 한국어 각 😀👩‍👧 ǅ ﬆ e\u0301 a\u0323\u0302 "
         "CamelCase HTTPServer don’t ſ'ſ x_y {a:b} \u0085 λόγος Привет \u1100\u1161\u11a8 \u0301 '\x1c' \ufeff").split(" ")


def ranges(kind):
    """The characters of a general category, or of all that begin with this letter, as ranges inside of [ ]."""
    text, first = "", None
    for code in range(0x110001):
        there = code < 0x110000 and unicodedata.category(chr(code)).startswith(kind)
        if there and first is None:
            first = code
        if not there and first is not None:
            text += f"\\U{first:08x}-\\U{code - 1:08x}"
            first = None
    return text


CLASS = {kind: ranges(kind) for kind in ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "P", "S")}


def spelt(pattern):
    out, i, inside = "", 0, False
    while i < len(pattern):
        found = re.match(r"\\p\{(\w+)\}|\\s|\\S|\\.|.", pattern[i:], re.S)
        piece = found[0]
        i += len(piece)
        if piece in "[]":
            inside = piece == "["
        if found[1] or piece == "\\s":
            members = CLASS[found[1]] if found[1] else SPACE
            piece = members if inside else f"[{members}]"
        elif piece == "\\S":
            assert not inside
            piece = f"[^{SPACE}]"
        out += piece
    return re.compile(out)


def cut(pieces, pattern):
    for piece in pieces:
        at = 0
        for found in pattern.finditer(piece):
            if found.end() == found.start():
                continue
            if found.start() > at:
                yield piece[at:found.start()]
            yield found[0]
            at = found.end()
        if at < len(piece):
            yield piece[at:]


def merged(parts, rank):
    parts = list(parts)
    while len(parts) > 1:
        best, i = min((rank.get((parts[i], parts[i + 1]), 1 << 30), i) for i in range(len(parts) - 1))
        if best == 1 << 30:
            break
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return parts


def trained(pieces, count):
    words = collections.Counter(tuple(bytes([b]) for b in p.encode()) for p in pieces)
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = collections.Counter({tuple(merged(w, {best: 0})): n for w, n in words.items()})
    return merges


shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
letter = {b: chr(b) for b in shown}
letter |= {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in letter)}


def write(folder, name, patterns, rng):
    nfc = name == "qwen2"
    text = "".join(rng.choice(WORDS) + rng.choice(["", " ", " ", "  ", "\n", "'s"]) for _ in range(1500))
    pieces = [unicodedata.normalize("NFC", text) if nfc else text]
    for pattern in patterns:
        pieces = list(cut(pieces, spelt(pattern)))
    merges = trained(pieces, 250)
    vocab = {bytes([b]): b for b in range(256)}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    rank = {pair: i for i, pair in enumerate(merges)}
    ids = [vocab[part] for p in pieces for part in merged((bytes([b]) for b in p.encode()), rank)]

    def seen(token):
        return "".join(letter[b] for b in token)

    last = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": name == "gpt2"}
    splits = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in patterns]
    model = {"type": "BPE", "vocab": {seen(t): i for t, i in vocab.items()},
             "merges": [[seen(a), seen(b)] if nfc else f"{seen(a)} {seen(b)}" for a, b in merges]}
    before = last if name == "gpt2" else {"type": "Sequence", "pretokenizers": splits + [last]}
    whole = {"model": model, "pre_tokenizer": before, "normalizer": {"type": "NFC"} if nfc else None}
    (folder / f"{name}.json").write_text(json.dumps(whole, ensure_ascii=len(name) % 2 == 0), encoding="utf-8")
    (folder / f"{name}.txt").write_bytes(text.encode())
    (folder / f"{name}.ids").write_text("".join(f"{i}\n" for i in ids))


for number, (name, patterns) in enumerate(PATTERNS.items()):
    write(pathlib.Path(sys.argv[1]), name, patterns, random.Random(number))
