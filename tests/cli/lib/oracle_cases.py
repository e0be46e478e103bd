"""Requests for the oracle, and what is true of each: kernels that are right, kernels that are wrong in a way that has a
name, hostile programs, and requests that are none. Used by check_nki_oracle.py.

SPDX-License-Identifier: MIT
"""
import json

PRELUDE = '''
import numpy as np, nki, nki.isa as nisa, nki.language as nl
WORK = nl.float32

def tile(shape, dtype=None, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype or WORK, buffer=buffer)

def load(x, dtype=None):
    t = tile(x.shape, dtype)
    nisa.dma_copy(dst=t, src=x)
    return t

def store(out, t):
    nisa.dma_copy(dst=out, src=t)

def hbm(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype, buffer=nl.shared_hbm)

def rows(x):
    return [slice(r, r + 128) for r in range(0, x.shape[0], 128)]
'''

# name: (kernel, reference, arguments for seed s)
KERNELS = {
    "softmax": ('''
@nki.jit
def kernel(x):
    out = hbm(x.shape, x.dtype)
    for r in rows(x):
        t, m, s = load(x[r], nl.float32), tile((128, 1), nl.float32), tile((128, 1), nl.float32)
        nisa.tensor_reduce(dst=m, op=nl.maximum, data=t, axis=1, negate=True)
        e = tile(t.shape)
        nisa.activation(dst=e, op=nl.exp, data=t, bias=m)
        nisa.tensor_reduce(dst=s, op=nl.add, data=e, axis=1)
        nisa.reciprocal(dst=s, data=s)
        y = tile(t.shape)
        nisa.tensor_scalar(dst=y, data=e, op0=nl.multiply, operand0=s)
        store(out[r], y)
    return out
''', '''
def reference(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)
''', lambda s: [{"shape": [256, 64 + 32 * (s % 3)], "seed": s}]),
    "rmsnorm": ('''
@nki.jit
def kernel(x, w, eps):
    out, g = hbm(x.shape), tile((128, x.shape[1]))
    nisa.dma_copy(dst=g, src=w.broadcast_to((128, x.shape[1])) if hasattr(w, "broadcast_to") else w)
    for r in rows(x):
        t, q, s = load(x[r]), tile((128, x.shape[1])), tile((128, 1), nl.float32)
        nisa.tensor_tensor(dst=q, data1=t, data2=t, op=nl.multiply)
        nisa.tensor_reduce(dst=s, op=nl.add, data=q, axis=1)
        nisa.tensor_scalar(dst=s, data=s, op0=nl.multiply, operand0=1.0 / x.shape[1], op1=nl.add, operand1=eps)
        nisa.activation(dst=s, op=nl.rsqrt, data=s)
        y = tile(t.shape)
        nisa.scalar_tensor_tensor(dst=y, data=t, op0=nl.multiply, operand0=s, op1=nl.multiply, operand1=g)
        store(out[r], y)
    return out
''', '''
def reference(x, w, eps):
    return x / np.sqrt((x * x).mean(1, keepdims=True) + eps) * w
''', lambda s: [{"shape": [256, 96], "seed": s}, {"shape": [1, 96], "seed": s + 1}, 1e-5]),
    "layernorm": ('''
@nki.jit
def kernel(x):
    out = hbm(x.shape)
    for r in rows(x):
        t, six, two, s = load(x[r]), tile((128, 6), nl.float32), tile((128, 2), nl.float32), tile((128, 1), nl.float32)
        nisa.bn_stats(dst=six, data=t)
        nisa.bn_aggr(dst=two, data=six)
        nisa.tensor_scalar(dst=s, data=two[:, 1:2], op0=nl.add, operand0=1e-6)
        nisa.activation(dst=s, op=nl.rsqrt, data=s)
        y = tile(t.shape)
        nisa.tensor_scalar(dst=y, data=t, op0=nl.subtract, operand0=two[:, 0:1], op1=nl.multiply, operand1=s)
        store(out[r], y)
    return out
''', '''
def reference(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
''', lambda s: [{"shape": [256, 128], "seed": s, "scale": 3, "offset": 1}]),
    "matmul": ('''
@nki.jit
def kernel(a, b):
    out = hbm((a.shape[1], b.shape[1]))
    for m in rows(out):
        p = tile((128, b.shape[1]), nl.float32, nl.psum)
        for k in rows(a):
            nisa.nc_matmul(dst=p, stationary=load(a[k, m]), moving=load(b[k]))
        y = tile((128, b.shape[1]))
        nisa.tensor_copy(dst=y, src=p)
        store(out[m], y)
    return out
''', '''
def reference(a, b):
    return a.T @ b
''', lambda s: [{"shape": [256, 256], "seed": s}, {"shape": [256, 64], "seed": s + 1}]),
    "mlp": ('''
@nki.jit
def kernel(x, w, v):
    out = hbm((x.shape[1], v.shape[1]))
    for m in rows(out):
        h, o = tile((128, 128), nl.float32, nl.psum), tile((128, v.shape[1]), nl.float32, nl.psum)
        nisa.nc_matmul(dst=h, stationary=load(w), moving=load(x[:, m]))
        a = tile((128, 128))
        nisa.activation(dst=a, op=nl.silu, data=h)
        nisa.nc_matmul(dst=o, stationary=a, moving=load(v))
        y = tile((128, v.shape[1]))
        nisa.tensor_copy(dst=y, src=o)
        store(out[m], y)
    return out
''', '''
def reference(x, w, v):
    h = w.T @ x
    return (h / (1 + np.exp(-h))).T @ v
''', lambda s: [{"shape": [128, 256], "seed": s, "scale": 0.1}, {"shape": [128, 128], "seed": s + 1},
                {"shape": [128, 80], "seed": s + 2}]),
    "scale_add": ('''
@nki.jit
def kernel(x, y, c):
    out = hbm(x.shape)
    for r in rows(x):
        t, u, o = load(x[r]), load(y[r]), tile((128, x.shape[1]))
        nisa.scalar_tensor_tensor(dst=o, data=t, op0=nl.multiply, operand0=c, op1=nl.add, operand1=u)
        store(out[r], o)
    return out
''', '''
def reference(x, y, c):
    return c * x + y
''', lambda s: [{"shape": [256, 50], "seed": s}, {"shape": [256, 50], "seed": s + 1, "distribution": "uniform"}, 0.7]),
    "rowsum": ('''
@nki.jit
def kernel(x):
    out = hbm((x.shape[0], 1))
    for r in rows(x):
        t, n = load(x[r]), x.shape[1] // 4
        parts = [tile((128, 1), nl.float32) for _ in range(4)]
        for i in (3, 1, 0, 2):
            nisa.tensor_reduce(dst=parts[i], op=nl.add, data=t[:, i * n:(i + 1) * n], axis=1)
        y = tile((128, 1))
        nisa.tensor_tensor(dst=parts[0], data1=parts[3], data2=parts[0], op=nl.add)
        nisa.tensor_tensor(dst=parts[1], data1=parts[2], data2=parts[1], op=nl.add)
        nisa.tensor_tensor(dst=y, data1=parts[1], data2=parts[0], op=nl.add)
        store(out[r], y)
    return out
''', '''
def reference(x):
    return x.sum(1)
''', lambda s: [{"shape": [256, 512], "seed": s, "distribution": "uniform"}]),
    "logsumexp": ('''
@nki.jit
def kernel(x):
    out = hbm((x.shape[0], 1))
    for r in rows(x):
        t, m, n, s = load(x[r]), tile((128, 1), nl.float32), tile((128, 1), nl.float32), tile((128, 1), nl.float32)
        nisa.tensor_reduce(dst=m, op=nl.maximum, data=t, axis=1)
        nisa.tensor_scalar(dst=n, data=m, op0=nl.multiply, operand0=-1.0)
        e = tile(t.shape)
        nisa.activation(dst=e, op=nl.exp, data=t, bias=n)
        nisa.tensor_reduce(dst=s, op=nl.add, data=e, axis=1)
        nisa.activation(dst=s, op=nl.log, data=s)
        y = tile((128, 1))
        nisa.tensor_tensor(dst=y, data1=s, data2=m, op=nl.add)
        store(out[r], y)
    return out
''', '''
def reference(x):
    m = x.max(1)
    return np.log(np.exp(x - m[:, None]).sum(1)) + m
''', lambda s: [{"shape": [256, 100], "seed": s, "scale": 2}]),
    "attention": ('''
@nki.jit
def kernel(q, k, v):
    out = hbm((q.shape[1], v.shape[1]))
    for m in rows(out):
        s = tile((128, 128), nl.float32, nl.psum)
        nisa.nc_matmul(dst=s, stationary=load(q[:, m]), moving=load(k))
        top, total, e = tile((128, 1), nl.float32), tile((128, 1), nl.float32), tile((128, 128))
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=s, axis=1, negate=True)
        nisa.activation(dst=e, op=nl.exp, data=s, bias=top)
        nisa.tensor_reduce(dst=total, op=nl.add, data=e, axis=1)
        nisa.reciprocal(dst=total, data=total)
        turned, w, o = tile((128, 128), e.dtype, nl.psum), tile((128, 128)), tile((128, v.shape[1]), nl.float32, nl.psum)
        nisa.nc_transpose(dst=turned, data=e)
        nisa.tensor_copy(dst=w, src=turned)
        nisa.nc_matmul(dst=o, stationary=w, moving=load(v))
        y = tile((128, v.shape[1]))
        nisa.tensor_scalar(dst=y, data=o, op0=nl.multiply, operand0=total)
        store(out[m], y)
    return out
''', '''
def reference(q, k, v):
    s = q.T @ k
    e = np.exp(s - s.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)) @ v
''', lambda s: [{"shape": [64, 256], "seed": s, "scale": 0.3}, {"shape": [64, 128], "seed": s + 1},
                {"shape": [128, 64], "seed": s + 2}]),
    "swiglu": ('''
@nki.jit
def kernel(g, u):
    out = hbm(g.shape)
    for r in rows(g):
        a, b = load(g[r]), load(u[r])
        s, y = tile(a.shape), tile(a.shape)
        nisa.activation(dst=s, op=nl.silu, data=a)
        nisa.tensor_tensor(dst=y, data1=s, data2=b, op=nl.multiply)
        store(out[r], y)
    return out
''', '''
def reference(g, u):
    return g / (1 + np.exp(-g)) * u
''', lambda s: [{"shape": [256, 70], "seed": s}, {"shape": [256, 70], "seed": s + 1}]),
}

OLDER = '''
import neuronxcc.nki as nki, neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for r in nl.affine_range(x.shape[0] // 128):
        t = nl.load(x[r * 128:(r + 1) * 128])
        nl.store(out[r * 128:(r + 1) * 128], nl.BODY)
    return out
'''
OLDER_BODIES = {  # what is stored: what it is
    "exp(t)": "np.exp(x)", "tanh(t)": "np.tanh(x)", "softmax(t, axis=1)": "np.exp(x) / np.exp(x).sum(1, keepdims=True)",
    "multiply(t, 3.0)": "3 * x", "square(t)": "x * x", "sigmoid(t)": "1 / (1 + np.exp(-x))",
}

# A name, and what of the prelude changes into what.
WRONG = {
    "zeros": ("    nisa.dma_copy(dst=out, src=t)", "    nisa.memset(dst=t, value=0.0)\n    nisa.dma_copy(dst=out, src=t)"),
    "constant": ("    nisa.dma_copy(dst=out, src=t)", "    nisa.memset(dst=t, value=0.125)\n    nisa.dma_copy(dst=out, src=t)"),
    "nearly": ("    nisa.dma_copy(dst=out, src=t)",
               "    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=1.0005)\n    nisa.dma_copy(dst=out, src=t)"),
    "skipped tile": ("    nisa.dma_copy(dst=out, src=t)",
                     "    seen.append(1)\n    if len(seen) == 2:\n        nisa.memset(dst=t, value=0.0)\n"
                     "    nisa.dma_copy(dst=out, src=t)"),
    "tile not written": ("    nisa.dma_copy(dst=out, src=t)",
                         "    seen.append(1)\n    if len(seen) != 2:\n        nisa.dma_copy(dst=out, src=t)"),
    "bfloat16": ("WORK = nl.float32", "WORK = nl.bfloat16"),
    "shifted": ("    nisa.dma_copy(dst=out, src=t)",
                "    nisa.tensor_copy(dst=t[0:32], src=t[32:64])\n    nisa.dma_copy(dst=out, src=t)"),
    "stale": ("    nisa.dma_copy(dst=out, src=t)",
              "    seen.append(t)\n    nisa.dma_copy(dst=out, src=seen[0])"),
    "on the host": ("    nisa.dma_copy(dst=out, src=t)", "    t.numpy()\n    nisa.dma_copy(dst=out, src=t)"),
    "one element": ("    nisa.dma_copy(dst=out, src=t)",
                    "    nisa.tensor_scalar(dst=t[0:1, 0:1], data=t[0:1, 0:1], op0=nl.multiply, operand0=1.01)\n"
                    "    nisa.dma_copy(dst=out, src=t)"),
}


def request(name, seed, prelude=PRELUDE, **more):
    kernel, reference, arguments = KERNELS[name]
    return {"id": f"{name} {seed}", "source": prelude + kernel, "entry": "kernel", "arguments": arguments(seed),
            "reference": {"source": "import numpy as np\n" + reference, "entry": "reference"}, **more}


def right():
    """(request, True) of a hundred and more."""
    for name in KERNELS:
        for seed in range(6):
            yield request(name, seed)
        yield request(name, 7, generation=3)
        yield request(name, 8, PRELUDE.replace("WORK = nl.float32", "WORK = nl.bfloat16"), precision="bfloat16")
        half = request(name, 9, PRELUDE.replace("WORK = nl.float32", "WORK = nl.bfloat16"))
        half["arguments"] = [a | {"dtype": "bfloat16"} if isinstance(a, dict) else a for a in half["arguments"]]
        yield half
        single = request(name, 10)  # a reference that rounds to float32 itself
        single["reference"]["source"] = single["reference"]["source"].replace(
            "):\n", "):\n    " + "; ".join(f"{v} = np.float32({v})" for v in _arguments(name)) + "\n", 1)
        yield single
    for body, exact in OLDER_BODIES.items():
        yield {"id": body, "source": OLDER.replace("BODY", body), "arguments": [{"shape": [128, 40], "seed": 3}],
               "reference": {"source": f"import numpy as np\ndef reference(x):\n    return {exact}\n"}}


def _arguments(name):
    return KERNELS[name][1].split("(", 1)[1].split(")")[0].split(", ")


def wrong():
    for name in KERNELS:
        for kind, (was, now) in WRONG.items():
            prelude = PRELUDE.replace(was, now).replace("def tile", "seen = []\n\ndef tile")
            yield request(name, 3, prelude) | {"id": f"{name}: {kind}"}
    eps = request("rmsnorm", 3)
    eps["arguments"][0]["scale"] = 0.01
    eps["reference"]["source"] = eps["reference"]["source"].replace("+ eps", "+ 1.2 * eps")
    yield eps | {"id": "another epsilon"}
    copied = request("softmax", 3)
    copied["source"] = copied["source"].replace("store(out[r], y)", "store(out[r], t)")
    yield copied | {"id": "copied input"}


ATTACKS = {
    "a loop": "while True: pass",
    "a loop that sleeps": "import time\n    while True: time.sleep(1)",
    "a fork bomb": "import os\n    while True: os.fork()",
    "os.system": "import os\n    os.system('touch /tmp/oracle-was-here')",
    "os.popen": "import os\n    os.popen('id').read()",
    "subprocess": "import subprocess\n    subprocess.run(['id'])",
    "posix_spawn": "import os\n    os.posix_spawn('/bin/true', ['true'], {})",
    "exec": "import os\n    os.execv('/bin/true', ['true'])",
    "100 GB": "np.zeros(100 << 30, np.uint8).fill(1)",
    "many lists": "a = []\n    while True: a.append(bytearray(1 << 24))",
    "a file": "open('/etc/passwd').read()",
    "a new file": "open('/tmp/oracle-was-here', 'w').write('x')",
    "os.open": "import os\n    os.open('/etc/passwd', 0)",
    "a folder": "import os\n    os.listdir('/')",
    "a deleted file": "import os\n    os.remove('/tmp/oracle-x')",
    "np.save": "np.save('/tmp/oracle-was-here', np.zeros(3))",
    "np.load": "np.load('/tmp/x.npy')",
    "the network": "import socket\n    socket.create_connection(('127.0.0.1', 9))",
    "a socket": "import socket\n    socket.socket()",
    "a crash": "import ctypes\n    ctypes.string_at(0)",
    "os._exit": "import os\n    os._exit(0)",
    "os.abort": "import os\n    os.abort()",
    "sys.exit": "import sys\n    sys.exit(0)",
    "a signal": "import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)",
    "its own end": "import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)",
    "deep recursion": "f = lambda n: f(n + 1)\n    f(0)",
    "very deep recursion": "import sys\n    sys.setrecursionlimit(10**8)\n    f = lambda n: f(n + 1)\n    f(0)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "an exception that is none": "raise type('E', (BaseException,), {'__str__': lambda s: 1 / 0})()",
    "a long sentence": "raise ValueError('x' * 10**7)",
    "a multi-line sentence": "raise ValueError('a\\nb\\x1b[31m')",
    "a lot of output": "print('x' * 10**8)",
    "input": "input()",
    "stdout closed": "import os\n    os.close(1)\n    raise ValueError",
    "ctypes": "import ctypes\n    ctypes.CDLL(None).system(b'id')",
    "mmap": "import mmap\n    mmap.mmap(-1, 1 << 20)",
    "a module that is not there": "import nothing_of_that_name",
    "multiprocessing": "import multiprocessing\n    multiprocessing.Process(target=print).start()",
    "an audit hook of its own": "import sys\n    sys.addaudithook(print)\n    open('/etc/passwd')",
    "the guard turned off": "import nki.oracle.guard as g\n    g.GUARD.on = False\n    open('/etc/passwd').read()",
    "a caught refusal": "try: open('/etc/passwd')\n    except Exception: pass",
    "eval": "eval('__import__(\"os\").system(\"id\")')",
    "the reference": "import sys\n    [m for m in sys.modules if 'reference' in m][0]",
    "a regular expression": "import re\n    re.match('(a+)+$', 'a' * 40 + 'b')",
    "a big integer": "9 ** 9 ** 9",
    "a chdir": "import os\n    os.chdir('/')",
    "an environment": "import os\n    raise ValueError(os.environ['HOME'] * 0 + 'no')",
    "a tempfile": "import tempfile\n    tempfile.TemporaryFile()",
    "a thread that goes on": "import threading, time\n    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n    raise ValueError",
    "a patched NumPy": "np.exp = lambda x: x\n    nisa.nc_matmul = None\n    raise ValueError('patched')",
}


def hostile():
    """Each answers in one line, is no right kernel, and the next request is answered as ever."""
    for name, code in ATTACKS.items():
        made = request("scale_add", 1, limits={"seconds": 1.5, "bytes": 1 << 29})
        made["source"] = made["source"].replace("def kernel(x, y, c):\n", f"def kernel(x, y, c):\n    {code}\n")
        yield made | {"id": name}


_GOOD = {"source": "def k(x): return x", "arguments": [{"shape": [2, 2]}]}
MALFORMED = [
    b"", b"{", b"nonsense", b"[]", b"3", b"null", b'"text"', b"{}", b"\xff\xfe", b"[" * 100000,
    b'{"id": 1, "source": 3}', b'{"id": 1, "source": "x", "file": "y"}', b'{"source": "def k(x): retrun x"}',
    b'{"source": "x", "what": 1}', b'{"file": "/nowhere/k.py"}', b'{"file": "/"}', b'{"id": {}, "source": ""}',
] + [json.dumps(_GOOD | more).encode() for more in (
    {"entry": "none"}, {"entry": 3}, {"arguments": 3}, {"arguments": [{}]}, {"arguments": [{"shape": 3}]},
    {"arguments": [{"shape": [0, 3]}]}, {"arguments": [{"shape": [-1]}]}, {"arguments": [{"shape": [1 << 40]}]},
    {"arguments": [{"shape": [1 << 20, 1 << 20]}]}, {"arguments": [{"shape": [2] * 9}]},
    {"arguments": [{"shape": [2], "dtype": "float99"}]}, {"arguments": [{"shape": [2], "dtype": 3}]},
    {"arguments": [{"shape": [2], "dtype": "float8_e4m3fn_x4"}]}, {"arguments": [{"shape": [2], "seed": -1}]},
    {"arguments": [{"shape": [2], "seed": 0.5}]}, {"arguments": [{"shape": [2], "distribution": "cauchy"}]},
    {"arguments": [{"shape": [2], "distribution": "integers", "low": 3, "high": 3}]}, {"arguments": [{"npy": "/nowhere.npy"}]},
    {"arguments": [{"npy": "/etc/passwd"}]}, {"arguments": [{"npy": 3}]}, {"arguments": [{"shape": [2], "npy": "x"}]},
    {"reference": {}}, {"reference": {"source": "x", "file": "y"}}, {"reference": 3},
    {"reference": {"source": "import numpy as np"}}, {"generation": 4}, {"generation": "trn9"}, {"generation": True},
    {"lnc": 0}, {"grid": []}, {"grid": [0]}, {"ranks": 0}, {"precision": "float64"}, {"limits": {"seconds": 0}},
    {"limits": {"minutes": 1}}, {"limits": {"bytes": 1}}, {"trace": 1}, {"version": 2}, {"variants": []},
    {"variants": [{"source": "x"}]})]


def malformed():
    return [line for line in MALFORMED if line.strip()]
