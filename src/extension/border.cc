#include "extension/border.h"

#include <algorithm>

#include "base/cancellation.h"
#include "extension/arrange.h"

void lamina_context::fail(std::string text) noexcept {
  const std::lock_guard lock(mutex);
  if (failed) return;
  failed = true;
  error = std::move(text);
}

namespace lamina {
namespace {

/// The status, whatever the function throws.
template <class F>
lamina_status status_of(lamina_context& context, const F& function) {
  const Quiescence::Moving here;  // the library may hold locks
  const KeepsRounding keeps(context.rounding_changed);
  try {
    return function();
  } catch (const std::exception& e) {
    context.fail(std::string("threw an exception: ") + e.what());
  } catch (...) {
    context.fail("threw an exception that is no std::exception");
  }
  return LAMINA_FAILED;
}

/// What was stopped inside of it is no failure of the library: Stopped is thrown.
[[noreturn]] void throw_failure(lamina_context& context, const std::string& where, std::string_view what,
                                lamina_status status) {
  if (const auto* scope = StopScope::here(); scope != nullptr && scope->must_stop()) scope->stop();
  const std::lock_guard lock(context.mutex);
  auto text = context.failed ? std::move(context.error) : fmt::format("gave the status {}", status);
  context.failed = false;  // it may be called again
  context.error.clear();
  throw Error(ErrorCode::extension, fmt::format("{}: {}: {}", where, what, text));
}

}  // namespace

KeepsRounding::~KeepsRounding() {
  if (FloatingPoint::here().same_way(before_)) return;
  changed_ = true;
  before_.set_here();
}

void call_library(lamina_context& context, const std::string& where, std::string_view what,
                  const std::function<lamina_status()>& function) {
  const auto status = status_of(context, function);
  if (status != LAMINA_OK || context.failed) throw_failure(context, where, what, status);
}

void call_kernel(lamina_context& context, const std::string& where, lamina_status (*run)(const lamina_call*),
                 const lamina_call& call) {
  const auto status = status_of(context, [&] { return run(&call); });
  if (status != LAMINA_OK || context.failed) throw_failure(context, where, "run", status);
}

BorderTensor::BorderTensor(ElementType type, const Dims& shape, std::int32_t layout, const void* data)
    : type_(type), dims_(shape) {
  tensor_.struct_size = sizeof(tensor_);
  tensor_.type = border_type(type);
  describe(layout);
  point(data);
}

void BorderTensor::describe(std::int32_t layout) {
  strides_ = strides_in(dims_, layout);
  tensor_.layout = layout;
  tensor_.rank = static_cast<std::int32_t>(dims_.size());
  tensor_.dims = dims_.data();
  tensor_.strides = block_of(layout) != 0 ? nullptr : strides_.data();
  tensor_.elements = element_count(dims_);
  tensor_.bytes = bytes_in(type_, dims_, layout);
}

void BorderTensor::resize(const Dims& shape) {
  dims_ = shape;
  describe(LAMINA_PLAIN);
}

void BorderTensor::clear_padding() { lamina::clear_padding(type_, dims_, tensor_.layout, tensor_.data); }

BorderValue::BorderValue(lamina_context& context, const KnownTensor& known) : constant_(known.constant) {
  const auto& shape = known.type.shape;
  value_.struct_size = sizeof(value_);
  value_.type = border_type(known.type.element);
  value_.rank = shape.ranked() ? static_cast<std::int32_t>(shape.rank()) : -1;
  for (const auto& d : shape.dims()) {
    low_.push_back(d.low());
    high_.push_back(d.high());
    symbols_.push_back(0);
    if (d.known() || d.name().empty()) continue;
    auto& names = context.symbols;
    auto it = std::find(names.begin(), names.end(), d.name());
    if (it == names.end()) it = names.insert(names.end(), d.name());
    symbols_.back() = static_cast<std::uint64_t>(it - names.begin()) + 1;
  }
  value_.low = low_.data();
  value_.high = high_.data();
  value_.symbols = symbols_.data();
  constexpr std::size_t kLookedAt = 1 << 16;  // bytes that are copied where they are not aligned
  if (constant_.valid() && constant_.bytes() <= kLookedAt) constant_ = constant_.to_aligned();
  if (!constant_.valid() || !constant_.aligned()) return;
  tensor_.emplace(constant_.element_type(), constant_.shape(), LAMINA_PLAIN, constant_.raw());
  value_.constant = tensor_->get();
}

void BorderNode::add(lamina_context& context, const std::vector<KnownTensor>& from,
                     std::vector<const lamina_value*>& to) {
  for (const auto& known : from)
    to.push_back(known.present ? values_.emplace_back(context, known).get() : nullptr);
}

BorderNode::BorderNode(lamina_context& context, const std::vector<KnownTensor>& in, std::size_t outputs) {
  add(context, in, in_);
  node_.struct_size = sizeof(node_);
  node_.context = &context;
  node_.inputs = in_.size();
  node_.in = in_.data();
  node_.outputs = outputs;
  node_.configuration = -1;
}

BorderNode::BorderNode(lamina_context& context, const std::vector<KnownTensor>& in,
                       const std::vector<KnownTensor>& out, std::int32_t configuration, void* instance)
    : BorderNode(context, in, out.size()) {
  add(context, out, out_);
  node_.out = out_.data();
  node_.configuration = configuration;
  node_.instance = instance;
}

}  // namespace lamina
