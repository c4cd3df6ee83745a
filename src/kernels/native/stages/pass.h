#pragma once
/// A program of stages over a whole tensor, on the threads of the current arena.
#include "base/divide.h"
#include "kernels/native/stages/program.h"

namespace lamina {

class StagePass {
 public:
  /// The output may be a slice of a wider tensor's channels: `row` elements from point to point (0: dense).
  /// `in_place`: the base results lie in the output; else the program is one of_elementwise.
  StagePass(std::shared_ptr<const StageProgram> program, double microseconds, std::int64_t row,
            bool in_place);
  /// Allocates nothing.
  void run(const RunArgs& args) const;

 private:
  void run_rows(StageRun& run, std::byte* out, std::int64_t first, std::int64_t last) const;

  std::shared_ptr<const StageProgram> program_;
  bool in_place_;
  std::int64_t channels_, row_;        // of a point; from point to point
  std::int64_t total_, unit_, bytes_;  // elements; of a unit; of an element
  Division units_;
};

}  // namespace lamina
