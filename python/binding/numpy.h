#pragma once
/// NumPy's C interface, of which arrays.cc has the table.
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL lamina_numpy
#ifndef LAMINA_HAS_NUMPY_TABLE
#define NO_IMPORT_ARRAY
#endif
#include "common.h"

#include <numpy/arrayobject.h>
