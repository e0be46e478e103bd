/* main.c - where every program here begins and ends: what it printed has arrived, or its status says that it has not.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "files.h"

#include "completion.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "io/io.h"

/* A stream that was closed by whoever started us must not become the first file that we open. Written to, or read from,
 * what stands there fails. */
static void hold_standard_streams(void)
{
    static const int mode[] = { O_WRONLY, O_RDONLY, O_RDONLY };
    for (int i = 0; i < 3; i++)
        if (fcntl(i, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode[i]) != i) _exit(APP_USAGE);
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    signal(SIGPIPE, SIG_DFL); /* "mxq ... | head": who starts us may ignore it, and nobody wants to read of that */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a sentence, also where it is standard output */
    io_may_read = app_reads;
    const char *shell = app_completion_asked(argc, argv);
    return app_flush(shell ? app_completion(shell, argv, app_run) : app_run(argc, argv));
}
