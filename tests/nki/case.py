"""One row of a table of kernels: which function of which file, on what inputs, against what reference.

    CASES = [Case("softmax", "src/softmax.py", "softmax_kernel", inputs=lambda rng: (rng.random((128, 512)),),
                  reference=lambda x: softmax(x), rtol=1e-4, atol=1e-4)]

`nki_kernels.py` runs such tables. What a case says of a vendor's kernel are names, shapes and tolerances; no text
of the kernel is kept here.
"""
from dataclasses import dataclass, field
from typing import Any, Callable, Optional


@dataclass(frozen=True)
class Call:
    """The arguments of a kernel; a case's `inputs` may also return a plain tuple of positional ones."""
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A kernel, its inputs, and what it must return.

    name       what the table shows; unique in its table
    file       path of the kernel's file in the checkout (--samples or --library)
    function   name in that file, dotted for attributes; or callable(module) -> the kernel, or anything that is called
    inputs     callable(rng) -> tuple of args, or Call(args, kwargs); rng is numpy.random.Generator, seeded by the name
    reference  callable(*args, **kwargs) -> an array or a tuple of arrays, compared with what the kernel returns (None
               in the tuple: not compared); or a string: a function of the kernel's own file, or "file.py:function" of
               the checkout. None: the kernel must only run.
    rtol, atol |result - reference| <= atol + rtol |reference|, element by element, after both became float64
    generation 1, 2 or 3: which Trainium the core is
    grid       None, or the SPMD grid: an int or a tuple (kernel[grid](...))
    needs      None, or one sentence: what only the vendor's compiler can do; the case is then counted, not run
    note       one sentence that the table shows beside the result, or ""
    no_poison  reads of what nothing has written pass: the kernel moves such elements and never looks at the results
    no_races   so do uses of the same HBM by programs that nothing orders: the kernel has one, which the note tells
    outputs    callable(result) -> what is compared, where the kernel's result needs to be brought into form
    """
    name: str
    file: str
    function: Any
    inputs: Callable
    reference: Any = None
    rtol: float = 1e-5
    atol: float = 1e-5
    generation: int = 2
    grid: Optional[Any] = None
    needs: Optional[str] = None
    note: str = ""
    outputs: Optional[Callable] = None
    no_poison: bool = False
    no_races: bool = False


def call_of(inputs) -> Call:
    """What a case's `inputs` returned, as a Call."""
    if isinstance(inputs, Call):
        return inputs
    return Call(tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,))
