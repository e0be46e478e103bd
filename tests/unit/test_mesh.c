/* test_mesh.c - meshes: which chip each device is, against digits written out; groups; neighbours, against the links
 * themselves; texts there and back; every refusal.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "trnmath/trn_mesh.h"
#include "twin/cases.h"

enum { MOST = 256, LINKS = 4096 };

static trn_mesh make(const trn_topology *net, const char *axes)
{
    trn_mesh mesh;
    trn_error error;
    trn_mesh_args args = { .mesh = &mesh, .net = net, .axes = axes, .error = &error };
    if (trn_mesh_make(&args)) fail_msg("%s", error.text);
    return mesh;
}

/* ---- chips of devices ---- */

static void test_natural_order(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    const trn_mesh mesh = make(&net, " data = 2 , tensor=8 ");
    assert_int_equal(mesh.axes, 2);
    assert_int_equal(mesh.devices, 16);
    assert_string_equal(mesh.axis[0].name, "data");
    for (int data = 0; data < 2; data++)
        for (int tensor = 0; tensor < 8; tensor++) {
            const int at[2] = { data, tensor }, device = data * 8 + tensor;
            int back[2];
            assert_int_equal(trn_mesh_device_at(&mesh, at), device);
            assert_int_equal(trn_mesh_chip_at(&mesh, at), device);
            assert_int_equal(trn_mesh_device_of_chip(&mesh, device), device);
            trn_mesh_coordinates(&mesh, device, back);
            assert_memory_equal(at, back, sizeof at);
        }
    const int out[2] = { 0, 8 }, below[2] = { -1, 0 };
    assert_int_equal(trn_mesh_device_at(&mesh, out), -1);
    assert_int_equal(trn_mesh_device_at(&mesh, below), -1);
    assert_int_equal(trn_mesh_chip_at(&mesh, out), -1);
    assert_int_equal(trn_mesh_chip(&mesh, 16), -1);
    assert_int_equal(trn_mesh_device_of_chip(&mesh, 16), -1);
    assert_int_equal(trn_mesh_device_of_chip(&mesh, -1), -1);
    assert_int_equal(trn_mesh_axis_named(&mesh, "tensor"), 1);
    assert_int_equal(trn_mesh_axis_named(&mesh, "tenso"), -1);
}

/* The chip of device (i, j, ...) by hand: an UltraServer's chip is 16 z + 4 y + x. */
static void test_levels(void **state)
{
    (void)state;
    static const struct {
        const char *axes;
        int weight[3][2]; /* of each axis: chips per outer and inner step of a coordinate of 4 x 4 */
    } row[] = {
        { "data=4@z,tensor=16@y*x", { { 0, 16 }, { 4, 1 } } },
        { "data=4@x,tensor=16@z*y", { { 0, 1 }, { 16, 4 } } },
        { "data=4@y,tensor=16", { { 0, 4 }, { 16, 1 } } },
        { "data=4,tensor=16@x*z", { { 0, 4 }, { 1, 16 } } },
        { "a=4,b=4@z,c=4", { { 0, 4 }, { 0, 16 }, { 0, 1 } } },
        { "a=16,b=4@x", { { 16, 4 }, { 0, 1 } } },
        { "a=4@y,b=4@x,c=4@z", { { 0, 4 }, { 0, 1 }, { 0, 16 } } },
    };
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_mesh mesh = make(&net, row[i].axes);
        for (int d = 0; d < 64; d++) {
            int at[TRN_MAX_AXES], chip = 0;
            trn_mesh_coordinates(&mesh, d, at);
            for (int a = 0; a < mesh.axes; a++)
                chip += at[a] / 4 * row[i].weight[a][0] + at[a] % 4 * row[i].weight[a][1];
            if (trn_mesh_chip(&mesh, d) != chip || trn_mesh_device_of_chip(&mesh, chip) != d)
                fail_msg("%s: device %d is chip %d, not %d", row[i].axes, d, trn_mesh_chip(&mesh, d), chip);
        }
    }
}

static void test_order(void **state)
{
    (void)state;
    static const int order[6] = { 15, 3, 7, 11, 0, 2 };
    const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
    trn_mesh mesh;
    trn_mesh_args args = { .mesh = &mesh, .net = &net, .axes = "a=2,b=3", .order = order };
    for (int count = 0; count <= 6; count += 6) {
        args.count = count;
        assert_int_equal(trn_mesh_make(&args), TRN_OK);
        for (int d = 0; d < 6; d++) {
            assert_int_equal(trn_mesh_chip(&mesh, d), order[d]);
            assert_int_equal(trn_mesh_device_of_chip(&mesh, order[d]), d);
        }
        assert_int_equal(trn_mesh_device_of_chip(&mesh, 1), -1);
    }
    args.order = NULL; /* the first six chips */
    assert_int_equal(trn_mesh_make(&args), TRN_OK);
    assert_int_equal(trn_mesh_chip(&mesh, 5), 5);
    assert_int_equal(trn_mesh_device_of_chip(&mesh, 6), -1);
}

/* A machine of 400,000 chips, in an order that is nobody's: all are found, and the one that is there twice. */
static void test_large_order(void **state)
{
    (void)state;
    const trn_topology net = trn_topology_of(TRN_PROJECT_RAINIER);
    int *order = (int *)malloc(sizeof(int) * (size_t)net.chips);
    assert_non_null(order);
    for (int i = 0; i < net.chips; i++) order[i] = (int)((int64_t)i * 7 % net.chips);
    trn_mesh mesh;
    trn_error error;
    trn_mesh_args args = { .mesh = &mesh, .net = &net, .axes = "data=6250,tensor=64", .order = order, .error = &error };
    assert_int_equal(trn_mesh_make(&args), TRN_OK);
    assert_int_equal(trn_mesh_chip(&mesh, 399999), 399993);
    order[399999] = order[50000];
    assert_int_equal(trn_mesh_make(&args), TRN_EINVAL);
    assert_string_equal(error.text, "order[399999] = 350000: this chip is there twice");
    free(order);
}

/* ---- groups ---- */

static void test_groups(void **state)
{
    (void)state;
    uint64_t rng = 1;
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    const trn_mesh mesh = make(&net, "a=2,b=4@y,c=8");
    for (int round = 0; round < 200; round++) {
        int axis[3] = { 0, 1, 2 }, chip[64], axes = cases_below(&rng, 4), members = 1;
        bool seen[64] = { false };
        for (int i = 0; i < 3; i++) {
            const int j = cases_below(&rng, 3), keep = axis[i];
            axis[i] = axis[j], axis[j] = keep;
        }
        for (int i = 0; i < axes; i++) members *= mesh.axis[axis[i]].size;
        assert_int_equal(trn_mesh_group_size(&mesh, axis, axes), members);
        const int groups = trn_mesh_groups(&mesh, axis, axes, chip);
        assert_int_equal(groups * members, 64);
        assert_int_equal(trn_mesh_groups(&mesh, axis, axes, NULL), groups);
        for (int i = 0; i < 64; i++) {
            int first[3], at[3], index = 0;
            trn_mesh_coordinates(&mesh, trn_mesh_device_of_chip(&mesh, chip[i / members * members]), first);
            trn_mesh_coordinates(&mesh, trn_mesh_device_of_chip(&mesh, chip[i]), at);
            for (int a = 0; a < axes; a++) { /* counted along the named axes, */
                index = index * mesh.axis[axis[a]].size + at[axis[a]];
                first[axis[a]] = at[axis[a]];
            }
            assert_memory_equal(first, at, sizeof at); /* the same along the others */
            assert_int_equal(index, i % members);
            assert_false(seen[chip[i]]);
            seen[chip[i]] = true;
        }
    }
    const int twice[2] = { 1, 1 }, none = 3;
    assert_int_equal(trn_mesh_groups(&mesh, twice, 2, NULL), 0);
    assert_int_equal(trn_mesh_group_size(&mesh, &none, 1), 0);
}

/* ---- neighbours ---- */

/* One link, or into a switch and out of it: by looking through all links. */
static bool joined(const trn_topology *net, int from, int to)
{
    trn_link up, down;
    for (int64_t i = 0; i < trn_topology_link_count(net); i++) {
        if (!trn_topology_link(net, i, &up) || up.from != from) continue;
        if (up.to == to) return true;
        for (int64_t j = 0; up.to >= net->chips && j < trn_topology_link_count(net); j++)
            if (trn_topology_link(net, j, &down) && down.from == up.to && down.to == to) return true;
    }
    return from == to;
}

static void test_contiguous(void **state)
{
    (void)state;
    static const struct {
        trn_system system;
        const char *axes;
        int contiguous, ring, hops[3]; /* bits by axis, and the longest step of each */
    } row[] = {
        { TRN_TRN2_48XLARGE, "data=4,tensor=4", 3, 3, { 1, 1 } }, /* columns and rows of the torus */
        { TRN_TRN2_48XLARGE, "data=2,tensor=8", 0, 0, { 2, 2 } }, /* 0 and 8, 3 and 4 are two links apart */
        { TRN_TRN2_48XLARGE, "a=2,b=2,c=4", 6, 6, { 2, 1, 1 } },
        { TRN_TRN2_48XLARGE, "one=1,all=16", 1, 1, { 0, 2 } },
        { TRN_TRN2_ULTRASERVER, "data=4,tensor=16", 1, 1, { 1, 2 } },
        { TRN_TRN2_ULTRASERVER, "data=16@y*x,tensor=4@z", 2, 2, { 2, 1 } },
        { TRN_TRN3_GEN2_ULTRASERVER, "data=36,tensor=4", 2, 2, { 3, 2 } },
        { TRN_TRN3_GEN2_ULTRASERVER, "data=2,tensor=72", 3, 3, { 1, 2 } }, /* one switch joins a rack */
        { TRN_TRN3_GEN1_ULTRASERVER, "data=32,tensor=2", 2, 2, { 3, 1 } },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const trn_topology net = trn_topology_of(row[i].system);
        const trn_mesh mesh = make(&net, row[i].axes);
        for (int a = 0; a < mesh.axes; a++) {
            trn_mesh_reach reach;
            int chip[MOST];
            const int groups = trn_mesh_groups(&mesh, &a, 1, chip), n = mesh.axis[a].size;
            bool contiguous = true, ring = true;
            for (int g = 0; g < groups; g++) {
                for (int k = 0; k + 1 < n; k++)
                    contiguous = contiguous && joined(&net, chip[g * n + k], chip[g * n + k + 1]);
                ring = ring && joined(&net, chip[g * n + n - 1], chip[g * n]);
            }
            assert_int_equal(trn_mesh_axis_contiguous(&mesh, a, &reach), contiguous);
            if (reach.contiguous != contiguous || reach.ring != (ring && contiguous) || reach.hops != row[i].hops[a] ||
                contiguous != (row[i].contiguous >> a & 1) || reach.ring != (row[i].ring >> a & 1))
                fail_msg("%s, axis %d: contiguous %d, ring %d, %d hops", row[i].axes, a, reach.contiguous, reach.ring,
                         reach.hops);
        }
    }
    const trn_topology line = trn_topology_ring(8, 1e9, 1e-6);
    const trn_mesh mesh = make(&line, "a=2,b=4");
    trn_mesh_reach reach;
    assert_true(trn_mesh_axis_contiguous(&mesh, 1, &reach)); /* half of a ring: a line */
    assert_false(reach.ring);
    assert_int_equal(reach.closing_hops, 3);
    assert_false(trn_mesh_axis_contiguous(&mesh, 2, NULL));
    const int both[2] = { 0, 1 };
    assert_true(trn_mesh_contiguous(&mesh, both, 2, &reach));
    assert_true(reach.ring);

    static const int order[3] = { 0, 2, 1 }; /* the way back is one link, the way there is not */
    trn_mesh three;
    trn_mesh_args args = { .mesh = &three, .net = &line, .axes = "a=3", .order = order };
    assert_int_equal(trn_mesh_make(&args), TRN_OK);
    assert_false(trn_mesh_axis_contiguous(&three, 0, &reach));
    assert_true(!reach.ring && reach.hops == 2 && reach.closing_hops == 1);
}

/* ---- text ---- */

static void test_format(void **state)
{
    (void)state;
    static const char *const text[] = { "data=2,tensor=32", "a=64", "data=4@z,tensor=16@y*x", "a=4@x,b=2,c=8" };
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        const trn_mesh mesh = make(&net, text[i]);
        char back[64], cut[8];
        assert_int_equal(trn_mesh_format(&mesh, back, sizeof back), strlen(text[i]));
        assert_string_equal(back, text[i]);
        memset(cut, 'x', sizeof cut);
        assert_int_equal(trn_mesh_format(&mesh, cut, 4), strlen(text[i]));
        assert_true(memcmp(cut, text[i], 3) == 0 && cut[3] == 0 && cut[4] == 'x');
        assert_int_equal(trn_mesh_format(&mesh, NULL, 0), strlen(text[i]));
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const int twice[4] = { 0, 5, 9, 5 }, outside[4] = { 0, 5, 9, 64 }, below[4] = { 0, -1, 9, 3 };
    static const struct {
        const char *axes;
        const int *order;
        int count;
        const char *text;
    } row[] = {
        { "data=2,tensor=16", NULL, 0,
          "axes data=2,tensor=16 make 32 devices, but trn2-ultraserver has 64 chips; count or order can name some of "
          "them" },
        { "data=2,tensor=16", NULL, 16, "axes data=2,tensor=16 make 32 devices, but count = 16" },
        { "data=2", NULL, 65, "count = 65, but trn2-ultraserver has 64 chips" },
        { "data=2", NULL, -1, "count = -1, but trn2-ultraserver has 64 chips" },
        { "", NULL, 0, "axes \"\": expected the name of an axis at character 1, found the end" },
        { "data=2,", NULL, 0, "axes \"data=2,\": expected the name of an axis at character 8, found the end" },
        { "data", NULL, 0, "axes \"data\": expected \"=\" at character 5, found the end" },
        { "data:2", NULL, 0, "axes \"data:2\": expected \"=\" at character 5, found \":\"" },
        { "2=data", NULL, 0, "axes \"2=data\": expected the name of an axis at character 1, found \"2\"" },
        { "data=2 tensor=32", NULL, 0,
          "axes \"data=2 tensor=32\": expected a comma or the end at character 8, found \"t\"" },
        { "data=", NULL, 0, "axis data needs a size from 1 to 2147483647 after its \"=\"" },
        { "data=0", NULL, 0, "axis data needs a size from 1 to 2147483647 after its \"=\"" },
        { "data=-2", NULL, 0, "axis data needs a size from 1 to 2147483647 after its \"=\"" },
        { "data=2147483648", NULL, 0, "axis data needs a size from 1 to 2147483647 after its \"=\"" },
        { "a=65536,b=65536", NULL, 0, "the axes up to b make more than 2147483647 devices" },
        { "data=2,data=32", NULL, 0, "axis data is there twice" },
        { "sum=64", NULL, 0, "an axis may not be called sum, a word of shardings" },
        { "None=64", NULL, 0, "an axis may not be called None, a word of shardings" },
        { "a_name_of_24_characters_=64", NULL, 0,
          "axis a_name_of_24_characters_ has a name of more than 23 characters" },
        { "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=64", NULL, 0, "axes names more than 10 axes" },
        { "data=4@w,tensor=16", NULL, 0, "axis data lies on level w, which trn2-ultraserver does not have" },
        { "data=4@,tensor=16", NULL, 0,
          "axes \"data=4@,tensor=16\": expected the name of a level at character 8, found \",\"" },
        { "data=4@z,tensor=16@z*x", NULL, 0, "level z is taken twice, the second time by axis tensor" },
        { "data=4@z,tensor=16@x", NULL, 0, "axis tensor has size 16 but its levels hold 4 chips" },
        { "data=4@z,tensor=8", NULL, 0,
          "axes data=4@z,tensor=8 make 32 devices, but trn2-ultraserver has 64 chips; count or order can name some of "
          "them" },
        { "data=4@z", NULL, 4,
          "axes on levels (\"@\") take all 64 chips of trn2-ultraserver, in the order of the levels: count says "
          "fewer" },
        { "data=4@z", twice, 0,
          "axes on levels (\"@\") take all 64 chips of trn2-ultraserver, in the order of the levels: order says "
          "another" },
        { "data=4", twice, 0, "order[3] = 5: this chip is there twice" },
        { "data=4", outside, 4, "order[3] = 64, but the chips of trn2-ultraserver are 0 to 63" },
        { "data=4", below, 4, "order[1] = -1, but the chips of trn2-ultraserver are 0 to 63" },
        { "data=65", twice, 0, "axes data=65 make 65 devices, but trn2-ultraserver has 64 chips" },
        { "data=5", twice, 4, "axes data=5 make 5 devices, but count = 4" },
    };
    const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    trn_mesh mesh, before;
    memset(&mesh, 0x5a, sizeof mesh);
    before = mesh;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        trn_error error = { TRN_OK, "" };
        trn_mesh_args args = { &mesh, &net, row[i].axes, row[i].order, row[i].count, &error };
        if (trn_mesh_make(&args) != TRN_EINVAL || error.status != TRN_EINVAL || strcmp(error.text, row[i].text))
            fail_msg("%s: '%s', not '%s'", row[i].axes, error.text, row[i].text);
        args.error = NULL;
        assert_int_equal(trn_mesh_make(&args), TRN_EINVAL);
        if (!row[i].order && !row[i].count) assert_int_equal(trn_mesh_init(&mesh, &net, row[i].axes), TRN_EINVAL);
        assert_memory_equal(&mesh, &before, sizeof mesh);
    }
    trn_topology none = net;
    none.chips = 0;
    assert_int_equal(trn_mesh_init(&mesh, &none, "a=1"), TRN_EINVAL);
    assert_int_equal(trn_mesh_init(&mesh, NULL, "a=1"), TRN_EINVAL);
    assert_int_equal(trn_mesh_init(&mesh, &net, NULL), TRN_EINVAL);
    assert_int_equal(trn_mesh_init(NULL, &net, "a=64"), TRN_EINVAL);
    assert_int_equal(trn_mesh_make(NULL), TRN_EINVAL);
    assert_memory_equal(&mesh, &before, sizeof mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_natural_order), cmocka_unit_test(test_levels),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_large_order),   cmocka_unit_test(test_groups),   cmocka_unit_test(test_contiguous),
        cmocka_unit_test(test_format),        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
