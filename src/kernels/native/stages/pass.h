#pragma once
/// A program of stages over a whole tensor, on the threads of the current arena.
#include "base/divide.h"
#include "kernels/native/stages/program.h"
#include "kernels/rows.h"

namespace lamina {

class StagePass {
 public:
  /// `in_place`: the base results lie in the output; else the program is one of_elementwise.
  StagePass(std::shared_ptr<const StageProgram> program, double microseconds, const Rows& out, bool in_place);
  /// Allocates nothing.
  void run(const RunArgs& args) const;

 private:
  void run_rows(StageRun& run, void* out, std::int64_t first, std::int64_t last) const;

  std::shared_ptr<const StageProgram> program_;
  bool in_place_;
  Rows out_;
  std::int64_t total_, unit_;  // elements; of a unit
  Division units_;
};

}  // namespace lamina
