#pragma once
/// What was made of a model: the rewritten graph, plans with the kernels that were picked, packed weights.
#include <mutex>

#include "exec/program.h"
#include "extension/extensions.h"
#include "lamina/options.h"
#include "plan/forecast.h"
#include "saved/rewriting_facts.h"
#include "saved/tensors.h"

namespace lamina {

/// The options that change the compiled model (the list is in compiled.cc); the others are at their defaults.
Options deciding(const Options& options);
/// Sets them as there.
void take_deciding(Options& to, const Options& from);
/// True if both options lead to the same compiled model.
bool decide_alike(const Options& a, const Options& b);
void add_deciding(Hasher& to, const Options& options);

/// The options in a file. Throws Error(bad_file).
Options options_of(const CompiledFile& file);

/// A plan, the key under which a program has it, and for how many threads it is.
struct PlanToSave {
  std::string key;
  int threads = 1;
  const Graph* graph;
  const std::vector<std::pair<NodeId, Recipe>>* recipes;
  std::set<const void*> packed;  ///< constants of which their packing is all that is needed
};

/// What a program is without its plans and weights.
struct ProgramToSave {
  Options options;
  RewritingFacts facts;
  std::vector<StepTimeAlone> times;  ///< times for the forecast of streams; empty: not known
  const Graph* graph = nullptr;
  const std::vector<Variable>* variables = nullptr;
  const Graph* initial = nullptr;  ///< of variables; null when there is none
};

class SavedCompiled;

/// Adds sections for all of it. `packings` empty: they are made anew of the program's constants, which
/// are then no part of plans. `before`: the file that some of it comes from, or null.
void write_compiled(CompiledFileWriter& file, const ProgramToSave& program,
                    const std::vector<PlanToSave>& plans, const std::vector<Packing>& packings,
                    const SavedCompiled* before = nullptr);

/// A compiled model from a file. Thread-safe.
class SavedCompiled final : public KeptPlans, public KeptPackings {
 public:
  /// Checks all sections that it needs. Throws Error(bad_file). `constant`: gives the constant of the
  /// rewritten graph with that content, or an invalid tensor; asked where the file has no packings.
  /// `extensions`: the model's libraries.
  using Constant = std::function<Tensor(const Hash128&)>;
  SavedCompiled(std::shared_ptr<const CompiledFile> file, Constant constant,
                std::shared_ptr<const ExtensionSet> extensions);

  const CompiledFile& file() const { return *file_; }
  const Options& options() const { return options_; }
  const RewritingFacts& facts() const { return facts_; }
  const std::vector<StepTimeAlone>& times() const { return times_; }
  /// The program; its large constants have no data.
  Stateless program() const;
  struct PlanKey {
    std::string key;
    int threads = 1;
    bool operator==(const PlanKey&) const = default;
  };
  const std::vector<PlanKey>& keys() const { return keys_; }
  KeptPlan plan(const PlanKey& key) const;
  std::vector<Packing> packings() const;
  /// The hash of a tensor that stands for one without data.
  std::optional<Hash128> known(const Tensor& tensor) const;

  std::optional<KeptPlan> find(const std::string& key, int threads) const override;
  std::optional<Packing> find(const Tensor& source, const std::string& key) const override;

 private:
  Tensor by_content(ElementType type, const Dims& dims, const Hash128& hash, std::size_t behind) const;
  void read_packings(ByteReader& from);

  std::shared_ptr<const CompiledFile> file_;
  Constant constant_;
  TensorReader tensors_;
  FindOp find_op_;
  Options options_;
  RewritingFacts facts_;
  bool packed_ = false;
  std::vector<PlanKey> keys_;
  std::vector<StepTimeAlone> times_;
  std::map<std::pair<std::string, Hash128>, Packing> packings_;  // without sources
  std::size_t program_at_ = 0;
  mutable std::mutex mutex_;
  /// What stands for constants without data, by content and where they lay.
  mutable std::map<std::pair<Hash128, std::size_t>, Tensor> hollow_;
  mutable std::map<const void*, Hash128> contents_;
};

}  // namespace lamina
