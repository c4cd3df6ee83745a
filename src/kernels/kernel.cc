#include "kernels/kernel.h"

#include <algorithm>
#include <mutex>

#include "kernels/bits.h"
#include "kernels/list.h"

namespace lamina {

std::string_view name_of(Layout layout) {
  if (layout == Layout::channels_last_bits) return "channels_last_bits";
  return layout == Layout::plain ? "plain" : "channels_last";
}

std::optional<Layout> layout_named(std::string_view name) {
  for (const auto layout : {Layout::plain, Layout::channels_last, Layout::channels_last_bits})
    if (name == name_of(layout)) return layout;
  return std::nullopt;
}

Dims strides_of(const Dims& shape, Layout layout) {
  LAMINA_CHECK(layout != Layout::channels_last_bits, "bits have no strides");
  const std::size_t rank = shape.size();
  Dims strides(rank, 1);
  std::int64_t step = 1;
  const auto take = [&](std::size_t axis) {
    strides[axis] = step;
    step *= shape[axis];
  };
  if (layout == Layout::channels_last && rank >= 3) {
    take(1);
    for (std::size_t axis = rank; axis-- > 2;) take(axis);
    take(0);
  } else {
    for (std::size_t axis = rank; axis-- > 0;) take(axis);
  }
  return strides;
}

std::size_t memory_bytes(ElementType type, const Dims& shape, Layout layout) {
  const auto elements = element_count(shape);
  if (layout != Layout::channels_last_bits)
    return (elements * static_cast<std::size_t>(bits_of(type)) + 7) / 8;
  const auto channels = static_cast<std::size_t>(shape[1]);
  return elements == 0 ? 0 : elements / channels * static_cast<std::size_t>(bits::point_bytes(shape[1]));
}

bool NodeView::all(ElementType type) const {
  const auto fits = [&](ValueId v) { return !v.valid() || graph_.type(v).element == type; };
  return std::all_of(node_.inputs.begin(), node_.inputs.end(), fits) &&
         std::all_of(node_.outputs.begin(), node_.outputs.end(), fits);
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

Tensor reordered(const Tensor& tensor, Layout from, Layout to) {
  if (from == to) return tensor;
  if (to == Layout::channels_last_bits)
    return bits::packed(from == Layout::plain ? tensor : reordered(tensor, from, Layout::plain));
  Tensor out(tensor.element_type(), tensor.shape());
  const auto code = make_reorder(tensor.element_type(), tensor.shape(), from, to);
  const auto step = code->step();
  const void* in = tensor.raw();
  void* to_data = out.raw();
  step->bind({&in, &to_data, nullptr});
  step->run();
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
    add_reference_kernel(all);
    list = std::make_shared<const std::vector<Kernel>>(std::move(all));
  }
};

Registry& registry() {
  static Registry r;
  return r;
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
  return answers;
}

}  // namespace lamina
