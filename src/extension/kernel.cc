#include "extension/kernel.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory_left.h"
#include "extension/arrange.h"
#include "graph/binary.h"

namespace lamina {
namespace {

constexpr std::int32_t kLayoutOfInput = 1024;

const CustomOp& custom_of(const Op& op) {
  const auto* custom = custom_op(op);
  LAMINA_CHECK(custom, "{} is no operator of a library", op.name());
  return *custom;
}

std::string where_of(const CustomOp& op, const std::string& label) {
  if (label.empty()) return op.where();
  return fmt::format("node \"{}\" ({}): {}", label, op.declared().type, op.where());
}

void destroy(const CustomOp& op, void* instance) {
  const auto function = op.declared().calls.destroy;
  if (!instance || !function) return;
  std::atomic<bool> changed = false;
  const KeepsRounding keeps(changed);
  try {
    function(instance);
  } catch (...) {  // nothing is left to be said
  }
}

class Forms {
 public:
  Forms(const KernelNode& node, std::size_t index)
      : node_(node), op_(custom_of(node.op).declared()), c_(op_.configurations.at(index)), index_(index) {}

  KernelForms all() {
    KernelForms out;
    const bool any =
        std::find(c_.in_layouts.begin(), c_.in_layouts.end(), LAMINA_ANY_LAYOUT) != c_.in_layouts.end() ||
        std::find(c_.out_layouts.begin(), c_.out_layouts.end(), LAMINA_ANY_LAYOUT) != c_.out_layouts.end();
    for (const auto layout : {LAMINA_PLAIN, LAMINA_CHANNELS_LAST, LAMINA_BLOCKED_8, LAMINA_BLOCKED_16}) {
      std::string why;
      if (auto form = in_layout(layout, why); why.empty())
        out.forms.push_back(std::move(form));
      else if (out.mismatch.empty())
        out.mismatch = why;
      if (!any) break;
    }
    return out;
  }

 private:
  KernelForm in_layout(std::int32_t any, std::string& why) const {
    KernelForm form{index_, {}, {}};
    for (std::size_t i = 0; i < node_.in.size() && why.empty(); ++i) {
      const auto at = DeclaredOperation::port_index(op_.in, i);
      form.in.push_back(resolved(c_.in_layouts.at(at), any, form));
      if (node_.in[i].present) check("input", i, node_.in[i].type, c_.in_types[at], form.in.back(), why);
    }
    for (std::size_t i = 0; i < node_.out.size() && why.empty(); ++i) {
      const auto at = DeclaredOperation::port_index(op_.out, i);
      const auto& type = node_.out[i].type;
      auto layout = resolved(c_.out_layouts.at(at), any, form);
      const bool of_input = c_.out_layouts[at] >= kLayoutOfInput;  // as input 0, where that can be
      if (of_input && type.shape.ranked() && !can_lie(type.element, type.shape.rank(), layout))
        layout = LAMINA_PLAIN;
      if (op_.has(LAMINA_SHAPE_AFTER_RUN)) layout = LAMINA_PLAIN;
      form.out.push_back(layout);
      check("output", i, type, c_.out_types[at], layout, why);
    }
    return form;
  }

  static std::int32_t resolved(std::int32_t layout, std::int32_t any, const KernelForm& form) {
    if (layout == LAMINA_ANY_LAYOUT) return any;
    if (layout < kLayoutOfInput) return layout;
    const auto k = static_cast<std::size_t>(layout - kLayoutOfInput);
    return k < form.in.size() ? form.in[k] : LAMINA_PLAIN;
  }

  void check(std::string_view what, std::size_t i, const TensorType& type, std::int32_t wanted,
             std::int32_t layout, std::string& why) const {
    if (wanted >= kLayoutOfInput) {
      const auto k = static_cast<std::size_t>(wanted - kLayoutOfInput);
      if (k < node_.in.size() && node_.in[k].present && node_.in[k].type.element != type.element)
        why = fmt::format("{} {} is {}, wanted the type of input {}, {}", what, i, name_of(type.element), k,
                          name_of(node_.in[k].type.element));
    } else if (wanted != LAMINA_ANY_TYPE && type_of_border(wanted) != type.element) {
      why = fmt::format("{} {} is {}, wanted {}", what, i, name_of(type.element),
                        name_of(type_of_border(wanted)));
    }
    if (why.empty() && type.shape.ranked() && !can_lie(type.element, type.shape.rank(), layout))
      why = fmt::format("{} {} has {} axes, wanted 3 or more for {}", what, i, type.shape.rank(),
                        layout_text(layout));
  }

  const KernelNode& node_;
  const DeclaredOperation& op_;
  const DeclaredConfiguration& c_;
  std::size_t index_;
};

}  // namespace

KernelForms forms_of(const KernelNode& node, std::size_t configuration) {
  return Forms(node, configuration).all();
}

std::string mismatches_of(const KernelNode& node) {
  const auto& all = custom_of(node.op).declared().configurations;
  std::vector<std::pair<std::string, std::string>> reasons;  // and the configurations that give it
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = forms_of(node, i);
    const auto verdict = found.forms.empty() ? Verdict::no("{}", found.mismatch) : accepted(node, i);
    if (verdict) continue;
    const auto same = std::find_if(reasons.begin(), reasons.end(),
                                   [&](const auto& r) { return r.first == verdict.reason(); });
    if (same != reasons.end())
      same->second += ", " + all[i].name;
    else
      reasons.emplace_back(verdict.reason(), all[i].name);
  }
  std::string out;
  for (const auto& [reason, names] : reasons) out += (out.empty() ? "" : "; ") + names + ": " + reason;
  return out.empty() ? "it has no kernel" : out;
}

Verdict accepted(const KernelNode& node, std::size_t configuration) {
  const auto& op = custom_of(node.op);
  const auto& c = op.declared().configurations.at(configuration);
  if (!c.accepts) return Verdict::yes();
  lamina_context context(&op);
  const BorderNode border(context, node.in, node.out, static_cast<std::int32_t>(configuration));
  try {
    call_library(context, op.where(), "accepts", [&] { return c.accepts(border.get()); });
  } catch (const Error& e) {
    return Verdict::no("{}", std::string_view(e.what()).substr(op.where().size() + 2));
  }
  return Verdict::yes();
}

Verdict has_constants(const KernelNode& node) {
  const auto& op = custom_of(node.op).declared();
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const auto* port = op.port(op.in, i);
    if (port && port->constant && node.in[i].present && !node.in[i].constant.valid())
      return Verdict::no("input {} \"{}\" is computed, wanted a constant", i, port->name);
  }
  return Verdict::yes();
}

void require_constants(const KernelNode& node) {
  if (const auto verdict = has_constants(node); !verdict)
    fail(ErrorCode::unsupported, "{}: {}", where_of(custom_of(node.op), node.label), verdict.reason());
}

CustomKernel::CustomKernel(KernelNode node, KernelForm form, const Tensor* state)
    : CustomKernel(Bare{}, std::move(node), std::move(form)) {
  make(state);
}

CustomKernel::CustomKernel(Bare, KernelNode node, KernelForm form)
    : node_(std::move(node)),
      form_(std::move(form)),
      op_(&custom_of(node_.op)),
      where_(where_of(*op_, node_.label)),
      prepared_(inputs_to_prepare()) {}

void CustomKernel::make(const Tensor* state) {
  const auto& calls = op_->declared().calls;
  if (!state && !calls.create) return;
  lamina_context context(op_);
  const BorderNode border(context, node_.in, node_.out, static_cast<std::int32_t>(form_.configuration));
  if (state)
    call_library(context, where_, "load",
                 [&] { return calls.load(border.get(), state->raw(), state->bytes(), &instance_); });
  else
    call_library(context, where_, "create", [&] { return calls.create(border.get(), &instance_); });
}

CustomKernel::~CustomKernel() { destroy(*op_, instance_); }

const DeclaredConfiguration& CustomKernel::configuration() const {
  return op_->declared().configurations.at(form_.configuration);
}

std::size_t CustomKernel::scratch() const {
  const auto& calls = op_->declared().calls;
  // Saved instances are loaded only when plans are made.
  return calls.scratch_bytes
             ? bytes_by(calls.scratch_bytes, "scratch_bytes", calls.load ? nullptr : instance_)
             : 0;
}

/// What a function of the library says.
std::size_t CustomKernel::bytes_by(lamina_status (*function)(const lamina_node*, std::size_t*),
                                   std::string_view name, void* instance) const {
  lamina_context context(op_);
  const BorderNode border(context, aligned_inputs(), node_.out,
                          static_cast<std::int32_t>(form_.configuration), instance);
  std::size_t bytes = 0;
  call_library(context, where_, name, [&] { return function(border.get(), &bytes); });
  if (!has_memory(bytes))
    fail(ErrorCode::extension, "{}: {}: {} bytes is more than this machine's memory", where_, name, bytes);
  return bytes;
}

/// Lets a function of the library write a block.
void CustomKernel::write_by(lamina_status (*function)(const lamina_node*, void*), std::string_view name,
                            void* block) const {
  lamina_context context(op_);
  const BorderNode border(context, aligned_inputs(), node_.out,
                          static_cast<std::int32_t>(form_.configuration), instance_);
  call_library(context, where_, name, [&] { return function(border.get(), block); });
}

Tensor CustomKernel::state() const {
  const auto& calls = op_->declared().calls;
  Tensor block(ElementType::u8,
               {static_cast<std::int64_t>(bytes_by(calls.saved_bytes, "saved_bytes", instance_))});
  write_by(calls.save, "save", block.raw());
  return block;
}

std::vector<std::size_t> CustomKernel::inputs_to_prepare() const {
  std::vector<std::size_t> out;
  if (!op_->declared().calls.prepare || form_.configuration == SIZE_MAX) return out;
  for (std::size_t i = 0; i < node_.in.size(); ++i) {
    const auto* port = op_->declared().port(op_->declared().in, i);
    if (port && port->constant && node_.in[i].present) out.push_back(i);
  }
  return out;
}

void CustomKernel::forget_constants() {
  for (auto& known : node_.in) known.constant = Tensor();
}

std::vector<KnownTensor> CustomKernel::aligned_inputs() const {
  auto in = node_.in;
  for (auto& known : in)
    if (known.constant.valid()) known.constant = known.constant.to_aligned();
  return in;
}

std::size_t CustomKernel::prepared_bytes() const {
  return bytes_by(op_->declared().calls.prepared_bytes, "prepared_bytes", instance_);
}

void CustomKernel::prepare_into(void* block) const {
  write_by(op_->declared().calls.prepare, "prepare", block);
}

Tensor CustomKernel::prepare() const {
  Tensor block(ElementType::u8, {static_cast<std::int64_t>(prepared_bytes())});
  prepare_into(block.raw());
  return block;
}

namespace {

/// A key of everything that a kernel is made from, except the content of constant `without`.
std::string key_of(const KernelNode& node, const KernelForm& form, std::size_t without) {
  ByteWriter to;
  write_op(to, node.op);
  for (const auto* list : {&node.in, &node.out})
    for (const auto& known : *list) {
      to.put(known.present);
      if (known.present) write_type(to, known.type);
    }
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const auto& constant = node.in[i].constant;
    to.put(constant.valid() && i != without);
    if (!constant.valid() || i == without) continue;
    to.hash(hash_of({constant.raw(), constant.bytes()}));
  }
  const auto& op = custom_of(node.op);
  return fmt::format("{} {} {}", op.saved_name(), op.declared().configurations.at(form.configuration).name,
                     to_string(hash_of(to.take())));
}

}  // namespace

std::string CustomKernel::prepare_key() const {
  return key_of(node_, form_, prepared_.empty() ? SIZE_MAX : prepared_[0]);
}

std::string state_key(const KernelNode& node, const KernelForm& form) {
  return "state of " + key_of(node, form, SIZE_MAX);
}

KernelForm reference_form(const KernelNode& node) {
  return {SIZE_MAX, std::vector<std::int32_t>(node.in.size(), LAMINA_PLAIN),
          std::vector<std::int32_t>(node.out.size(), LAMINA_PLAIN)};
}

CustomCall::CustomCall(const CustomKernel& kernel, Tensor prepared)
    : kernel_(kernel),
      prepared_(std::move(prepared)),
      function_(kernel.form().configuration == SIZE_MAX ? kernel.op().declared().calls.reference
                                                        : kernel.configuration().run),
      context_(&kernel.op()) {
  const auto add = [](const std::vector<KnownTensor>& from, const std::vector<std::int32_t>& layouts,
                      auto& tensors, auto& pointers) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto& shape = from[i].type.shape;
      tensors.push_back(from[i].present
                            ? std::make_unique<BorderTensor>(
                                  from[i].type.element, shape.known() ? shape.sizes() : Dims(), layouts[i])
                            : nullptr);
      pointers.push_back(from[i].present ? tensors.back()->get() : nullptr);
    }
  };
  add(kernel.node().in, kernel.form().in, in_, in_pointers_);
  add(kernel.node().out, kernel.form().out, out_, out_pointers_);
  call_.struct_size = sizeof(call_);
  call_.context = &context_;
  call_.configuration = static_cast<std::int32_t>(kernel.form().configuration);
  call_.instance = kernel.instance();
  call_.inputs = in_.size();
  call_.in = in_pointers_.data();
  call_.outputs = out_.size();
  call_.out = out_pointers_.data();
  call_.prepared = prepared_.valid() ? prepared_.raw() : nullptr;
  call_.prepared_bytes = prepared_.valid() ? prepared_.bytes() : 0;
}

void CustomCall::bind(const void* const* in, void* const* out, void* scratch, std::size_t scratch_bytes,
                      const lamina_stages* stages) {
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (in_[i]) in_[i]->point(in[i]);
    in_pointers_[i] = in_[i] && in[i] ? in_[i]->get() : nullptr;
  }
  for (std::size_t i = 0; i < out_.size(); ++i) out_[i]->point(out[i]);
  call_.scratch = scratch_bytes != 0 ? scratch : nullptr;
  call_.scratch_bytes = scratch_bytes;
  call_.stages = stages;
}

void CustomCall::run() { call_kernel(context_, kernel_.where(), function_, call_); }

void CustomCall::clear_padding() {
  for (const auto& out : out_) out->clear_padding();
}

ElementwiseKernel::ElementwiseKernel(const Op& op, const std::string& label, const Shape& shape)
    : op_(op), custom_(&custom_of(op_)), where_(where_of(*custom_, label)) {
  const auto& calls = custom_->declared().calls;
  if (!calls.create) return;
  lamina_context context(custom_);
  const std::vector<KnownTensor> one{{true, {ElementType::f32, shape}, {}}};
  const BorderNode border(context, one, one);
  call_library(context, where_, "create", [&] { return calls.create(border.get(), &instance_); });
}

ElementwiseKernel::~ElementwiseKernel() { destroy(*custom_, instance_); }

void ElementwiseKernel::operator()(const float* in, float* out, std::size_t count) const {
  const KeepsRounding keeps(rounding_changed_);
  try {
    custom_->declared().calls.elementwise(instance_, in, out, count);
  } catch (const std::exception& e) {
    fail(ErrorCode::extension, "{}: elementwise: threw an exception: {}", where_, e.what());
  } catch (...) {
    fail(ErrorCode::extension, "{}: elementwise: threw an exception that is no std::exception", where_);
  }
}

}  // namespace lamina
