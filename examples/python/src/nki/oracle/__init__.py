"""An oracle for programs that write kernels: legal or not, right or not, how far off, how slow, and in which line.

    python3 -m nki.oracle                     one JSON object a line in, one a line out, in order
    python3 -m nki.oracle --listen SOCKET     the same for many clients
    python3 -m nki.oracle FILE.py ENTRY       for a person; --help
    python3 -m nki.oracle --mcp               for assistants: the Model Context Protocol on standard input and output

schema.json says what requests and answers are. Right means: without its roundings the kernel is the reference, and its
roundings are those of the formats that were asked for. SPDX-License-Identifier: MIT
"""
