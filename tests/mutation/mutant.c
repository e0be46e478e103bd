/* mutant.c - which mutant a program runs: the number in TRN_MUTANT. Notes in the file TRN_MUTANT_AT, where that is set,
 * which of them it came to. Linked with every program of a build that mutate.py makes.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L
#include "mutant.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned char nowhere[TRN_MUTANTS];

int trn_mutant_on = -1;
unsigned char *trn_mutant_at = nowhere;

static __attribute__((constructor)) void begin(void)
{
    const char *number = getenv("TRN_MUTANT"), *name = getenv("TRN_MUTANT_AT");
    if (number) trn_mutant_on = (int)strtol(number, NULL, 10);
    if (!name) return;
    const int file = open(name, O_RDWR);
    void *map = file < 0 ? MAP_FAILED : mmap(NULL, TRN_MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) {
        perror(name);
        _exit(2);
    }
    close(file);
    trn_mutant_at = map; /* shared with children, and kept when the program crashes */
}
