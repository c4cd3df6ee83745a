#include "kernels/native/stages/later.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/cost.h"
#include "kernels/epilogue.h"
#include "kernels/native/stages/code.h"
#include "kernels/native/stages/program.h"

namespace lamina {
namespace {

constexpr double kCyclesOfTask = 30000;  // less is not worth a second thread
constexpr double kCyclesOfMemory = 1;    // per element, to read and write it

/// A kernel and what follows on its output, which may be a slice of a wider tensor's channels.
struct Work {
  std::unique_ptr<Executable> first;
  std::shared_ptr<const StageProgram> program;
  std::int64_t channels = 1, row = 0;  ///< row 0: dense
};

class LaterStep final : public Step {
 public:
  explicit LaterStep(const Work& work)
      : work_(work), code_(work.program->code()), first_(work.first->step()) {
    unit_ = std::max<std::int64_t>(1, code_.most);
    bytes_ = static_cast<std::int64_t>(code_.body.result_bytes);
    const auto per_unit = (kCyclesOfMemory + work.program->cycles_per_element()) * static_cast<double>(unit_);
    grain_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(kCyclesOfTask / per_unit));
  }

  void bind(const RunArgs& args) override {
    first_->bind(args);
    args_ = args;
  }

  void run() override {
    first_->run();
    parallel_for((code_.total + unit_ - 1) / unit_, grain_, [this](std::int64_t begin, std::int64_t end) {
      const auto first = begin * unit_, last = std::min(end * unit_, code_.total);
      StageRun run(*work_.program, args_.in);
      auto* out = static_cast<std::byte*>(args_.out[0]);
      if (work_.row != 0) return run_rows(run, out, first, last);
      run(out + first * bytes_, out + first * bytes_, first, last - first);
    });
  }

 private:
  /// From the rows into a buffer, and back.
  void run_rows(StageRun& run, std::byte* out, std::int64_t first, std::int64_t last) const {
    constexpr std::int64_t kTile = 1024;
    alignas(64) std::byte tile[kTile * 8];
    const auto each_row = [&](std::int64_t count, auto&& copy) {
      for (std::int64_t i = 0; i < count;) {
        const auto pixel = (first + i) / work_.channels, channel = (first + i) % work_.channels;
        const auto n = std::min(work_.channels - channel, count - i);
        copy(out + (pixel * work_.row + channel) * bytes_, tile + i * bytes_,
             static_cast<std::size_t>(n * bytes_));
        i += n;
      }
    };
    for (; first < last; first = std::min(last, first + kTile)) {
      const auto count = std::min(kTile, last - first);
      each_row(count, [](std::byte* row, std::byte* part, std::size_t n) { std::memcpy(part, row, n); });
      run(tile, tile, first, count);
      each_row(count, [](std::byte* row, std::byte* part, std::size_t n) { std::memcpy(row, part, n); });
    }
  }

  const Work& work_;
  const stages::Code& code_;
  std::unique_ptr<Step> first_;
  RunArgs args_{};
  std::int64_t unit_, bytes_, grain_;
};

class LaterExecutable final : public Executable {
 public:
  explicit LaterExecutable(Work work) : work_(std::move(work)) {}
  std::unique_ptr<Step> step() const override { return std::make_unique<LaterStep>(work_); }

 private:
  Work work_;
};

bool has(const std::vector<std::size_t>& list, std::size_t i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

/// Inputs from `from` on that the first stages read.
std::vector<std::size_t> read_before(const Node& node, std::size_t kept) {
  std::vector<std::size_t> out;
  const Graph& body = *epilogue(node);
  const auto order = body.order();
  for (std::size_t p = 1; p < body.inputs().size(); ++p)
    for (std::size_t i = 0; i < kept; ++i) {
      const auto& reads = body.node(order[i]).inputs;
      if (std::find(reads.begin(), reads.end(), body.inputs()[p]) != reads.end())
        out.push_back(base_inputs(node) + p - 1);
    }
  return out;
}

double pass_cost(const NodeView& v) {
  const double bytes = static_cast<double>(element_count(v.out_dims()) * bits_of(v.out_element())) / 8;
  return move_cost(2 * bytes) - move_cost(0) + far_cost(bytes);
}

Verdict complete(const NodeView& v, Offer& o) {
  std::string why;
  const auto program = StageProgram::of_later_stages(v, o.stages, o.outputs[0], why);
  if (!program) return Verdict::no("{}", why);
  if (program->code().tile_bytes != program->code().body.result_bytes)
    return Verdict::no("its results have {} bytes instead of {}", program->code().body.result_bytes,
                       program->code().tile_bytes);
  const auto before = read_before(v.node(), o.stages);
  for (const auto& input : program->code().inputs) {
    if (input.consumed) continue;
    if (has(before, input.index) && o.inputs[input.index] != input.layout)
      return Verdict::no("it reads input {} in another layout", input.index);
    if (has(o.consumed, input.index)) return Verdict::no("it reads input {}", input.index);
    o.inputs[input.index] = input.layout;
    std::erase(o.wide_inputs, input.index);
    std::erase_if(o.in_place, [&](const InPlace& pair) { return pair.input == input.index; });
  }
  if (o.outputs[0] != Layout::channels_last) o.wide_outputs.clear();
  o.stages = SIZE_MAX;
  o.label += "+stages";
  o.cost += program->cost() + pass_cost(v);
  o.make = [program, make = std::move(o.make), channels = v.out_dims().size() > 1 ? v.out_dims()[1] : 1](
               MakeContext& context) -> std::unique_ptr<Executable> {
    return std::make_unique<LaterExecutable>(Work{make(context), program, channels, context.output_row()});
  };
  return Verdict::yes();
}

}  // namespace

void add_later_stages(const NodeView& v, Answers& answers) {
  const auto size = epilogue_size(v.node());
  if (size == 0 || v.outputs() != 1 || element_count(v.out_dims()) == 0) return;
  for (auto& offer : answers.offers) {
    if (offer.stages >= size || offer.is_view) continue;
    const auto stages = offer.stages;
    if (const auto verdict = complete(v, offer); !verdict)
      answers.refuse("native", "{}: the stages behind the first {} want a node of their own: {}", offer.label,
                     stages, verdict.reason());
  }
}

}  // namespace lamina
