"""Execution traces of Chakra written byte by byte: no protobuf, no code of ours. For chakra.sh and its like."""
import struct


def number(n: int) -> bytes:
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(which: int, value: 'int | float | bytes | str') -> bytes:
    if isinstance(value, float):
        return number(which << 3 | 1) + struct.pack('<d', value)
    if isinstance(value, int):
        return number(which << 3) + number(value & (1 << 64) - 1)
    block = value.encode() if isinstance(value, str) else value
    return number(which << 3 | 2) + number(len(block)) + block


def framed(block: bytes) -> bytes:
    return number(len(block)) + block


KINDS = {'real': 3, 'int32': 7, 'int64': 9, 'uint32': 11, 'uint64': 13, 'flag': 27, 'flags': 28, 'text': 29}
OF = {'num_ops': 'int64', 'tensor_size': 'uint64', 'comm_type': 'int64', 'comm_size': 'int64', 'comm_src': 'int32',
      'comm_dst': 'int32', 'comm_tag': 'int32', 'is_cpu_op': 'flag', 'pg_name': 'text', 'involved_dim': 'flags',
      'comm_priority': 'int32', 'frobnicate': 'int64', 'model_ideal_s': 'real', 'model_expected_s': 'real'}
WORK, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 5, 6, 7


def attribute(name: str, value: 'int | float | bytes | str', kind: str = '') -> bytes:
    return field(10, field(1, name) + field(KINDS[kind or OF[name]], value))


def node(number_of: int, kind: int, name: str = 'x', waits: 'tuple[int, ...]' = (), micros: int = 0,
         **more: 'int | float | bytes | str') -> bytes:
    out = field(1, number_of) + field(2, name) + field(3, kind)
    for i, wait in enumerate(waits):
        out += field(5 if i % 2 else 4, wait)
    if micros:
        out += field(7, micros)
    return framed(out + b''.join(attribute(key, value) for key, value in more.items()))


def metadata(version: str = '0.0.4') -> bytes:
    return framed(field(1, version))


def write(prefix: str, ranks: 'list[list[bytes]]', head: bytes = metadata()) -> None:
    for rank, nodes in enumerate(ranks):
        with open(f'{prefix}.{rank}.et', 'wb') as out:
            out.write(head + b''.join(nodes))
