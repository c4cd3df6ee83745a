#pragma once
#include "tool/common.h"

namespace lamina::tool {

Verb setup_run(CLI::App& app);
Verb setup_check(CLI::App& app);
Verb setup_benchmark(CLI::App& app);
Verb setup_inspect(CLI::App& app);
Verb setup_explain(CLI::App& app);
Verb setup_graph(CLI::App& app);
Verb setup_ops(CLI::App& app);
Verb setup_version(CLI::App& app);

}  // namespace lamina::tool
