#pragma once
#include "api/compiled.h"
#include "api/loaded_model.h"

namespace lamina {

/// What stands behind the public Request.
class Request::State {
 public:
  explicit State(const Compiled& compiled)
      : program(compiled.program()),
        inputs(compiled.model().inputs()),
        outputs(compiled.model().outputs()),
        variables(compiled.model().variables()),
        runner(program) {
    runner.profile(compiled.options().profile);
  }

  std::shared_ptr<const Program> program;
  std::vector<Port> inputs, outputs, variables;
  Runner runner;
};

}  // namespace lamina
