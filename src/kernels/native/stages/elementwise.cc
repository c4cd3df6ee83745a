/// Element-wise nodes and chains of them in one pass over memory; see program.h.
#include "ops/elementwise.h"

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/native/move/strided.h"
#include "kernels/native/stages/code.h"
#include "kernels/native/stages/program.h"

namespace lamina {
namespace {

constexpr double kCyclesOfTask = 30000;  // less is not worth a second thread
constexpr double kCyclesOfMemory = 1;    // per element, to read and write it

/// A program and where its results go: dense, or into slices of a wider tensor's channels.
struct Work {
  std::shared_ptr<const StageProgram> program;
  std::int64_t channels = 1, row = 0;  ///< row 0: dense
};

class ElementwiseStep final : public Step {
 public:
  explicit ElementwiseStep(const Work& work) : work_(work), code_(work.program->code()) {
    unit_ = std::max<std::int64_t>(1, code_.most);
    bytes_ = static_cast<std::int64_t>(code_.body.result_bytes);
    const auto per_unit = (kCyclesOfMemory + work.program->cycles_per_element()) * static_cast<double>(unit_);
    grain_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(kCyclesOfTask / per_unit));
  }

  void bind(const RunArgs& args) override { args_ = args; }

  void run() override {
    if (code_.total == 0) return;
    parallel_for((code_.total + unit_ - 1) / unit_, grain_, [this](std::int64_t begin, std::int64_t end) {
      const auto first = begin * unit_, last = std::min(end * unit_, code_.total);
      if (work_.row != 0) return run_rows(first, last);
      StageRun run(*work_.program, args_.in);
      run(nullptr, static_cast<std::byte*>(args_.out[0]) + first * bytes_, first, last - first);
    });
  }

 private:
  /// Piece by piece into a buffer, from there to the rows.
  void run_rows(std::int64_t first, std::int64_t last) const {
    constexpr std::int64_t kTile = 1024;
    alignas(64) std::byte tile[kTile * 8];
    auto* out = static_cast<std::byte*>(args_.out[0]);
    StageRun run(*work_.program, args_.in);
    while (first < last) {
      const auto count = std::min(kTile, last - first);
      run(nullptr, tile, first, count);
      for (std::int64_t i = 0; i < count;) {
        const auto pixel = (first + i) / work_.channels, channel = (first + i) % work_.channels;
        const auto n = std::min(work_.channels - channel, count - i);
        std::memcpy(out + (pixel * work_.row + channel) * bytes_, tile + i * bytes_,
                    static_cast<std::size_t>(n * bytes_));
        i += n;
      }
      first += count;
    }
  }

  const Work& work_;
  const stages::Code& code_;
  RunArgs args_{};
  std::int64_t unit_, bytes_, grain_;
};

class ElementwiseExecutable final : public Executable {
 public:
  explicit ElementwiseExecutable(Work work) : work_(std::move(work)) {}
  std::unique_ptr<Step> step() const override { return std::make_unique<ElementwiseStep>(work_); }

 private:
  Work work_;
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
    if (layout == Layout::channels_last) {
      o.wide_inputs = program->whole_inputs();
      o.wide_outputs = {0};
    }
    o.make = [program, channels = dims.size() > 1 ? dims[1] : 1](MakeContext& context) {
      return std::make_unique<ElementwiseExecutable>(
          Work{program->made(context), channels, context.output_row()});
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
