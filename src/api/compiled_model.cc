/// The public CompiledModel.
#include <algorithm>

#include "api/at_work.h"
#include "api/inside.h"
#include "base/exiting.h"
#include "base/guard.h"

namespace lamina {

const Compiled& Inside::of(const CompiledModel& compiled) {
  if (!compiled.impl_) fail(ErrorCode::bad_call, "the compiled model was moved from");
  return *compiled.impl_;
}

CompiledModel::CompiledModel(std::shared_ptr<const Compiled> impl)
    : impl_(std::move(impl)), pool_(std::make_shared<RequestPool>()) {}

CompiledModel::CompiledModel(const Model& model, const Options& options)
    : CompiledModel(guarded("CompiledModel", [&] {
        return CompiledModel(std::make_shared<const Compiled>(Inside::shared(model), options));
      })) {}

CompiledModel Inside::compile_for(const Machine& machine, const Model& model, const Options& options) {
  return CompiledModel(
      std::make_shared<Compiled>(shared(model), options, std::make_shared<const Machine>(machine)));
}

CompiledModel Inside::with_weights(const CompiledModel& compiled, const ProgressCallback& progress,
                                   const std::stop_token& stop) {
  return CompiledModel(of(compiled).compiled_with_weights(progress, stop));
}

namespace {

/// Static objects outlive what other threads do with them in the midst of exit().
const Compiled& used(const CompiledModel& model) {
  const auto& compiled = Inside::of(model);
  compiled.notice_exit();
  return compiled;
}

}  // namespace

CompiledModel::~CompiledModel() {
  keep_at_exit(impl_);
  keep_at_exit(pool_);
}
const std::vector<Port>& CompiledModel::inputs() const {
  return guarded(
      "CompiledModel::inputs", [&]() -> auto& { return Inside::of(*this).model().inputs(); });
}
const std::vector<Port>& CompiledModel::outputs() const {
  return guarded(
      "CompiledModel::outputs", [&]() -> auto& { return Inside::of(*this).model().outputs(); });
}
const std::vector<Port>& CompiledModel::variables() const {
  return guarded(
      "CompiledModel::variables", [&]() -> auto& { return Inside::of(*this).model().variables(); });
}
std::optional<std::size_t> CompiledModel::find_input(std::string_view name) const {
  return guarded("CompiledModel::find_input", [&] { return find_port(inputs(), name); });
}
std::optional<std::size_t> CompiledModel::find_output(std::string_view name) const {
  return guarded("CompiledModel::find_output", [&] { return find_port(outputs(), name); });
}
std::vector<Port> CompiledModel::output_ports(const std::vector<Dims>& shapes) const {
  return guarded("CompiledModel::output_ports", [&] { return used(*this).output_ports(shapes); });
}
void CompiledModel::plan(const std::vector<Dims>& shapes, const std::stop_token& stop) const {
  guarded("CompiledModel::plan", [&] { used(*this).plan_for(shapes, stop); });
}
std::size_t CompiledModel::plans() const {
  return guarded("CompiledModel::plans", [&] { return Inside::of(*this).program()->cache()->plans(); });
}
Request CompiledModel::create_request() const {
  return guarded("CompiledModel::create_request", [&] {
    const auto& compiled = used(*this);
    return compiled.request();
  });
}
int CompiledModel::threads() const {
  return guarded("CompiledModel::threads", [&] { return Inside::of(*this).threads(); });
}
int CompiledModel::streams() const {
  return guarded("CompiledModel::streams", [&] { return Inside::of(*this).scheduler().streams(); });
}
std::size_t CompiledModel::optimal_requests() const {
  return guarded("CompiledModel::optimal_requests", [&] {
    return static_cast<std::size_t>(std::max(1, Inside::of(*this).scheduler().streams()));
  });
}
std::string CompiledModel::property(std::string_view key) const {
  return guarded("CompiledModel::property",
                 [&] { return find_property(Inside::of(*this).properties(), key).value; });
}
std::vector<Property> CompiledModel::properties() const {
  return guarded("CompiledModel::properties", [&] { return used(*this).properties(); });
}
void shutdown() {
  guarded("shutdown", [] { Scheduler::shut_down(); });
}
void CompiledModel::save(const std::string& path) const {
  guarded("CompiledModel::save", [&] { used(*this).save(path); });
}
std::size_t CompiledModel::weight_memory() const {
  return guarded("CompiledModel::weight_memory", [&] {
    const AtWork here;
    return Inside::of(*this).program()->weight_bytes();
  });
}

std::vector<Tensor> CompiledModel::operator()(const std::vector<Tensor>& inputs) const {
  return guarded("CompiledModel::operator()", [&] {
    const auto& compiled = Inside::of(*this);
    if (inputs.size() != compiled.model().inputs().size())
      fail(ErrorCode::bad_input, "{} inputs given, wanted {}", inputs.size(),
           compiled.model().inputs().size());
    RequestPool::Lent request(*pool_, compiled);
    for (std::size_t i = 0; i < inputs.size(); ++i) request->set_input(i, inputs[i]);
    request->run();
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < outputs().size(); ++i) out.push_back(request->take_output(i));
    return out;
  });
}

Tensor CompiledModel::operator()(const Tensor& input) const {
  return guarded("CompiledModel::operator()", [&] {
    auto out = (*this)(std::vector<Tensor>{input});
    if (out.empty()) fail(ErrorCode::bad_call, "the model has no output");
    return std::move(out[0]);
  });
}

std::vector<Fusion> CompiledModel::fusions() const {
  return guarded("CompiledModel::fusions", [&] {
    const AtWork here;  // what came from a file is rewritten now
    std::vector<Fusion> out;
    for (const auto& [rule, count] : used(*this).ledger().counts())
      if (count.hits) out.push_back({rule, count.hits});
    return out;
  });
}

}  // namespace lamina
