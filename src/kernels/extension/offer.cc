#include "kernels/extension/offer.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/no_destructor.h"
#include "extension/kernel.h"
#include "interpreter/interpreter.h"
#include "kernels/epilogue.h"
#include "kernels/extension/layouts.h"
#include "kernels/family.h"
#include "kernels/list.h"
#include "kernels/native/stages/program.h"
#include "ops/eval.h"

namespace lamina {
namespace {

using extension_kernels::layout_of;

constexpr std::size_t kLookedAt = 1 << 16;  // bytes of an unaligned constant that is copied to be looked at

/// `weights`: they stay where they are, by which blocks are known that were prepared of them.
KnownTensor known_input(const NodeView& v, std::size_t i, bool weights) {
  if (!v.has(i)) return {false, {}, {}};
  KnownTensor known{true, v.graph().type(v.node().inputs[i]), {}};
  if (const auto* constant = v.constant(i))
    known.constant = !weights && constant->bytes() <= kLookedAt ? constant->to_aligned() : *constant;
  return known;
}

KernelNode kernel_node(const NodeView& v) {
  KernelNode node;
  node.op = v.node().op;
  const auto& op = custom_op(node.op)->declared();
  node.label = v.graph().label(v.id());
  const auto inputs = std::min(base_inputs(v.node()), v.inputs());
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto* port = op.port(op.in, i);
    node.in.push_back(known_input(v, i, port && port->constant));
  }
  for (std::size_t i = 0; i < v.outputs(); ++i)
    node.out.push_back({true, v.graph().type(v.node().outputs[i]), {}});
  if (const Graph* body = epilogue(v.node())) node.out[0].type = body->type(body->inputs()[0]);
  return node;
}

/// What states are kept by: they are of nodes, not of a constant.
const Tensor& source_of_states() {
  static const ProcessLifetime source([] { return from_ints(ElementType::u8, {1}, {0}); });
  return *source;
}

struct Made {
  std::shared_ptr<CustomKernel> kernel;
  Tensor state;  ///< kept while the kernel is used, so that it is saved; not valid: it has none
};

Made made_with(KernelNode node, KernelForm form, WeightStore& weights) {
  if (!custom_op(node.op)->declared().calls.load)
    return {std::make_shared<CustomKernel>(std::move(node), std::move(form)), {}};
  Made out;
  out.state =
      weights.moved(source_of_states(), state_key(node, form), PackedSize::of_any(), [&](const Tensor&) {
        out.kernel = std::make_shared<CustomKernel>(node, form);
        return out.kernel->state();
      });
  if (!out.kernel) out.kernel = std::make_shared<CustomKernel>(std::move(node), std::move(form), &out.state);
  return out;
}

/// A kernel is made when it is needed: create() may take time, and few offers are taken.
class LazyKernel {
 public:
  LazyKernel(KernelNode node, KernelForm form) : node_(std::move(node)), form_(std::move(form)) {}
  std::size_t scratch() {
    if (custom_op(node_.op)->declared().calls.load) return CustomKernel::bare(node_, form_).scratch();
    made_ = std::make_shared<CustomKernel>(node_, form_);
    return made_->scratch();
  }
  /// The kernel for one plan. Thread-safe.
  Made take(WeightStore& weights) {
    {
      const std::lock_guard lock(mutex_);
      if (made_) return {std::move(made_), {}};
    }
    return made_with(node_, form_, weights);
  }

 private:
  KernelNode node_;
  KernelForm form_;
  std::mutex mutex_;
  std::shared_ptr<CustomKernel> made_;
};

/// The block, or a tensor that is not valid; the kernel needs the constants no more.
Tensor prepared_by(CustomKernel& kernel, WeightStore& weights) {
  const auto& inputs = kernel.prepared_inputs();
  Tensor block;
  if (!inputs.empty())
    block = weights.moved(kernel.node().in[inputs[0]].constant, kernel.prepare_key(), PackedSize::of_any(),
                          [&](const Tensor&) { return kernel.prepare(); });
  kernel.forget_constants();
  return block;
}

/// What lamina_call::stages points to.
struct Stages {
  lamina_stages border{sizeof(lamina_stages), apply};
  const StageProgram* program = nullptr;
  const void* const* in = nullptr;

  static void apply(const lamina_stages* stages, float* values, std::int64_t first, std::int64_t count) {
    const auto& self = *reinterpret_cast<const Stages*>(stages);
    StageRun run(*self.program, self.in);
    run(values, values, first, count);
  }
};

class CustomStep final : public Step {
 public:
  CustomStep(const CustomKernel& kernel, const Tensor& prepared, std::size_t scratch,
             const StageProgram* program)
      : call_(kernel, prepared), scratch_(scratch) {
    stages_.program = program;
  }
  void bind(const RunArgs& args) override {
    stages_.in = args.in;
    call_.bind(args.in, args.out, args.scratch, scratch_, stages_.program ? &stages_.border : nullptr);
  }
  void run() override {
    call_.run();
    call_.clear_padding();
  }

 private:
  CustomCall call_;
  std::size_t scratch_;
  Stages stages_;
};

class CustomExecutable final : public Executable {
 public:
  CustomExecutable(Made made, Tensor prepared, std::size_t scratch,
                   std::shared_ptr<const StageProgram> program)
      : made_(std::move(made)),
        prepared_(std::move(prepared)),
        scratch_(scratch),
        program_(std::move(program)) {}
  std::unique_ptr<Step> step() const override {
    return std::make_unique<CustomStep>(*made_.kernel, prepared_, scratch_, program_.get());
  }

 private:
  Made made_;
  Tensor prepared_;
  std::size_t scratch_;
  std::shared_ptr<const StageProgram> program_;
};

class Offering {
 public:
  Offering(const NodeView& v, const CustomOp& op, Answers& answers)
      : v_(v), op_(op.declared()), answers_(answers), node_(kernel_node(v)) {}

  void all() {
    require_constants(node_);
    const auto before = answers_.offers.size();
    for (std::size_t c = 0; c < op_.configurations.size(); ++c) configuration(c);
    if (answers_.offers.size() != before || op_.calls.reference || computes_in_f32(node_)) return;
    if (epilogue_size(v_.node()) != 0) return;  // without its stages it may be taken
    fail(ErrorCode::unsupported, "node \"{}\" ({}): {}: no configuration takes it: {}", node_.label, op_.type,
         op_.origin.name, mismatches_of(node_));
  }

 private:
  void configuration(std::size_t c) {
    const auto& name = op_.configurations[c].name;
    const auto found = forms_of(node_, c);
    if (found.forms.empty()) return answers_.refuse(op_.origin.name, "{}: {}", name, found.mismatch);
    if (const auto verdict = accepted(node_, c); !verdict)
      return answers_.refuse(op_.origin.name, "{}: {}", name, verdict.reason());
    for (const auto& form : found.forms) offer(form, op_.configurations[c]);
  }

  void offer(const KernelForm& form, const DeclaredConfiguration& c) {
    Offer o;
    o.label = op_.origin.name + ":" + c.name;
    for (const auto layout : form.in) o.inputs.push_back(layout_of(layout));
    for (const auto layout : form.out) o.outputs.push_back(layout_of(layout));
    const auto kernel = std::make_shared<LazyKernel>(node_, form);
    std::shared_ptr<const StageProgram> program;
    if (epilogue_size(v_.node()) != 0) {
      std::string why;
      program = stages(o.outputs[0], why);
      if (!program) return answers_.refuse(op_.origin.name, "{}: {}", c.name, why);
      program->add_to(o, v_.machine());
    }
    o.inputs.resize(v_.inputs(), Layout::plain);
    consume(o);
    add_pairs(o, form, c);
    o.cost += own_cost(c);
    if (op_.calls.scratch_bytes) o.scratch = kernel->scratch();
    o.make = [kernel, program, scratch = o.scratch](MakeContext& context) -> std::unique_ptr<Executable> {
      const auto made = kernel->take(context.weights);
      auto prepared = prepared_by(*made.kernel, context.weights);
      return std::make_unique<CustomExecutable>(made, std::move(prepared), scratch,
                                                program ? program->made(context) : nullptr);
    };
    answers_.offers.push_back(std::move(o));
  }

  std::shared_ptr<const StageProgram> stages(Layout layout, std::string& why) const {
    const bool flat = layout == Layout::plain || layout == Layout::channels_last;
    if (!flat || node_.out[0].type.element != ElementType::f32 || v_.out_element() != ElementType::f32) {
      why = fmt::format("stages behind it want f32 in plain or channels_last, not {} to {} in {}",
                        name_of(node_.out[0].type.element), name_of(v_.out_element()), name_of(layout));
      return nullptr;
    }
    return StageProgram::of_epilogue(v_, layout, why);
  }

  /// Constants that are in the prepared block, and inputs that are absent.
  void consume(Offer& o) const {
    for (std::size_t i = 0; i < node_.in.size(); ++i)
      if (!node_.in[i].present || (op_.calls.prepare && op_.port(op_.in, i)->constant))
        o.consumed.push_back(i);
  }

  void add_pairs(Offer& o, const KernelForm& form, const DeclaredConfiguration& c) const {
    for (const auto& [in, out] : c.in_place) {
      if (in >= node_.in.size() || out >= node_.out.size() || !node_.in[in].present) continue;
      const auto &from = node_.in[in].type, &to = node_.out[out].type;
      if (bits_of(from.element) != bits_of(to.element) || from.shape.sizes() != to.shape.sizes() ||
          form.in[in] != form.out[out])
        continue;
      o.in_place.push_back({in, out});
    }
  }

  Cost own_cost(const DeclaredConfiguration& c) const {
    const auto elements = static_cast<double>(element_count(v_.out_dims()));
    if (c.nanoseconds > 0) {
      const auto unit = unit_costs(v_.machine(), Family::scalar).work;
      return cost_of(v_.machine(), Family::scalar, 1e-3 * c.nanoseconds * elements / unit);
    }
    double bytes = 0;
    for (const auto* list : {&node_.in, &node_.out})
      for (const auto& known : *list)
        if (known.present)
          bytes +=
              static_cast<double>(element_count(known.type.shape.sizes())) * bits_of(known.type.element) / 8;
    return cost_of(v_.machine(), Family::vector_light, elements, bytes);
  }

  const NodeView& v_;
  const DeclaredOperation& op_;
  Answers& answers_;
  KernelNode node_;
};

void offer_custom(const NodeView& v, Answers& answers) {
  Offering(v, *custom_op(v.node().op), answers).all();
}

bool is_custom(const Op& op) {
  const auto* custom = custom_op(op);
  return custom && !custom->declared().configurations.empty() && !op.has(Trait::data_dependent);
}

class CustomDynamic final : public DynamicKernel {
 public:
  CustomDynamic(Made made, Tensor prepared) : made_(std::move(made)), prepared_(std::move(prepared)) {}
  std::string label() const override {
    return made_.kernel->op().declared().origin.name + ":" + made_.kernel->configuration().name;
  }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const override {
    return run_form(*made_.kernel, prepared_, inputs);
  }

 private:
  Made made_;
  Tensor prepared_;
};

/// A node that the interpreter runs, by the name that errors call it.
class InterpretedDynamic final : public DynamicKernel {
 public:
  explicit InterpretedDynamic(const NodeView& v) : node_(v.node()) { node_.name = v.graph().label(v.id()); }
  std::string label() const override { return "reference"; }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const override {
    return interpret_node(node_, inputs);
  }

 private:
  Node node_;
};

}  // namespace

std::shared_ptr<const DynamicKernel> dynamic_kernel(const NodeView& v, WeightStore& weights) {
  const auto* op = custom_op(v.node().op);
  if (!op) return nullptr;
  if (!op->declared().has(LAMINA_SHAPE_AFTER_RUN)) return std::make_shared<InterpretedDynamic>(v);
  auto node = kernel_node(v);
  require_constants(node);
  const auto& configurations = op->declared().configurations;
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    const auto found = forms_of(node, c);
    if (found.forms.empty() || !accepted(node, c)) continue;
    auto made = made_with(node, found.forms[0], weights);
    auto prepared = prepared_by(*made.kernel, weights);
    return std::make_shared<CustomDynamic>(std::move(made), std::move(prepared));
  }
  if (op->declared().calls.reference) return std::make_shared<InterpretedDynamic>(v);
  fail(ErrorCode::unsupported, "node \"{}\" ({}): {}: no configuration takes it: {}", node.label,
       op->declared().type, op->declared().origin.name, mismatches_of(node));
}

void add_extension_kernels(std::vector<Kernel>& list) {
  layout_of(LAMINA_BLOCKED_8);  // recipes in text name them
  layout_of(LAMINA_BLOCKED_16);
  list.push_back({"extension", is_custom, offer_custom});
}

}  // namespace lamina
