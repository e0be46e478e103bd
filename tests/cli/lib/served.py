# Runs scripts of Python that need NumPy, which takes a quarter of a second to import, in children of one process that
# has it. Each line of standard input names a directory; the file REQUEST has the script and its arguments, each ended
# by a NUL; what it prints goes to REQUEST.out and REQUEST.err, and its exit status, a line, to standard output.
# Usage: served.py REQUEST (lib/served.sh starts it)
import os
import runpy
import sys
import traceback

import numpy  # noqa: F401  (its being imported here is the point)


def child(request: str, directory: str) -> int:
    for name, descriptor in (('.out', 1), ('.err', 2)):
        os.dup2(os.open(request + name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(directory)
    with open(request, encoding='utf-8') as file:
        sys.argv = file.read().split('\0')[:-1]
    sys.path[0] = os.path.dirname(sys.argv[0])
    try:
        runpy.run_path(sys.argv[0], run_name='__main__')
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            status = child(sys.argv[1], line.rstrip('\n'))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) & 255, flush=True)


main()
