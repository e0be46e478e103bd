"""Prints, for each character that Python's Unicode has, its number, its class (general category; its first letter, but
for letters) and the bytes of its NFC, in hexadecimal; where VERSION is Python's, also for numbers that have no character:

    characters.py VERSION

tests/unit/test_tokenizer.c reads it.
"""
import sys
import unicodedata

whole = unicodedata.unidata_version == sys.argv[1]
for code in (*range(1, 0xd800), *range(0xf800, 0x32400), *range(0xe0000, 0xe0200), 0x10fffd):  # the rest: private, or none
    name = unicodedata.category(chr(code))
    if name != "Cn" or whole:
        nfc = unicodedata.normalize("NFC", chr(code)).encode().hex()
        print(f"{code:x} {name if name[0] == 'L' else name[0]} {nfc}")
