#pragma once
/// The verbs of the command.
#include <functional>

#include "tool/common.h"

namespace lamina::tool {

/// What a verb does once its options are read; the result is the exit status.
using Verb = std::function<int()>;

/// A verb adds its options and returns what to run.
Verb setup_run(OptionSet& options);
Verb setup_check(OptionSet& options);
Verb setup_benchmark(OptionSet& options);
Verb setup_compile(OptionSet& options);
Verb setup_cache(OptionSet& options);
Verb setup_inspect(OptionSet& options);
Verb setup_explain(OptionSet& options);
Verb setup_graph(OptionSet& options);
Verb setup_optimize(OptionSet& options);
Verb setup_quantize(OptionSet& options);
Verb setup_ops(OptionSet& options);
Verb setup_rules(OptionSet& options);
Verb setup_version(OptionSet& options);

struct VerbRow {
  const char* name;
  const char* doc;
  const char* example;
  Verb (*setup)(OptionSet& options);
};
const std::vector<VerbRow>& verbs();

}  // namespace lamina::tool
