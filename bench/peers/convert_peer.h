/* convert_peer.h - what a peer of trnbench convert offers: loops that convert, one after another element.
 * SPDX-License-Identifier: MIT
 *
 * C and C++. The peers share no code with trnmath: each is an object of its own, built with -O3 -march=native so that
 * it is at its best. Formats have the names of trnbench's --from and --to.
 */
#ifndef BENCH_PEERS_CONVERT_PEER_H
#define BENCH_PEERS_CONVERT_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum convert_peer_rounding { /* in the order of trn_rounding */
                                     PEER_NEAREST_EVEN = 0,
                                     PEER_STOCHASTIC,
                                     PEER_TOWARD_ZERO,
                                     PEER_TOWARD_POSITIVE,
                                     PEER_TOWARD_NEGATIVE,
                                     PEER_TO_ODD
} convert_peer_rounding;

typedef struct convert_peer_what {
    const char *from, *to; /* "f32", "e4m3", "mxfp8_e4m3fn" */
    convert_peer_rounding rounding;
    int saturate;
    int random_bits; /* stochastic: how many trnmath takes; a peer may take more or fewer */
} convert_peer_what;

typedef struct convert_peer_part {
    void *dst;
    uint8_t *dst_scale; /* block formats: one for 32 elements */
    const void *src;
    const uint8_t *src_scale;
    size_t n;
    uint64_t seed;
} convert_peer_part;

typedef struct convert_peer_loop {
    void (*run)(const convert_peer_part *part, const void *with);
    const void *with; /* what run wants to know besides */
} convert_peer_loop;

typedef struct convert_peer {
    const char *name;
    const char *version;                                      /* and how it was compiled */
    int gives_values;                                         /* binary32 values instead of codes */
    convert_peer_loop (*find)(const convert_peer_what *what); /* run NULL: this peer cannot */
} convert_peer;

extern const convert_peer convert_peer_plain, convert_peer_ml_dtypes, convert_peer_cpfloat;

#ifdef __clang__
#define CONVERT_PEER_COMPILER __VERSION__ " -O3 -march=native" /* begins with clang's name */
#else
#define CONVERT_PEER_COMPILER "gcc " __VERSION__ " -O3 -march=native"
#endif

#ifdef __cplusplus
}
#endif

#endif /* BENCH_PEERS_CONVERT_PEER_H */
