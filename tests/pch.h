#pragma once
/// Precompiled for all tests: what many of them include. Files still include what they use.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/pch.h"
#include "graph/text.h"
#include "interpreter/interpreter.h"
#include "lamina/lamina.h"
#include "ops/eval.h"
#include "ops/operators.h"
#include "tests/support/run_graph.h"
