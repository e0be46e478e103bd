/* convert_ml_dtypes.cc - the conversions of ml_dtypes' C++ headers, in the plain loop that its NumPy casts are.
 * SPDX-License-Identifier: MIT
 *
 * Built only where the headers are: see TRN_PEERS in tests/CMakeLists.txt. bfloat16 and float16 are Eigen's there.
 */
#include "convert_peer.h"

#include <cstring>

#include "ml_dtypes/include/float8.h"
#include "ml_dtypes/include/mxfloat.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

namespace
{

using run_fn = void (*)(const convert_peer_part *, const void *);

/* How one element is converted: the types' own casts, and ml_dtypes' templates for what casts cannot say. */
template <typename From, typename To> void cast(const convert_peer_part *part, const void *)
{
    const From *x = static_cast<const From *>(part->src);
    To *y = static_cast<To *>(part->dst);
    for (size_t i = 0; i < part->n; i++) y[i] = static_cast<To>(x[i]);
}

template <typename To, bool saturate, bool truncate> void convert(const convert_peer_part *part, const void *)
{
    const float *x = static_cast<const float *>(part->src);
    To *y = static_cast<To *>(part->dst);
    for (size_t i = 0; i < part->n; i++) y[i] = To::template ConvertFrom<saturate, truncate>(x[i]);
}

using namespace ml_dtypes;
using bf16 = Eigen::bfloat16;
using f16 = Eigen::half;

struct entry {
    const char *from, *to;
    run_fn nearest, saturating, toward_zero;
};

#define NARROW(name, type)                                                                                             \
    { "f32", name, cast<float, type>, convert<type, true, false>, convert<type, false, true> },                        \
        { name, "f32", cast<type, float>, nullptr, nullptr }, { "bf16", name, cast<bf16, type>, nullptr, nullptr },    \
        { "f16", name, cast<f16, type>, nullptr, nullptr }, { name, "bf16", cast<type, bf16>, nullptr, nullptr },      \
    {                                                                                                                  \
        name, "f16", cast<type, f16>, nullptr, nullptr                                                                 \
    }

const entry entries[] = {
    { "f32", "bf16", cast<float, bf16>, nullptr, nullptr },
    { "f32", "f16", cast<float, f16>, nullptr, nullptr },
    { "bf16", "f32", cast<bf16, float>, nullptr, nullptr },
    { "f16", "f32", cast<f16, float>, nullptr, nullptr },
    NARROW("e4m3", float8_e4m3),
    NARROW("e4m3fn", float8_e4m3fn),
    NARROW("e5m2", float8_e5m2),
    NARROW("e3m4", float8_e3m4),
    NARROW("e8m0", float8_e8m0fnu),
    NARROW("e2m3", float6_e2m3fn),
    NARROW("e3m2", float6_e3m2fn),
    NARROW("e2m1", float4_e2m1fn),
};

convert_peer_loop find(const convert_peer_what *what)
{
    convert_peer_loop loop = { nullptr, nullptr };
    for (const entry &e : entries) {
        if (std::strcmp(e.from, what->from) != 0 || std::strcmp(e.to, what->to) != 0) continue;
        if (what->rounding == PEER_NEAREST_EVEN) loop.run = what->saturate ? e.saturating : e.nearest;
        if (what->rounding == PEER_TOWARD_ZERO && !what->saturate) loop.run = e.toward_zero;
    }
    return loop;
}

} // namespace

extern "C" const convert_peer convert_peer_ml_dtypes = {
    "ml_dtypes",
    "ml_dtypes " CONVERT_PEER_VERSION " with Eigen " TEXT(EIGEN_MAJOR_VERSION) "." TEXT(EIGEN_MINOR_VERSION) "." TEXT(
        EIGEN_PATCH_VERSION) ", " CONVERT_PEER_COMPILER,
    0, find
};
