/* alphabet.h - the characters by which byte-level tokenizers write bytes (GPT-2's).
 * SPDX-License-Identifier: MIT
 *
 * CONTENTS
 *     tok_byte_of    the byte that a character stands for; -1: none
 *     tok_code_of    the character of a byte
 *     tok_put        that character in UTF-8, of one or two bytes
 */
#ifndef IO_ALPHABET_H
#define IO_ALPHABET_H

#include "io.h"

/* '!' to '~', U+A1 to U+AC and U+AE to U+FF stand for themselves; the other 68 bytes are U+100, U+101, ... */
IO_FN bool tok_byte_shown(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

IO_FN int tok_byte_of(uint32_t code)
{
    if (code < 256) return tok_byte_shown((int)code) ? (int)code : -1;
    int left = (int)(code < 0x144 ? code - 256 : 256);
    for (int byte = 0; byte < 256; byte++)
        if (!tok_byte_shown(byte) && left-- == 0) return byte;
    return -1;
}

IO_FN uint32_t tok_code_of(int byte)
{
    uint32_t code = 0;
    while (tok_byte_of(code) != byte) code++;
    return code;
}

IO_FN size_t tok_put(unsigned char *to, int byte)
{
    const uint32_t code = tok_code_of(byte);
    if (code < 0x80) return to[0] = (unsigned char)code, 1;
    to[0] = (unsigned char)(0xc0 | code >> 6);
    to[1] = (unsigned char)(0x80 | (code & 0x3f));
    return 2;
}

#endif /* IO_ALPHABET_H */
