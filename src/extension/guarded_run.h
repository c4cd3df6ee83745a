#pragma once
/// A kernel of a library in memory that it must not leave: for conformance.cc, in a process of its own.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded_memory.h"
#include "extension/kernel.h"

namespace lamina {

struct Trial {
  std::vector<Tensor> outputs;  ///< plain
  std::string problem;          ///< a sentence; empty: none
};

class GuardedRun {
 public:
  /// Inputs are plain; not valid: absent.
  GuardedRun(const CustomKernel& kernel, std::vector<Tensor> in) : kernel_(kernel), in_(std::move(in)) {}

  using Pair = std::pair<std::size_t, std::size_t>;  ///< an input and an output that share memory
  /// Outputs are filled with that byte before. Throws what the kernel's failure is.
  Trial run(std::byte fill, const Pair* pair = nullptr);

 private:
  bool allocates() const { return kernel_.op().declared().has(LAMINA_SHAPE_AFTER_RUN); }
  void prepare();
  void place_inputs();
  void place_outputs(std::byte fill, const Pair* pair);
  void* place_output(std::size_t i, const Dims& dims, std::int32_t layout, std::byte fill);
  void let_allocate(CustomCall& call, std::byte fill);
  void note_writes(Trial& trial, const GuardedMemory& scratch, const Pair* pair) const;
  void note_padding(Trial& trial, std::byte fill) const;
  Tensor output(std::size_t i) const;

  const CustomKernel& kernel_;
  std::vector<Tensor> in_;
  std::unique_ptr<GuardedMemory> prepared_;
  std::vector<std::unique_ptr<GuardedMemory>> in_memory_, out_memory_;
  std::vector<const void*> in_pointers_;
  std::vector<void*> out_pointers_;
  std::vector<TensorType> types_;  ///< of outputs
};

}  // namespace lamina
