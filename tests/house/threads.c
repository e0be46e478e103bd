/* threads: every door from four threads at once, on inputs that they share, from the first call of the process on; for
 * ThreadSanitizer (threads.sh). Each thread must get what the others get. */
#include <pthread.h>
#include <stdio.h>

#include "tests/twin/every_door.h"

enum { THREADS = 4 };
static pthread_barrier_t together;
static uint64_t result[THREADS][EVERY_DOOR];

static uint64_t hash_of(const door_room *r)
{
    const unsigned char *byte = (const unsigned char *)r;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < offsetof(door_room, vector); i += 61) h = (h ^ byte[i]) * 0x100000001b3u;
    return h;
}

static void *all_doors(void *number)
{
    uint64_t *mine = result[(uintptr_t)number];
    door_room *room = (door_room *)malloc(sizeof *room);
    for (int i = 0; room && i < EVERY_DOOR; i++) {
        door_room_init(room);
        pthread_barrier_wait(&together);
        const trn_status status = every_door[i].call(room);
        if (status != TRN_OK) printf("%s: %s\n", every_door[i].name, room->error.text);
        mine[i] = status == TRN_OK ? hash_of(room) : 0;
    }
    free(room);
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    int wrong = 0;
    door_inputs();
    pthread_barrier_init(&together, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, all_doors, (void *)i)) return 2;
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < EVERY_DOOR; i++)
        for (int t = 0; t < THREADS; t++)
            if (!result[t][i] || result[t][i] != result[0][i]) {
                printf("%s: threads differ\n", every_door[i].name);
                wrong = 1;
            }
    printf("%d calls from %d threads\n", EVERY_DOOR, THREADS);
    return wrong;
}
