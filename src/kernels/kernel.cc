#include "kernels/kernel.h"

#include <algorithm>
#include <mutex>

#include "base/no_destructor.h"
#include "extension/custom_op.h"
#include "kernels/list.h"

namespace lamina {

bool NodeView::all(ElementType type) const {
  const auto fits = [&](ValueId v) { return !v.valid() || graph_.type(v).element == type; };
  const auto own = static_cast<std::ptrdiff_t>(std::min(base_inputs(node_), node_.inputs.size()));
  if (!std::all_of(node_.inputs.begin(), node_.inputs.begin() + own, fits)) return false;
  if (const Graph* body = epilogue(node_)) return body->type(body->inputs()[0]).element == type;
  return std::all_of(node_.outputs.begin(), node_.outputs.end(), fits);
}

namespace {

class FunctionStep final : public Step {
 public:
  explicit FunctionStep(const std::function<void(const RunArgs&)>& run) : run_(run) {}
  void bind(const RunArgs& args) override { args_ = args; }
  void run() override { run_(args_); }

 private:
  const std::function<void(const RunArgs&)>& run_;
  RunArgs args_{};
};

class FunctionExecutable final : public Executable {
 public:
  explicit FunctionExecutable(std::function<void(const RunArgs&)> run) : run_(std::move(run)) {}
  std::unique_ptr<Step> step() const override { return std::make_unique<FunctionStep>(run_); }

 private:
  std::function<void(const RunArgs&)> run_;
};

}  // namespace

std::unique_ptr<Executable> executable(std::function<void(const RunArgs&)> run) {
  return std::make_unique<FunctionExecutable>(std::move(run));
}

namespace {

void copy_now(ElementType type, const Dims& shape, Layout from, const Tensor& in, Layout to, Tensor& out) {
  const auto code = make_reorder(type, shape, from, to);
  const auto step = code->step();
  const void* source = in.raw();
  void* target = out.raw();
  step->bind({&source, &target, nullptr});
  step->run();
}

}  // namespace

Tensor laid_out(const Tensor& plain, Layout layout) {
  if (layout == Layout::plain) return plain.to_aligned();
  const auto* packing = packing_of(layout);
  const auto bytes = static_cast<std::int64_t>(memory_bytes(plain.element_type(), plain.shape(), layout));
  Tensor out = packing ? Tensor(ElementType::u8, {bytes}) : Tensor(plain.element_type(), plain.shape());
  copy_now(plain.element_type(), plain.shape(), Layout::plain, plain, layout, out);
  return out;
}

PackedSize size_laid_out(const Tensor& plain, Layout layout) {
  if (layout == Layout::plain || !packing_of(layout)) return PackedSize::like(plain);
  return {ElementType::u8,
          static_cast<std::int64_t>(memory_bytes(plain.element_type(), plain.shape(), layout))};
}

Tensor plain_of(const Tensor& memory, ElementType type, const Dims& shape, Layout layout) {
  if (layout == Layout::plain) return memory;
  Tensor out(type, shape);
  copy_now(type, shape, layout, memory, Layout::plain, out);
  return out;
}

namespace {

/// The list is copied when it grows: who asks kernels keeps the one that was there.
struct Registry {
  std::mutex mutex;
  KernelList list;

  Registry() {
    std::vector<Kernel> all;
    add_view_kernels(all);
    add_onednn_kernels(all);
    add_native_kernels(all);
    add_extension_kernels(all);
    add_reference_kernel(all);
    list = std::make_shared<const std::vector<Kernel>>(std::move(all));
  }
};

Registry& registry() {
  static ProcessLifetime r([] { return Registry(); });
  return *r;
}

}  // namespace

KernelList kernels() {
  auto& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.list;
}

void add_kernel(Kernel kernel) {
  auto& r = registry();
  const std::lock_guard lock(r.mutex);
  auto list = *r.list;
  const auto same =
      std::find_if(list.begin(), list.end(), [&](const auto& k) { return k.name == kernel.name; });
  if (same != list.end()) fail(ErrorCode::bad_call, "there is a kernel \"{}\" already", kernel.name);
  list.insert(list.end() - 1, std::move(kernel));  // the reference stays last
  r.list = std::make_shared<const std::vector<Kernel>>(std::move(list));
}

void remove_kernel(std::string_view name) {
  auto& r = registry();
  const std::lock_guard lock(r.mutex);
  auto list = *r.list;
  std::erase_if(list, [&](const auto& k) { return k.name == name; });
  r.list = std::make_shared<const std::vector<Kernel>>(std::move(list));
}

namespace {

/// "+libgate.so:Gate" for each operator of a library that runs inside kernels of the node.
std::string customs_of(const Node& n) {
  std::string out;
  const auto add = [&](const Op& op) {
    const auto* custom = custom_op(op);
    if (!custom) return;
    const auto name = fmt::format("+{}:{}", custom->declared().origin.name, custom->declared().type);
    if (out.find(name) == std::string::npos) out += name;
  };
  if (const auto* custom = custom_op(n.op); custom && custom->declared().calls.elementwise) add(n.op);
  if (!n.op.has(Trait::control_flow))
    for (const auto& body : n.bodies)
      for (std::uint32_t i = 0; i < body.node_slots(); ++i)
        if (const auto& inner = body.node({i}); !inner.erased()) add(inner.op);
  return out;
}

}  // namespace

Answers ask_kernels(const NodeView& view, std::string_view only) {
  Answers answers;
  const auto all = kernels();
  for (const auto& kernel : *all) {
    if ((!only.empty() && kernel.name != only) || !kernel.takes(view.node().op)) continue;
    const auto before = answers.offers.size();
    kernel.offer(view, answers);
    for (auto i = before; i < answers.offers.size(); ++i) answers.offers[i].kernel = kernel.name;
  }
  add_later_stages(view, answers);
  if (const auto customs = customs_of(view.node()); !customs.empty())
    for (auto& offer : answers.offers) offer.label += customs;
  return answers;
}

}  // namespace lamina
