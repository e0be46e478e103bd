/* ml_dtypes.cc - the conversions of ml_dtypes, JAX's and NumPy's small formats, as what check.c checks; bfloat16 and
 * float16 are Eigen's there.
 * SPDX-License-Identifier: MIT
 *
 * c++ -x c++ -std=c++17 -O2 -IML_DTYPES -IEIGEN -DCHECK_WITH='"with/ml_dtypes.cc"' check.c -o check
 *
 * EIGEN is newer than 3.4.0, which Debian has.
 */
#include "ml_dtypes/include/float8.h"
#include "ml_dtypes/include/mxfloat.h"

static float single(uint64_t word)
{
    const uint32_t bits = (uint32_t)word;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

template <typename T> static uint64_t code_of(T x)
{
    uint64_t code = 0;
    memcpy(&code, &x, sizeof x);
    return code;
}

template <typename T> static T value_of(uint64_t code)
{
    T x;
    memcpy(static_cast<void *>(&x), &code, sizeof x);
    return x;
}

using convert = uint64_t (*)(float);
struct format {
    const char *name;
    convert nearest, saturating, toward_zero; /* NULL: it has none */
    float (*decode)(uint64_t);
};

template <typename T> static uint64_t cast(float x) { return code_of(static_cast<T>(x)); }
template <typename T, bool saturate, bool truncate> static uint64_t from(float x)
{
    return code_of(T::template ConvertFrom<saturate, truncate>(x));
}
template <typename T> static float to_float(uint64_t code) { return static_cast<float>(value_of<T>(code)); }

#define NARROW(name)                                                                                                   \
    {                                                                                                                  \
#name, cast < ml_dtypes::name>, from < ml_dtypes::name, true, false>, from < ml_dtypes::name, false, true>,    \
            to_float < ml_dtypes::name>                                                                                \
    }
static const format formats[] = {
    { "bfloat16", cast<Eigen::bfloat16>, nullptr, nullptr, to_float<Eigen::bfloat16> },
    { "float16", cast<Eigen::half>, nullptr, nullptr, to_float<Eigen::half> },
    NARROW(float8_e4m3),
    NARROW(float8_e4m3fn),
    NARROW(float8_e5m2),
    NARROW(float8_e3m4),
    NARROW(float8_e8m0fnu),
    NARROW(float6_e2m3fn),
    NARROW(float6_e3m2fn),
    NARROW(float4_e2m1fn),
};

static const format *find(const check_file *file, const char *key)
{
    for (const format &f : formats)
        if (check_is(file, key, f.name)) return &f;
    return nullptr;
}

static int encode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const format *f = find(file, "to");
    const bool saturate = check_is(file, "overflow", "saturate");
    convert run = nullptr;
    if (f && check_is(file, "rounding", "nearest_even")) run = saturate ? f->saturating : f->nearest;
    if (f && check_is(file, "rounding", "toward_zero") && !saturate) run = f->toward_zero;
    if (!run) return CHECK_NOT_MINE;
    out[0] = run(single(in[0]));
    return CHECK_DONE;
}

static int decode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const format *f = find(file, "from");
    if (!f) return CHECK_NOT_MINE;
    out[0] = code_of(f->decode(in[0]));
    return CHECK_DONE;
}

static const check_operation check_table[] = { { "encode", encode }, { "decode", decode }, { nullptr, nullptr } };
