/* stopwatch RUNS -- COMMAND ... [-- COMMAND ...]: runs the commands in turn, RUNS times round, and prints one line for
 * each: fastest and median wall time, the least processor time, and the median of the user's part of it, all in
 * milliseconds.
 *
 * Taking turns lets a busy moment of the machine hit every command alike; the minimum is what the work itself costs.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_COMMANDS = 8, MAX_RUNS = 1000 };

static double wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double ms(struct timeval t) { return (double)t.tv_sec * 1e3 + (double)t.tv_usec * 1e-3; }

/* Processor time of all children that have ended, and the part of it outside the kernel. */
static double cpu_ms(double *user)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    *user = ms(used.ru_utime);
    return *user + ms(used.ru_stime);
}

static int run(char **command)
{
    const pid_t child = fork();
    if (child == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double wall[MAX_COMMANDS][MAX_RUNS], cpu[MAX_COMMANDS][MAX_RUNS], user[MAX_COMMANDS][MAX_RUNS];
    char **command[MAX_COMMANDS];
    int commands = 0;
    const int runs = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--") != 0) continue;
        argv[i] = NULL;
        if (commands < MAX_COMMANDS && i + 1 < argc) command[commands++] = &argv[i + 1];
    }
    if (runs < 1 || runs > MAX_RUNS || commands == 0) {
        fprintf(stderr, "usage: stopwatch RUNS -- COMMAND ... [-- COMMAND ...], RUNS from 1 to %d\n", MAX_RUNS);
        return 2;
    }
    for (int r = 0; r < runs; r++)
        for (int c = 0; c < commands; c++) {
            double user_before, user_after;
            const double wall_before = wall_ms(), cpu_before = cpu_ms(&user_before);
            const int status = run(command[c]);
            wall[c][r] = wall_ms() - wall_before;
            cpu[c][r] = cpu_ms(&user_after) - cpu_before;
            user[c][r] = user_after - user_before;
            if (status != 0) {
                fprintf(stderr, "stopwatch: command %d (%s) failed with status %d\n", c + 1, command[c][0], status);
                return 1;
            }
        }
    for (int c = 0; c < commands; c++) {
        qsort(wall[c], (size_t)runs, sizeof(double), by_value);
        qsort(cpu[c], (size_t)runs, sizeof(double), by_value);
        qsort(user[c], (size_t)runs, sizeof(double), by_value);
        printf("%.1f %.1f %.1f %.1f\n", wall[c][0], wall[c][runs / 2], cpu[c][0], user[c][runs / 2]);
    }
    return 0;
}
