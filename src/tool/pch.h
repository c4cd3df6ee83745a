#pragma once
/// Precompiled for the files of the command.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/pch.h"
