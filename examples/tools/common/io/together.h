/* together.h - several outputs of a run: afterwards all are the new ones, or all are what they were.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/together.h"
 *     io_output *file[] = { &csv, &json };    open, and written
 *     if (!io_show_together(file, 2, &stage, why)) return fprintf(stderr, "%s\n", why), 2;
 *
 * DOES: all are on the disk before the first of them moves, and a helper moves them: a process of a session of its own,
 *     which no signal to the program or to its group reaches. Whoever of the two is killed, SIGKILL included, the other
 *     one goes on: a program whose helper died starts another. A move that fails undoes those before it (where the
 *     system exchanges two names: Linux). Between the first and the last move lie microseconds, and nothing but moves.
 * DOES NOT: promise anything where both die between two moves, as when the power fails or a container is torn down:
 *     then some outputs are new, others old, and each is whole. The moves are made in the order of the list, the staged
 *     one first, so that no report is newer than what it tells of. What is left beside the old ones is a NAME...part,
 *     which the next run that writes NAME removes, and io_output.swept says so.
 *
 * CONTENTS
 *     io_show_together     the outputs appear
 */
#ifndef IO_TOGETHER_H
#define IO_TOGETHER_H

#include <sys/wait.h>

#include "stage.h"

typedef struct io_move {
    const char *from, *to;
    io_stage *stage; /* whose move it is; NULL: a file's */
    io_output *file;
    dev_t device; /* of what is moved: when `to` is it, it has been */
    ino_t number;
} io_move;

enum { IO_MOVES = IO_OUTPUTS + 1 };

IO_FN bool io_moved(const io_move *m)
{
    struct stat s;
    return lstat(m->to, &s) == 0 && s.st_dev == m->device && s.st_ino == m->number;
}

IO_FN int io_moves_left(const io_move *m, int moves)
{
    int left = 0;
    for (int i = 0; i < moves; i++) left += !io_moved(&m[i]);
    return left;
}

/* What is there changes places with what is new, so that it can be undone. */
IO_FN int io_move_make(const io_move *m)
{
    struct stat s;
    const mode_t kind = m->stage && m->stage->folder ? S_IFDIR : S_IFREG;
    const bool there = lstat(m->to, &s) == 0 && (s.st_mode & S_IFMT) == kind && (!m->stage || m->stage->replaces);
    if (there && io_exchange(m->from, m->to) == 0) return 0;
    if (there && !io_rename_lacks_flags(errno)) return -1;
    return m->stage ? io_stage_move(m->stage) : rename(m->from, m->to);
}

IO_FN void io_move_undo(const io_move *m)
{
    struct stat s;
    if (!io_moved(m)) return;
    if (lstat(m->from, &s) == 0)
        io_exchange(m->from, m->to);
    else
        rename(m->to, m->from);
}

IO_FN int io_moves_undo(const io_move *m, int moves)
{
    while (moves-- > 0) io_move_undo(&m[moves]);
    return 0;
}

/* All that are not made yet: 0, or errno, and then none is; *which failed. */
IO_FN int io_moves_make_telling(const io_move *m, int moves, int *which)
{
    for (int i = 0; i < moves; i++) {
        if (io_moved(&m[i]) || io_move_make(&m[i]) == 0) continue;
        const int trouble = errno ? errno : EIO;
        if (which) *which = i;
        return io_moves_undo(m, i), trouble;
    }
    return 0;
}

IO_FN int io_moves_make(const io_move *m, int moves) { return io_moves_make_telling(m, moves, NULL); }

/* By a helper, and by the next one where it is killed; where there can be none, by ourselves. -1: all were killed. */
IO_FN int io_moves_by_helpers(const io_move *m, int moves, int (*work)(const io_move *m, int moves))
{
    for (int i = 0; i < moves + 2; i++) {
        int state = 0;
        const pid_t helper = fork();
        if (helper < 0) return work(m, moves);
        if (helper == 0) {
            setsid();
            _exit(work(m, moves));
        }
        pid_t ended;
        while ((ended = waitpid(helper, &state, 0)) < 0 && errno == EINTR) continue;
        if (ended == helper && WIFEXITED(state)) return WEXITSTATUS(state);
    }
    return -1;
}

/* Where somebody kills every helper, what was moved is moved back. What failed is tried once more, for its name. */
IO_FN int io_moves_helped(const io_move *m, int moves, int *which)
{
    const int trouble = moves > 1 ? io_moves_by_helpers(m, moves, io_moves_make) : 1;
    if (trouble > 0) return io_moves_make_telling(m, moves, which);
    if (trouble == 0 || io_moves_left(m, moves) == 0) return 0;
    io_moves_by_helpers(m, moves, io_moves_undo);
    return EINTR;
}

IO_FN bool io_move_take(io_move *list, int *moves, io_move m)
{
    struct stat s;
    list[*moves] = m;
    if (lstat(m.from, &s) != 0) return false;
    list[*moves].device = s.st_dev;
    list[(*moves)++].number = s.st_ino;
    return true;
}

IO_FN void io_together_fail(const io_move *m, int trouble, char *why)
{
    if (m->stage)
        io_stage_fail(m->stage, why, "it cannot be replaced (%s)", strerror(trouble));
    else
        io_output_fail(m->file, why, "it cannot be replaced (%s)", strerror(trouble));
}

/* files: open ones, and NULLs; stage: NULL, or one that is open. False: what was there is there, and one of them may
 * still be open: discard all. True with a sentence in `why`: io_stage_commit's. */
IO_FN bool io_show_together(io_output *const *file, int files, io_stage *stage, char *why)
{
    io_move move[IO_MOVES];
    sigset_t all, before;
    int moves = 0, which = 0;
    why[0] = '\0';
    for (int i = 0; i < files; i++)
        if (file[i] && !io_output_finish(file[i], why)) return false;
    if (stage && !io_stage_sync(stage, why)) return false;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    bool ok = !stage || io_move_take(move, &moves, (io_move){ stage->fresh, stage->target, stage, NULL, 0, 0 });
    for (int i = 0; i < files && ok; i++)
        if (file[i] && file[i]->temporary)
            ok = io_move_take(move, &moves, (io_move){ file[i]->temporary, file[i]->target, NULL, file[i], 0, 0 });
    const int trouble = ok ? io_moves_helped(move, moves, &which) : errno;
    if (trouble) io_together_fail(&move[ok ? which : moves], trouble, why);
    for (int i = 0; i < files && !trouble; i++)
        if (file[i]) io_output_settle(file[i]);
    if (stage && !trouble) io_stage_settle(stage, why);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return !trouble;
}

#endif /* IO_TOGETHER_H */
