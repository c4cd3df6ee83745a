#pragma once
/// A program of stages over a whole tensor, on the threads of the current arena.
#include "base/work_partition.h"
#include "kernels/native/stages/program.h"
#include "kernels/rows.h"

namespace lamina {

class StagePass {
 public:
  StagePass(std::shared_ptr<const StageProgram> program, double microseconds, const Rows& out);
  /// `values`: the base results, dense or in the output itself; null for a program of_elementwise. Allocates
  /// nothing.
  void run(const RunArgs& args, const void* values) const;

 private:
  const void* at(const void* values, std::int64_t element) const;
  void run_rows(StageRun& run, const void* values, void* out, std::int64_t first, std::int64_t last) const;

  std::shared_ptr<const StageProgram> program_;
  Rows out_;
  std::int64_t total_, unit_;  // elements; of a unit
  WorkPartition units_;
};

}  // namespace lamina
