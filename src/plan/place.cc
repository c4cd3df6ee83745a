#include "plan/place.h"

#include <algorithm>

#include "plan/memory.h"

namespace lamina {
namespace {

std::uint32_t root(const Plan& plan, std::uint32_t t) { return plan.tensors[t].root; }

/// Last step that touches each root; results and inputs of `rest` live to the end.
std::vector<std::uint32_t> last_uses(const Plan& plan) {
  const auto end = static_cast<std::uint32_t>(plan.steps.size());
  std::vector<std::uint32_t> last(plan.tensors.size(), 0);
  const auto used = [&](const std::vector<std::uint32_t>& tensors, std::uint32_t step) {
    for (const auto t : tensors)
      if (t != kNoTensor) last[root(plan, t)] = step;
  };
  for (std::uint32_t s = 0; s < end; ++s) used(plan.steps[s].in, s), used(plan.steps[s].out, s);
  used(plan.rest_inputs, end);
  used(plan.results, end);
  return last;
}

/// The step's output may take the memory of that input, which nothing reads afterwards.
bool may_overwrite(const Plan& plan, const PlanStep& step, std::uint32_t in, std::uint32_t out) {
  if (in == kNoTensor || out == kNoTensor || root(plan, out) != out || plan.tensors[in].shift != 0)
    return false;
  const auto& from = plan.tensors[root(plan, in)];
  const auto reads = std::count_if(step.in.begin(), step.in.end(),
                                   [&](auto t) { return t != kNoTensor && root(plan, t) == root(plan, in); });
  return from.place == Place::arena && from.bytes == plan.tensors[out].bytes && reads == 1;
}

/// Tensors by the root whose memory they share, and the last step that uses each root.
struct Memories {
  std::vector<std::vector<std::uint32_t>> tensors;
  std::vector<std::uint32_t> last;

  explicit Memories(const Plan& plan) : tensors(plan.tensors.size()), last(last_uses(plan)) {
    for (std::uint32_t t = 0; t < tensors.size(); ++t) tensors[root(plan, t)].push_back(t);
  }

  void overwrite(Plan& plan, std::uint32_t in, std::uint32_t out) {
    const auto memory = root(plan, in);
    auto& from = plan.tensors[memory];
    if (const auto& to = plan.tensors[out]; to.place == Place::result) {  // the whole chain moves there
      from.place = Place::result;
      from.index = to.index;
    }
    for (const auto t : tensors[out]) plan.tensors[t].root = memory;
    tensors[memory].insert(tensors[memory].end(), tensors[out].begin(), tensors[out].end());
    tensors[out].clear();
    last[memory] = std::max(last[memory], last[out]);
  }
};

}  // namespace

void overwrite_inputs(Plan& plan, const std::vector<KernelStep>& kernels) {
  Memories memories(plan);
  for (const auto& kernel : kernels) {
    const auto& step = plan.steps[kernel.step];
    for (const auto& pair : kernel.offer.in_place) {
      const auto in = step.in[pair.input], out = step.out[pair.output];
      if (!may_overwrite(plan, step, in, out) || memories.last[root(plan, in)] != kernel.step) continue;
      memories.overwrite(plan, in, out);
      break;
    }
  }
}

void place_tensors(Plan& plan) {
  const auto last = last_uses(plan);
  std::vector<std::uint32_t> first(plan.tensors.size(), UINT32_MAX);
  std::size_t scratch = 0;
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    scratch = std::max(scratch, plan.steps[s].scratch);
    for (const auto t : plan.steps[s].out)
      if (t != kNoTensor) first[root(plan, t)] = std::min(first[root(plan, t)], s);
  }
  std::vector<Block> blocks;
  std::vector<std::uint32_t> of;
  for (std::uint32_t t = 0; t < plan.tensors.size(); ++t) {
    const auto& tensor = plan.tensors[t];
    if (tensor.root != t || tensor.place != Place::arena || first[t] == UINT32_MAX) continue;
    blocks.push_back({tensor.bytes, first[t], last[t], 0});
    of.push_back(t);
    plan.memory.sum += tensor.bytes;
  }
  const auto size = place(blocks);
  for (std::size_t i = 0; i < of.size(); ++i) plan.tensors[of[i]].offset = blocks[i].offset;
  plan.scratch_offset = size;
  plan.memory.live = live_bound(blocks) + scratch;
  plan.memory.arena = size + scratch;
}

}  // namespace lamina
