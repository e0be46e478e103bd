"""nki.collectives: what ranks do together, inside a kernel. nki.simulate(kernel, ranks=4)(...) starts a kernel on the
logical cores of four ranks; values and times are trn_cores.h's. A kernel that runs alone is a group of one.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import _core
from .index import scalar as _scalar
from .isa import dma_copy as _copy
from .operators import Op, alu as _alu
from .running import current as _current
from .tensor import NkiTensor


class rg_partition_op(enum.Enum):
    """Which ranks share a list: those with the same result of this operator and an operand."""

    bitwise_and = "bitwise_and"
    div = "div"
    mod = "mod"


class ReplicaGroup:
    """Lists of ranks; the ranks of a list work together."""

    def __init__(self, replica_groups: Iterable[Iterable[int]]) -> None:
        self.replica_groups = [[int(rank) for rank in group] for group in replica_groups]

    @staticmethod
    def from_partition_op(world_size: int, op: rg_partition_op, operand: int) -> ReplicaGroup:
        result = {rg_partition_op.bitwise_and: lambda r: r & operand, rg_partition_op.div: lambda r: r // operand,
                  rg_partition_op.mod: lambda r: r % operand}[op]
        lists: dict[int, list[int]] = {}
        for rank in range(world_size):
            lists.setdefault(result(rank), []).append(rank)
        return ReplicaGroup(list(lists.values()))

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.replica_groups)

    def __len__(self) -> int:
        return len(self.replica_groups)

    def __getitem__(self, number: int) -> list[int]:
        return self.replica_groups[number]

    def __repr__(self) -> str:
        return f"ReplicaGroup({self.replica_groups})"


def rank_id() -> int:
    """The number of this rank."""
    return _current().rank_id


def _lists(replica_group: ReplicaGroup | None) -> list[list[int]] | None:
    return None if replica_group is None else [list(group) for group in replica_group]


def _run(name: str, dsts: Sequence[NkiTensor], srcs: Sequence[NkiTensor], group: ReplicaGroup | None = None,
         dim: int = 0, op: Op | None = None, srcs1: Sequence[NkiTensor] | None = None,
         pairs: Sequence[tuple[int, int]] | None = None, channels: list[int] | None = None, counts: Any = None) -> None:
    """The collective; of a kernel that runs alone, what it is of one rank."""
    _current().settle()
    done = _current().collective(name, dsts, srcs, srcs1, _lists(group), dim, _alu(op) or 0, pairs, channels, counts)
    if done is not NotImplemented:
        return
    if group is not None and any(len(ranks) > 1 for ranks in group):
        raise _core.Error(f"{name} of several ranks: the kernel runs on one; nki.simulate(kernel, ranks=...) has more")
    if any(source or target for source, target in pairs or ()):
        raise _core.Error(f"{name} of several ranks: the kernel runs on one; nki.simulate(kernel, ranks=...) has more")
    if srcs1 is not None:
        raise _core.Error(f"{name} passes tensors round a ring of ranks: the kernel runs on one")
    for dst, src in zip(dsts, srcs):
        if counts is None:
            _copy(dst, src)
        else:
            _copy_to_oneself(name, dst, src, *counts)


def _copy_to_oneself(name: str, dst: NkiTensor, src: NkiTensor, metadata: NkiTensor, known: bool, places: bool) -> None:
    """What all_gather_v and all_to_all_v are of one rank."""
    rows = 4 if places else 3 if known else 2
    if tuple(metadata.shape[1:]) != (1,) or not rows <= metadata.shape[0] <= 4 or metadata.dtype != "uint32":
        raise _core.Error(f"{name}: metadata_tensor is uint32 [{rows}, 1], not {metadata!r}")
    table = [_scalar(metadata[row, 0]) for row in range(rows)]
    count, begin, to = table[0], table[1], table[3] if places else 0
    if known and table[2] != count:
        raise _core.Error(f"{name}: rank 0 expects {table[2]} elements of rank 0, which sends {count}")
    if count and (begin + count > src.size or to + count > dst.size):
        raise _core.Error(f"{name}: {count} elements from {begin} on of {src.size} do not go to {to} of {dst.size}")
    if count:
        _copy(dst.reshaped((-1,))[to:to + count], src.reshaped((-1,))[begin:begin + count])


def all_reduce(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: ReplicaGroup | None, op: Op,
               priority: int | None = None, name: str | None = None) -> None:
    """Each of dsts = the sum (maximum, minimum) over the ranks of a list of srcs."""
    _run("all_reduce", dsts, srcs, replica_group, op=op)


def all_gather(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: ReplicaGroup | None,
               collective_dim: int, priority: int | None = None, name: str | None = None) -> None:
    """Each of dsts = the srcs of all ranks of a list, joined along an axis."""
    _run("all_gather", dsts, srcs, replica_group, collective_dim)


def reduce_scatter(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: ReplicaGroup | None,
                   collective_dim: int, op: Op, priority: int | None = None, name: str | None = None) -> None:
    """Each of dsts = this rank's share of the sum (maximum, minimum)."""
    _run("reduce_scatter", dsts, srcs, replica_group, collective_dim, op)


def all_to_all(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: ReplicaGroup | None,
               collective_dim: int, priority: int | None = None, name: str | None = None) -> None:
    """Share i of dsts = this rank's share of the srcs of rank i of the list."""
    _run("all_to_all", dsts, srcs, replica_group, collective_dim)


def all_gather_v(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: ReplicaGroup | None,
                 metadata_tensor: NkiTensor, recv_counts_known: bool = False, has_rdispls: bool = False,
                 priority: int | None = None, name: str | None = None) -> None:
    """dst, cut into as many slots as a list has ranks, gets in slot i what rank i sends to all: of its src, as a run of
    elements, metadata_tensor[0, 0] elements from [1, 0] on. Rows 2 and 3, where the flags say that they are there: how
    many come from each rank, and where in dst they go."""
    _run("all_gather_v", dsts, srcs, replica_group, counts=(metadata_tensor, recv_counts_known, has_rdispls))


def all_to_all_v(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: ReplicaGroup | None,
                 metadata_tensor: NkiTensor, recv_counts_known: bool = False, has_rdispls: bool = False,
                 priority: int | None = None, name: str | None = None) -> None:
    """The same, where rank j of the list gets metadata_tensor[0, j] elements of src from [1, j] on."""
    _run("all_to_all_v", dsts, srcs, replica_group, counts=(metadata_tensor, recv_counts_known, has_rdispls))


def collective_permute(srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor],
                       source_target_pairs: Iterable[tuple[int, int]], priority: int | None = None,
                       name: str | None = None) -> None:
    """Each target's dsts = its source's srcs."""
    _run("collective_permute", dsts, srcs, pairs=[(source, target) for source, target in source_target_pairs])


def _first(by_channel: Sequence[Sequence[NkiTensor]]) -> list[NkiTensor]:
    for channel in by_channel:
        if len(channel) != 1:
            raise _core.Error("each channel takes one tensor")
    return [channel[0] for channel in by_channel]


def collective_permute_implicit(srcs_by_channel: Sequence[Sequence[NkiTensor]],
                                dsts_by_channel: Sequence[Sequence[NkiTensor]], replica_group: ReplicaGroup | None,
                                channel_ids: Sequence[int] = (0,), priority: int | None = None,
                                name: str | None = None) -> None:
    """Round a ring of the ranks of a list: dsts = the srcs of the one before."""
    _run("collective_permute_implicit", _first(dsts_by_channel), _first(srcs_by_channel), replica_group,
         channels=list(channel_ids))


def collective_permute_implicit_reduce(srcs0_by_channel: Sequence[Sequence[NkiTensor]],
                                       srcs1_by_channel: Sequence[Sequence[NkiTensor]],
                                       dsts_by_channel: Sequence[Sequence[NkiTensor]],
                                       replica_group: ReplicaGroup | None, op: Op, channel_ids: Sequence[int] = (0,),
                                       priority: int | None = None, name: str | None = None) -> None:
    """The same of srcs0 op srcs1."""
    _run("collective_permute_implicit_reduce", _first(dsts_by_channel), _first(srcs0_by_channel), replica_group, op=op,
         srcs1=_first(srcs1_by_channel), channels=list(channel_ids))


def collective_permute_implicit_current_processing_rank_id(iteration_id: Any, replica_group: ReplicaGroup | None,
                                                           channel_id: int = 0, name: str | None = None) -> int:
    """Whose data a rank has after so many implicit permutes."""
    return _current().ring_rank(_scalar(iteration_id), _lists(replica_group), channel_id)
