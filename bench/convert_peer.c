/* convert_peer.c - what a C programmer gets for f32 -> bf16 without a library: one plain loop, left to the compiler.
 * SPDX-License-Identifier: MIT
 *
 * The build compiles this file with -O3 -march=native, by clang when it is there, else by its own compiler; the program
 * prints which. It shares no code with trnmath/.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void convert_peer_f32_bf16(uint16_t *restrict dst, const float *restrict src, size_t n);
const char *convert_peer_compiler(void);

void convert_peer_f32_bf16(uint16_t *restrict dst, const float *restrict src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, src + i, sizeof u);
        const uint32_t rounded = u + 0x7fffu + (u >> 16 & 1u), quiet = (u & 0x80000000u) | 0x7fc00000u;
        dst[i] = (uint16_t)(((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) >> 16);
    }
}

const char *convert_peer_compiler(void)
{
#if defined(__clang__)
    return __VERSION__; /* begins with clang's name */
#else
    return "gcc " __VERSION__;
#endif
}
