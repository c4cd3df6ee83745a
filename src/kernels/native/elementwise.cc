/// Element-wise nodes and chains of them in one pass over memory; see stage_program.h.
#include "ops/elementwise.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/native/stage_program.h"
#include "kernels/native/stages/code.h"
#include "kernels/native/strided.h"

namespace lamina {
namespace {

constexpr double kCyclesOfTask = 30000;  // less is not worth a second thread
constexpr double kCyclesOfMemory = 1;    // per element, to read and write it

class ElementwiseStep final : public Step {
 public:
  explicit ElementwiseStep(const StageProgram& program) : program_(program) {
    const auto& code = program.code();
    unit_ = std::max<std::int64_t>(1, code.most);
    total_ = code.total;
    const auto per_unit = (kCyclesOfMemory + program.cycles_per_element()) * static_cast<double>(unit_);
    grain_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(kCyclesOfTask / per_unit));
  }

  void bind(const RunArgs& args) override { args_ = args; }

  void run() override {
    if (total_ == 0) return;
    parallel_for((total_ + unit_ - 1) / unit_, grain_, [this](std::int64_t begin, std::int64_t end) {
      StageRun run(program_, args_.in);
      const auto first = begin * unit_;
      auto* out = static_cast<std::byte*>(args_.out[0]);
      run(nullptr, out + first * static_cast<std::int64_t>(program_.code().body.result_bytes), first,
          std::min(end * unit_, total_) - first);
    });
  }

 private:
  const StageProgram& program_;
  RunArgs args_{};
  std::int64_t unit_, total_, grain_;
};

class ElementwiseExecutable final : public Executable {
 public:
  explicit ElementwiseExecutable(std::shared_ptr<const StageProgram> program)
      : program_(std::move(program)) {}
  std::unique_ptr<Step> step() const override { return std::make_unique<ElementwiseStep>(*program_); }

 private:
  std::shared_ptr<const StageProgram> program_;
};

}  // namespace

void offer_native_elementwise(const NodeView& v, Answers& answers) {
  const auto dims = v.out_dims();
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && dims.size() < 3) continue;
    std::string why;
    const auto program = StageProgram::of_elementwise(v, layout, why);
    if (!program) return answers.refuse("native", "{}", why);
    Offer o;
    o.label = fmt::format("native_elementwise_{}_{}", name_of(effective_isa()), name_of(v.out_element()));
    o.inputs.assign(v.inputs(), Layout::plain);
    for (std::size_t i = 0; i < v.inputs(); ++i)
      if (!v.has(i)) o.consumed.push_back(i);
    o.outputs = {layout};
    for (const auto i : program->may_overwrite()) o.in_place.push_back({i, 0});
    program->add_to(o);
    const double bytes = static_cast<double>(element_count(dims)) * bits_of(v.out_element()) / 8.0;
    o.cost += cost_of(Family::vector_light, 0, bytes) - cost_of(Family::vector_light, 0);  // one call
    o.make = [program](MakeContext&) { return std::make_unique<ElementwiseExecutable>(program); };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
