/* fuzz_pspec.c - random and spoilt texts of meshes and shardings: no crash, no read beyond the text, a sentence for
 * each refusal, nothing written then; and what is accepted is written back and read again as the same.
 * SPDX-License-Identifier: MIT
 *
 *     fuzz_pspec [count] [seed]        default: 200000 texts, 5000000 with TRN_TEST_LEVEL=2; seed 1
 *
 * With -DTRN_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead.
 */
#include <assert.h>
#include <stdio.h>

#include "trnmath/trn_shard.h"
#include "twin/cases.h"

/* A text in a block of its own, so that a sanitizer sees one byte too many. */
static char *own(const char *text, size_t length)
{
    char *copy = (char *)malloc(length + 1);
    assert(copy);
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

static void check_refusal(trn_status status, const trn_error *error, const void *out, size_t bytes)
{
    assert(status == TRN_EINVAL && error->status == status);
    assert(memchr(error->text, 0, sizeof error->text) && strlen(error->text) > 12);
    for (size_t i = 0; i < bytes; i++) assert(((const unsigned char *)out)[i] == 0x5a);
}

static bool try_mesh(const trn_topology *net, const char *bytes, size_t length)
{
    trn_mesh mesh, back;
    trn_error error = { TRN_OK, "" };
    char *text = own(bytes, length), written[512];
    trn_mesh_args args = { &mesh, net, text, NULL, 0, &error };
    memset(&mesh, 0x5a, sizeof mesh);
    const trn_status status = trn_mesh_make(&args);
    assert(trn_mesh_init(&back, net, text) == status);
    if (status) {
        check_refusal(status, &error, &mesh, sizeof mesh);
        free(text);
        return false;
    }
    int product = 1;
    for (int a = 0; a < mesh.axes; a++) product *= mesh.axis[a].size;
    assert(mesh.axes >= 1 && mesh.axes <= TRN_MAX_AXES && product == net->chips && mesh.devices == product);
    for (int d = 0; d < product; d += 1 + product / 7)
        assert(trn_mesh_device_of_chip(&mesh, trn_mesh_chip(&mesh, d)) == d);
    const size_t size = trn_mesh_format(&mesh, written, sizeof written);
    assert(size < sizeof written && strlen(written) == size);
    assert(trn_mesh_init(&back, net, written) == TRN_OK && memcmp(&back, &mesh, sizeof mesh) == 0);
    free(text);
    return true;
}

static bool try_pspec(const trn_mesh *mesh, const char *bytes, size_t length)
{
    trn_pspec spec, back;
    trn_placement placement[TRN_MAX_AXES];
    trn_error error = { TRN_OK, "" };
    char *text = own(bytes, length), written[512];
    memset(&spec, 0x5a, sizeof spec);
    const trn_status status = trn_pspec_read(&spec, mesh, text, &error);
    assert(trn_pspec_parse(&back, mesh, text) == status);
    if (status) {
        check_refusal(status, &error, &spec, sizeof spec);
        free(text);
        return false;
    }
    assert(trn_pspec_check(&spec, mesh, 0, NULL) == TRN_OK);
    const size_t size = trn_pspec_format(&spec, mesh, written, sizeof written);
    assert(size < sizeof written && strlen(written) == size);
    assert(trn_pspec_parse(&back, mesh, written) == TRN_OK && memcmp(&back, &spec, sizeof spec) == 0);
    trn_pspec_placements(&spec, mesh, placement);
    assert(trn_pspec_of_placements(&back, mesh, placement, NULL) == TRN_OK && trn_pspec_same(&back, &spec));
    free(text);
    return true;
}

/* 64 chips: levels x, y, z. */
static trn_topology ultraserver(void) { return trn_topology_of(TRN_TRN2_ULTRASERVER); }
static const char *const axes_of_shardings = "data=2,tensor=4,pipe=4,expert=2";

#if defined(TRN_LIBFUZZER)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const trn_topology net = ultraserver();
    trn_mesh mesh;
    assert(trn_mesh_init(&mesh, &net, axes_of_shardings) == TRN_OK);
    try_mesh(&net, (const char *)data, size);
    try_pspec(&mesh, (const char *)data, size);
    return 0;
}

#else

enum { ROOM = 160 };

#include "fuzz/line.h"

static void blank(line *l)
{
    static const char *const some[] = { "", "", "", " ", "\t", "  \n" };
    put(l, some[below(6)]);
}

/* ---- texts that are right, mostly ---- */

static const char *const names[] = { "data", "tensor", "pipe", "expert", "d", "_x9" };

static void random_mesh(line *l)
{
    static const char *const levels[] = { "x", "y", "z", "x*y", "z*x", "y*z", "z*y*x" };
    const bool placed = one_in(3);
    int left = 64;
    for (int a = 0; a < 6; a++) {
        int size = placed ? 1 << 2 * below(3) : 1 << below(4);
        if (size > left || a == 5) size = left;
        left /= size;
        char number[16];
        snprintf(number, sizeof number, "%s%d", one_in(9) ? "0" : "", size);
        put(l, a ? "," : "");
        blank(l), put(l, names[one_in(20) ? below(6) : a]), blank(l);
        put(l, "="), blank(l), put(l, number), blank(l);
        if (placed && size > 1 && !one_in(3))
            put(l, "@"), put(l, size == 4 ? levels[below(3)] : size == 16 ? levels[3 + below(3)] : levels[6]);
        if (left == 1 && !one_in(6)) break;
    }
}

static void random_list(line *l, int *next, int count)
{
    for (int i = 0; i < count; i++) {
        put(l, i ? "," : "");
        blank(l), put(l, names[one_in(30) ? below(6) : (*next)++ % 6]), blank(l);
    }
}

static void random_pspec(line *l)
{
    int next = below(4);
    if (!one_in(6)) {
        put(l, "(");
        for (int d = 0, rank = below(one_in(9) ? 9 : 4); d < rank; d++) {
            put(l, d ? "," : ""), blank(l);
            switch (below(5)) {
            case 0: put(l, "*"); break;
            case 1: put(l, "None"); break;
            case 2: put(l, "("), random_list(l, &next, below(3)), put(l, ")"); break;
            default: random_list(l, &next, 1);
            }
            blank(l);
        }
        put(l, ")");
        if (!one_in(3)) return;
        blank(l), put(l, "+");
    }
    blank(l), put(l, "sum"), blank(l), put(l, "("), random_list(l, &next, 1 + below(3)), put(l, ")"), blank(l);
}

/* ---- and no longer right ---- */

static void insert(line *l, size_t at, const char *text)
{
    line rest = *l;
    l->length = at;
    put(l, text);
    put(l, rest.text + at);
}

static void spoil(line *l)
{
    static const char *const token[] = { "(",    ")", ",",  "*",          "+",    "=", "@",    "sum", "None",
                                         "data", "2", "-1", "9999999999", "\x80", " ", "sum(", "()" };
    const size_t at = l->length ? (size_t)below((int)l->length) : 0, more = (size_t)below(6);
    switch (below(5)) {
    case 0: insert(l, at, token[below(17)]); break;
    case 1: l->text[l->length = at] = 0; break;
    case 2:
        if (at + more < l->length)
            memmove(l->text + at, l->text + at + more, l->length + 1 - at - more), l->length -= more;
        break;
    case 3:
        if (l->length) l->text[at] = (char)(1 + below(255));
        break;
    default: {
        line copy = *l;
        insert(l, at, copy.text + (l->length ? below((int)l->length) : 0));
    }
    }
}

int main(int argc, char **argv)
{
    const trn_topology net = ultraserver();
    trn_mesh mesh;
    long accepted[2] = { 0, 0 };
    assert(trn_mesh_init(&mesh, &net, axes_of_shardings) == TRN_OK);
    fuzzing_start(argc, argv, 200000, 5000000);
    while (fuzzing_next(&rng)) {
        const long i = fuzzing.number;
        line l = { "", 0 };
        (i % 2 ? random_mesh : random_pspec)(&l);
        for (int wounds = one_in(2) ? below(4) : 0; wounds > 0; wounds--) spoil(&l);
        accepted[i % 2] += i % 2 ? try_mesh(&net, l.text, l.length) : try_pspec(&mesh, l.text, l.length);
    }
    const long count = fuzzing_end();
    printf("%ld texts, accepted: %ld shardings, %ld meshes\n", count, accepted[0], accepted[1]);
    /* A parser that refuses everything, or nothing, is not being tested. */
    for (int i = 0; i < 2; i++)
        if (count >= 1000 && (accepted[i] < count / 20 || accepted[i] > count / 2 * 9 / 10)) return 1;
    return 0;
}

#endif
