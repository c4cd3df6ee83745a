"""Memory: inputs are not copied, and a bound request allocates nothing once it runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import models
import pytest

if "LAMINA_PYTHON_PRELOAD" in os.environ:
    pytest.skip("a sanitizer has memory of its own", allow_module_level=True)

FOLDER = str(Path(__file__).parent)

LARGE = """
import sys; sys.path.insert(0, FOLDER)
import resource
import numpy as np
from onnx import helper
import models, lamina

node = helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)
m = lamina.load(models.graph_model([node], [models.value("x", ("n", 1000))], [models.value("y", ())], opset=13), threads=1)
x = np.ones((100_000, 1000), np.float32)
small = x[:10]
assert m(small)[0] == 1
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (150 << 20), resource.RLIM_INFINITY))
x[77_777, 7] = 3
assert m(x)[0] == 3
request = m.request()
request.set_input(0, x)
request.run()
assert request.output(0) == 3 and request.copies == 0
x.flags.writeable = False
assert m(x=x)[0] == 3
try:
    m(x[:, ::-1])
except MemoryError:
    pass
else:
    raise SystemExit("a copy fits into what is left: the test shows nothing")
"""


def test_an_input_of_400_mb_is_not_copied():
    ran = models.python(f"FOLDER = {FOLDER!r}\n" + LARGE)
    assert ran.returncode == 0, ran.stderr


COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
static atomic_long count;
void* malloc(size_t n) { ++count; return __libc_malloc(n); }
void* calloc(size_t n, size_t m) { ++count; return __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { ++count; return __libc_realloc(p, n); }
void* aligned_alloc(size_t a, size_t n) { ++count; return __libc_memalign(a, n); }
void* memalign(size_t a, size_t n) { ++count; return __libc_memalign(a, n); }
int posix_memalign(void** p, size_t a, size_t n) { ++count; *p = __libc_memalign(a, n); return *p ? 0 : 12; }
long allocations(void) { return count; }
"""

STEADY = """
import sys; sys.path.insert(0, FOLDER)
import ctypes
import numpy as np
import models, lamina

allocations = ctypes.CDLL(COUNTER).allocations
allocations.restype = ctypes.c_long
m = lamina.load(models.sums(), threads=1)
request = m.request()
a, b, total = (np.ones((2, 4), np.float32) for _ in range(3))
request.set_input(0, a)
request.set_input(1, b)
request.set_output(0, total)
runs = [None] * 1000
for _ in range(10):
    request.run()
before = allocations()
for _ in runs:
    request.run()
after = allocations()
print(after - before)
"""


def test_a_bound_request_allocates_nothing(tmp_path):
    compiler = shutil.which("gcc")
    if not compiler:
        pytest.skip("no gcc to build the counter of allocations")
    source, counter = tmp_path / "counter.c", tmp_path / "counter.so"
    source.write_text(COUNTER)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", counter, source, "-ldl"], check=True)
    code = f"FOLDER, COUNTER = {FOLDER!r}, {str(counter)!r}\n" + STEADY

    environment = dict(os.environ, LD_PRELOAD=str(counter))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) <= 5  # the interpreter may have its own reasons
