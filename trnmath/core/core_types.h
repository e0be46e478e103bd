/* core/core_types.h - what a core consists of: memories, tiles in them, who used what until when.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_CORE_CORE_TYPES_H
#define TRNI_CORE_CORE_TYPES_H

#include "../machine/spec_physical.h"
#include "../data/tensor.h"

/* ---- memory ---- */

enum {
    TRNI_QUADRANTS = 4,
    TRNI_QUADRANT = 32, /* partitions */
    TRNI_MEMORY_ROWS = 128,
    TRNI_TILES = 2048, /* at the same time, in each memory */
    TRNI_SEGMENTS = 2 * TRNI_TILES + 2,
    TRNI_TILE_ALIGN = 64, /* bytes */
    TRNI_TILE_NAME = 24,
    TRNI_ROW_GAP = 2048 + 64, /* bytes between partitions on the host: rows of a tile fall into different cache sets */
    TRNI_POISON = 0xff
};

/* Partitions [p, p_end) x bytes [b, b_end) of each; in HBM rows of a tensor and bytes of a row. Where step > 0 not all
 * rows: of every `step` from p on the first `rows`. */
typedef struct trni_rect {
    int64_t p, p_end, b, b_end;
    int64_t step, rows;
} trni_rect;

typedef struct trni_allocation {
    char name[TRNI_TILE_NAME];
    trni_rect at;
    int64_t unwritten;      /* bytes; 0 = nothing to look for */
    uint64_t serial;        /* of its allocation */
    double ready_s;         /* when the instructions are done that used its memory before */
    int access, accesses;   /* core/core_clock.h's list */
    bool live, anything;    /* anything: nobody asks what of it was written */
    int64_t wrote, brought; /* the last instruction that wrote to it while incomplete; a number in the journal */
    const char *wrote_name; /* null: none did */
    int64_t joined;         /* columns that stand before its own, to a compiler: core/core_joined.h */
    bool joins;             /* something was written that says so */
} trni_allocation;

enum { TRNI_JOURNAL = 256 };

/* An instruction that carried elements from one tile to another which nothing had written. */
typedef struct trni_poison_entry {
    int64_t instruction, wrote; /* wrote: of the source's allocation, at that time */
    int64_t before;             /* the entry that brought it there; entries are numbered from 1, 0 = none */
    const char *name, *wrote_name;
    int partitions, incomplete;        /* of the source's tile: those, and so many not written in full */
    const trni_allocation *allocation; /* the source's, as long as it has this serial */
    uint64_t serial;
    char from[TRNI_TILE_NAME];
} trni_poison_entry;

/* Bytes of one quadrant that a tile holds, or held. */
typedef struct trni_segment {
    int64_t b, b_end;
    int tile; /* -1 = freed */
    double ready_s;
    char name[TRNI_TILE_NAME];
} trni_segment;

typedef struct trni_memory {
    trn_space space;
    char *base;
    uint64_t *written;   /* a bit per byte, rows as in base */
    uint64_t *by_matmul; /* PSUM before Trainium3: the same for what a matmul wrote last; else null */
    int64_t pitch;       /* bytes from a partition to the next */
    int64_t partition_bytes, bank_bytes;
    bool poison;
    trni_allocation *tile;                 /* [TRNI_TILES] */
    int tiles;                             /* ever used, of these */
    trni_segment *segment[TRNI_QUADRANTS]; /* ascending, apart */
    int segments[TRNI_QUADRANTS];
    int64_t used[TRNI_QUADRANTS]; /* bytes of a partition */
    int64_t high_partition, high_total;
    uint64_t serial;
    int64_t place; /* 1 + the byte at which the next tile begins, which is free; 0: where there is room */
    bool rotates;  /* the next tile begins behind the last one, or soon after, where memory is ready first */
    int64_t next;
} trni_memory;

enum { TRNI_CELL_WORDS = (256 * 1024) / 64 + 1 };

/* Partitions x the same bytes of each. */
typedef struct trni_cells {
    trni_rect at;
    bool partition[TRNI_MEMORY_ROWS];
    int64_t word, words;            /* of a row of bits; it begins at a word */
    uint64_t mask[TRNI_CELL_WORDS]; /* [words] */
} trni_cells;

/* Rectangles of HBM that a core has used since somebody last looked: many cores ask (cores/cores_race.h). Those after
 * the last one that there is room for are forgotten. */
enum { TRNI_TOUCHES = 256 };

typedef struct trni_touch {
    const char *at;
    int64_t rows, bytes, pitch; /* bytes: of a row */
    int64_t instruction;
    bool write;
    char name[TRNI_TILE_NAME];
} trni_touch;

typedef struct trni_touches {
    int count;
    trni_touch touch[TRNI_TOUCHES];
} trni_touches;

/* ---- indirect views: core/core_indirect.h ---- */

enum {
    TRNI_INDIRECT_VIEWS = 1024,           /* the last ones that were made are remembered */
    TRNI_INDIRECT_ROOM = 128 * 32 * 1024, /* bytes: elements of all indirect operands of an instruction */
    TRNI_INDIRECT_OPERANDS = 5
};

typedef struct trni_indirect_view {
    trn_tensor data, index;
    int64_t count, inner;
    int64_t number; /* from 1 */
} trni_indirect_view;

typedef struct trni_indirect_operand {
    const trni_indirect_view *view;
    trn_tensor *argument; /* in the core's copy of the args */
    int operand, index;   /* of the instruction's operands */
} trni_indirect_operand;

typedef struct trni_indirect {
    char *room;   /* [TRNI_INDIRECT_ROOM] */
    int64_t made; /* views so far */
    int operands; /* of the instruction that runs */
    trni_indirect_operand operand[TRNI_INDIRECT_OPERANDS];
    trni_indirect_view view[TRNI_INDIRECT_VIEWS]; /* number n at n % TRNI_INDIRECT_VIEWS */
} trni_indirect;

/* ---- time ---- */

enum { TRNI_LANE_WRITES = 5 }; /* quantize_mx: codes, and scales in four quadrants */

enum { TRNI_CHANNEL_STRETCHES = 256 };

typedef struct trni_stretch {
    double from_s, to_s;
} trni_stretch;

typedef struct trni_access {
    trni_rect at;
    double end_s;
    int next; /* -1 = the last */
    bool write;
} trni_access;

typedef struct trni_history {
    trni_access *access; /* [TRNI_ACCESSES], the caller's */
    int used, unused;    /* so many from the start were ever used; a list of those that are free again */
} trni_history;

/* All DMA engines of a core, which share every transfer. There are many queues, so that a transfer that waits does not
 * hold up a later one: each takes the first gap that is long enough. Gaps far back are forgotten. */
typedef struct trni_channel {
    double floor_s;
    int stretches;
    trni_stretch taken[TRNI_CHANNEL_STRETCHES + 1]; /* ascending, apart */
} trni_channel;

/* One engine. Its instructions run in the order in which they are given; at the measured pace what is ready runs first,
 * as a compiler that reorders them would have it. */
typedef struct trni_lane {
    trni_channel order;
    int64_t instructions;
    double free_s, busy_s, cycles;
    bool brief; /* the last instruction was short */
    int writes; /* what it wrote: */
    const trni_allocation *written[TRNI_LANE_WRITES];
    trni_rect at[TRNI_LANE_WRITES];
} trni_lane;

#endif /* TRNI_CORE_CORE_TYPES_H */
