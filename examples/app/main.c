/* main.c - where every program here begins and ends: what it printed has arrived, or its status says that it has not.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "files.h"

#include <errno.h>
#include <fcntl.h>
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
    io_may_read = app_reads;
    return app_flush(app_run(argc, argv));
}
