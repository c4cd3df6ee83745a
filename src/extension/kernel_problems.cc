#include "extension/kernel_problems.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/guarded_memory.h"
#include "extension/guarded_run.h"
#include "ops/eval.h"

namespace lamina {
namespace {

constexpr double kTolerance = 1e-4;

bool all_finite(const std::vector<Tensor>& tensors) {
  for (const auto& t : tensors)
    if (t.valid() && is_float(t.element_type()))
      for (const double v : to_doubles(t))
        if (!std::isfinite(v)) return false;
  return true;
}

/// How a result differs from the expected one: a sentence, or nothing.
std::string difference_of(const DeclaredOperation& op, std::size_t i, const Tensor& got, const Tensor& wanted,
                          std::string_view than) {
  if (got.shape() != wanted.shape())
    return fmt::format("output {} is {}, {} gives {}", i, to_string(got.shape()), than,
                       to_string(wanted.shape()));
  const bool usual = op.calls.absolute == 0 && op.calls.relative == 0;
  const double absolute = usual ? kTolerance : op.calls.absolute,
               relative = usual ? kTolerance : op.calls.relative;
  const auto a = to_doubles(got), b = to_doubles(wanted);
  for (std::size_t e = 0; e < a.size(); ++e) {
    const bool same = a[e] == b[e] || (std::isnan(a[e]) && std::isnan(b[e])) ||
                      std::fabs(a[e] - b[e]) <= absolute + relative * std::fabs(b[e]);
    if (!same) return fmt::format("output {}, element {}: {:g}, {} gives {:g}", i, e, a[e], than, b[e]);
  }
  return {};
}

std::string nan_of(const std::vector<Tensor>& got, const std::vector<Tensor>* wanted) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!is_float(got[i].element_type())) continue;
    const auto a = to_doubles(got[i]);
    const auto b =
        wanted && (*wanted)[i].shape() == got[i].shape() ? to_doubles((*wanted)[i]) : std::vector<double>();
    for (std::size_t e = 0; e < a.size(); ++e)
      if (std::isnan(a[e]) && (b.empty() || !std::isnan(b[e])))
        return fmt::format("writes NaN to output {}, element {}, for finite inputs", i, e);
  }
  return {};
}

/// A kernel that is loaded from the state of this one must do the same: what is wanted, as far as that is.
std::string state_problem(const CustomKernel& kernel, const std::vector<Tensor>& in,
                          const std::vector<Tensor>& wanted) {
  const auto state = kernel.state();
  const CustomKernel loaded(kernel.node(), kernel.form(), &state);
  const auto trial = GuardedRun(loaded, in).run(std::byte{0xff});
  if (!trial.problem.empty()) return "loaded: " + trial.problem;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i].same_as(trial.outputs[i])) return fmt::format("loaded: output {} is not the same", i);
  return {};
}

/// Bytes that are lost each time that an instance is made, run and destroyed.
std::size_t lost_bytes(const KernelNode& node, const KernelForm& form, const std::vector<Tensor>& in) {
  constexpr int kTimes = 40;
  std::size_t least = SIZE_MAX;
  for (int i = 0; i < kTimes && least != 0; ++i) {  // what is kept for the next time fills up
    const auto before = heap_in_use();
    {
      const CustomKernel kernel(node, form);
      GuardedRun(kernel, in).run(std::byte{0});
    }
    const auto after = heap_in_use();
    least = std::min(least, after > before ? after - before : 0);
  }
  return least;
}

constexpr std::string_view kNotPure =
    "gives other results when it is run again, without the flag LAMINA_IMPURE";

}  // namespace

bool takes_inputs(const KernelNode& node, const KernelForm& form, const std::vector<Tensor>& in) {
  try {
    const CustomKernel kernel(node, form);
    return (void)GuardedRun(kernel, in).run(std::byte{0}), true;
  } catch (const Error&) {
    return false;
  }
}

std::string kernel_problem(const KernelNode& node, const KernelForm& form, const std::vector<Tensor>& in,
                           const std::vector<Tensor>* wanted) {
  const CustomKernel kernel(node, form);
  const auto& op = kernel.op().declared();
  GuardedRun runner(kernel, in);
  const auto first = runner.run(std::byte{0xff});
  if (!first.problem.empty()) return first.problem;
  const auto second = runner.run(std::byte{0x5a});
  for (std::size_t i = 0; i < first.outputs.size() && !op.has(LAMINA_IMPURE); ++i) {
    if (first.outputs[i].same_as(second.outputs[i])) continue;
    const bool left = first.outputs[i].same_as(runner.run(std::byte{0xff}).outputs[i]);
    return left ? fmt::format("leaves elements of output {} as they were", i)
                : fmt::format("output {}: {}", i, kNotPure);
  }
  if (all_finite(in))
    if (auto problem = nan_of(first.outputs, wanted); !problem.empty()) return problem;
  for (std::size_t i = 0; wanted && !op.has(LAMINA_IMPURE) && i < first.outputs.size(); ++i)
    if (auto problem = difference_of(op, i, first.outputs[i], (*wanted)[i], "the reference");
        !problem.empty())
      return problem;
  if (const auto lost = lost_bytes(node, form, in); lost != 0)
    return fmt::format("loses {} bytes of memory each time", lost);
  if (op.calls.load)
    if (auto problem =
            state_problem(kernel, in, op.has(LAMINA_IMPURE) ? std::vector<Tensor>() : first.outputs);
        !problem.empty())
      return problem;
  if (form.configuration == SIZE_MAX || op.has(LAMINA_IMPURE)) return {};
  for (const auto& pair : kernel.configuration().in_place) {
    if (pair.first >= in.size() || !in[pair.first].valid() || pair.second >= first.outputs.size()) continue;
    const auto &x = in[pair.first], &y = first.outputs[pair.second];
    if (x.shape() != y.shape() || bits_of(x.element_type()) != bits_of(y.element_type()) ||
        form.in[pair.first] != form.out[pair.second])
      continue;
    const auto over = runner.run(std::byte{0xff}, &pair);
    if (!over.problem.empty()) return "in place: " + over.problem;
    for (std::size_t i = 0; i < over.outputs.size(); ++i)
      if (auto problem = difference_of(op, i, over.outputs[i], first.outputs[i], "with memory of its own");
          !problem.empty())
        return fmt::format("in place of input {}: {}", pair.first, problem);
  }
  return {};
}

std::string elementwise_problem(const KernelNode& node, const std::vector<Tensor>* wanted, const Tensor& in) {
  const ElementwiseKernel kernel(node.op, node.label, node.in[0].type.shape);
  const Tensor x = convert(in, ElementType::f32);
  std::string problem;
  for (const auto count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, x.size()}) {
    const auto n = std::min(count, x.size());
    GuardedMemory from("the input", n * sizeof(float)), to("the output", n * sizeof(float));
    std::memcpy(from.data(), x.raw(), from.bytes());
    std::fill_n(to.data(), to.bytes(), std::byte{0xff});
    kernel(reinterpret_cast<const float*>(from.data()), reinterpret_cast<float*>(to.data()), n);
    std::vector<float> again(n);
    kernel(reinterpret_cast<const float*>(from.data()), again.data(), n);
    for (const auto* m : {&from, &to})
      if (problem.empty()) problem = m->fault();
    if (problem.empty() && std::memcmp(from.data(), x.raw(), from.bytes()) != 0)
      problem = "writes to its input";
    if (problem.empty() && n != 0 && std::memcmp(again.data(), to.data(), to.bytes()) != 0)
      problem = "gives other results when it is run again";
    const auto result = Tensor::wrap(ElementType::f32, {static_cast<std::int64_t>(n)}, to.data());
    if (problem.empty()) problem = nan_of({result}, nullptr);
    kernel(reinterpret_cast<const float*>(from.data()), reinterpret_cast<float*>(from.data()), n);
    if (problem.empty() && std::memcmp(from.data(), to.data(), to.bytes()) != 0)
      problem = "gives something else in place";
    if (problem.empty() && kernel.rounding_changed())
      problem = "changes the rounding mode of floating-point numbers";
    if (!problem.empty()) return "elementwise: " + problem;
    if (n == x.size() && wanted)
      problem = difference_of(custom_op(node.op)->declared(), 0, result.reshaped(x.shape()),
                              convert((*wanted)[0], ElementType::f32), "run or reference");
  }
  return problem.empty() ? "" : "elementwise: " + problem;
}

}  // namespace lamina
