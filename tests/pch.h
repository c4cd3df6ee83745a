#pragma once
/// Precompiled for all tests.
#include <gtest/gtest.h>

#include <random>

#include "base/pch.h"
#include "graph/text.h"
