"""Another thread of Python runs while a call of trnmath or nki computes. No clock: the interpreter is told to take its
lock from nobody, so the other thread runs only if the call gives the lock away. Run by tests/cli/pip.sh.
"""
import sys
import threading

import numpy as np


def others_run_during(call):
    """Does a thread that waits for the lock get it during one of many calls?"""
    gate, ran, most = threading.Lock(), [], 100
    gate.acquire()

    def other():
        with gate:
            ran.append(True)

    before = sys.getswitchinterval()
    thread = threading.Thread(target=other)
    thread.start()
    sys.setswitchinterval(3600.0)
    try:
        gate.release()  # from here on this thread keeps the lock unless `call` gives it away
        for _ in range(most):
            if ran:
                break
            call()
        during = bool(ran)
    finally:
        sys.setswitchinterval(before)
    thread.join()
    return during


def kept():
    """What does not give the lock away, to see that this test would tell."""
    sum(range(20000))


def main(*calls):
    assert not others_run_during(kept), "the test cannot tell: another thread ran while this one kept the lock"
    for name, call in calls:
        assert others_run_during(call), f"no other thread runs during {name}"
    print(len(calls), "calls let others run")


if __name__ == "__main__":
    import nki._core as core
    import trnmath
    x, big = np.ones((256, 256), np.float32), np.ones((2048, 2048), np.float32)  # milliseconds: time to wake up in
    codes, packed = trnmath.convert(big, "float8_e4m3"), big.tobytes()
    main(("convert", lambda: trnmath.convert(big, "float8_e4m3")),
         ("matmul", lambda: trnmath.matmul(x, x)),
         ("tolerance", lambda: trnmath.tolerance(x, x)),
         ("activation", lambda: trnmath.activation(big, "exp")),
         ("mx_quantize", lambda: trnmath.mx_quantize(big)),
         ("nki's encode", lambda: core.encode(packed, trnmath._library.format_number("float8_e4m3"))),
         ("nki's decode", lambda: core.decode(codes.tobytes(), trnmath._library.format_number("float8_e4m3"))))
