/* fragments.c - which byte of which matrix lies in which register of which lane.
 * SPDX-License-Identifier: MIT
 *
 * In bytes along K all types of mma.sync.m16n8 and of wgmma lie alike: a register holds four bytes of a row of a (or of
 * a column of b), a lane's group (lane / 4) names the row, its place in the group (lane mod 4) which four of sixteen.
 *     a   register r: row group + 8 (r mod 2), bytes 16 (r / 2) + 4 place …; m8n8: row group, bytes 16 r + 4 place
 *     b   register r: column group, bytes 16 r + 4 place …
 *     c   register r of 32 bits: row group + 8 (r / 2), column 2 place + r mod 2; of two halves: row group + 8 r
 * wgmma: warp w has rows 16 w …; b lies in shared memory, a core of 8 columns by 16 bytes after the other.
 * m8n8k4: lanes 4 p … 4 p + 3 and 16 more have product p; a lane has the four elements of one row or column.
 *
 * KNOWN FROM: the PTX ISA's fragment tables (documented).
 */
#include "execution.h"

#include <string.h>

uint32_t gpu_code(const unsigned char *codes, trn_format format, int columns, int row, int k)
{
    const size_t bytes = trn_format_bytes(format);
    uint32_t code = 0;
    memcpy(&code, codes + ((size_t)row * (size_t)columns + (size_t)k) * bytes, bytes); /* little endian */
    return code;
}

void gpu_put(unsigned char *codes, trn_format format, int columns, int row, int k, uint32_t code)
{
    const size_t bytes = trn_format_bytes(format);
    memcpy(codes + ((size_t)row * (size_t)columns + (size_t)k) * bytes, &code, bytes);
}

gpu_words gpu_words_of(const gpu_unit *u)
{
    const int lanes = gpu_lanes(u);
    const gpu_words w = { lanes * gpu_a_registers(u), gpu_b_words(u), lanes * gpu_c_registers(u),
                          u->scale ? 2 * lanes : 0 };
    return w;
}

/* Byte `at` along K of a row, as the device has it: two FP4 codes to a byte, the lower k in the low bits. */
static uint32_t row_byte(const gpu_unit *u, const unsigned char *codes, int row, int at)
{
    const unsigned char *line = codes + (size_t)row * (size_t)u->k * (u->bits < 8 ? 1 : (size_t)u->bits / 8);
    if (u->bits == 4) return (uint32_t)(line[2 * at] & 15u) | (uint32_t)(line[2 * at + 1] & 15u) << 4;
    return line[at];
}

static uint32_t row_word(const gpu_unit *u, const unsigned char *codes, int row, int at)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) word |= row_byte(u, codes, row, at + i) << 8 * i;
    return word;
}

/* The row, counted over all products, and the first byte. */
typedef struct place {
    int row, at;
} place;

static int quad_of(int lane) { return lane % 16 / 4; }
static int quad_row(int lane) { return lane % 4 + lane / 16 * 4; }

static place place_a(const gpu_unit *u, int lane, int r)
{
    const place quads = { 8 * quad_of(lane) + quad_row(lane), 4 * r };
    const place eight = { lane / 4, 16 * r + 4 * (lane % 4) };
    const place tall = { lane / 32 * 16 + lane % 32 / 4 + r % 2 * 8, r / 2 * 16 + lane % 4 * 4 };
    return u->layout == GPU_QUADS ? quads : u->m == 8 ? eight : tall;
}

/* word: lane and register in one, or the place in shared memory. */
static place place_b(const gpu_unit *u, int word, int registers)
{
    const int lane = word / registers, r = word % registers;
    const place quads = { 8 * quad_of(lane) + quad_row(lane), 4 * r };
    const place warp = { lane / 4, 16 * r + lane % 4 * 4 };
    const place group = { word % 32 / 4, word / 32 * 16 + word % 4 * 4 };
    return u->layout == GPU_QUADS ? quads : u->layout == GPU_WARP ? warp : group;
}

/* The output, counted over all products, of register r; half: 0 or 1 where two halves share a register. */
static int place_c(const gpu_unit *u, int lane, int r, int half)
{
    const bool halves = u->result == TRN_F16;
    int row, column;
    if (u->layout == GPU_QUADS) {
        row = 8 * quad_of(lane) + (halves ? quad_row(lane) : lane % 2 + (r & 2) + lane / 16 * 4);
        column = halves ? 2 * r + half : (r & 4) + (lane & 2) + r % 2;
    } else {
        row = lane / 32 * 16 + lane % 32 / 4 + (halves ? r : r / 2) * 8;
        column = lane % 4 * 2 + (halves ? half : r % 2);
    }
    return row * u->n + column;
}

/* Lane 4 g + 0 has the scales of row g, 4 g + 1 those of row g + 8, and every lane those of column g; the lanes that
 * the instruction does not read have the same. */
static void pack_scales(const gpu_unit *u, const gpu_execution *e, uint32_t *s)
{
    const int blocks = u->k / u->scale;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 2; i++) {
            const unsigned char *from =
                i == 0 ? e->a_scale + (lane / 4 + lane % 2 * 8) * blocks : e->b_scale + lane / 4 * blocks;
            s[2 * lane + i] = 0;
            for (int j = 0; j < blocks; j++) s[2 * lane + i] |= (uint32_t)from[j] << 8 * j;
        }
}

void gpu_pack(const gpu_unit *u, const gpu_execution *e, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *s)
{
    const int lanes = gpu_lanes(u), of_a = gpu_a_registers(u), of_c = gpu_c_registers(u), words = gpu_b_words(u);
    for (int i = 0; i < lanes * of_a; i++) {
        const place p = place_a(u, i / of_a, i % of_a);
        a[i] = row_word(u, e->a, p.row, p.at);
    }
    for (int i = 0; i < words; i++) {
        const place p = place_b(u, i, u->layout == GPU_GROUP ? 1 : words / lanes);
        b[i] = row_word(u, e->b, p.row, p.at);
    }
    for (int i = 0; i < lanes * of_c; i++) {
        c[i] = e->c[place_c(u, i / of_c, i % of_c, 0)];
        if (u->result == TRN_F16) c[i] |= e->c[place_c(u, i / of_c, i % of_c, 1)] << 16;
    }
    if (u->scale) pack_scales(u, e, s);
}

void gpu_unpack(const gpu_unit *u, const uint32_t *d, gpu_execution *e)
{
    const int of_c = gpu_c_registers(u), all = gpu_lanes(u) * of_c;
    for (int i = 0; i < all; i++) {
        const int lane = i / of_c, r = i % of_c;
        if (u->result != TRN_F16) {
            e->device[place_c(u, lane, r, 0)] = d[i];
            continue;
        }
        for (int half = 0; half < 2; half++) e->device[place_c(u, lane, r, half)] = d[i] >> 16 * half & 0xffffu;
    }
}
