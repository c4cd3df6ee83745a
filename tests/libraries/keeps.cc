/// Operations with what the first header did not have: state that compiled models keep, samples. By the C++
/// wrapper.
#include <atomic>
#include <cstring>
#include <memory>

#include "lamina/extension.hpp"

using namespace lamina::extension;

namespace {

std::atomic<int> created, loaded;

/// y = table[channel] * x; the table takes long to make.
struct Table {
  explicit Table(const Node& node) : factors(static_cast<std::size_t>(node.size(0, 1))) {
    ++created;
    for (std::size_t i = 0; i < factors.size(); ++i)
      factors[i] = static_cast<float>(node.real("step")) * static_cast<float>(i + 1);
  }
  Table() = default;
  static std::unique_ptr<Table> load(const Node&, const void* block, std::size_t bytes) {
    ++loaded;
    auto table = std::make_unique<Table>();
    table->factors.resize(bytes / sizeof(float));
    std::memcpy(table->factors.data(), block, bytes);
    return table;
  }
  std::size_t saved_bytes() const { return factors.size() * sizeof(float); }
  void save(void* block) const { std::memcpy(block, factors.data(), saved_bytes()); }
  static std::size_t scratch_bytes(const Node& node) {
    if (node.raw().instance) refuse("scratch_bytes has an instance");
    return 64;
  }
  void run(const Call& call) const {
    const auto& x = call.in(0);
    std::uint64_t points = 1;
    for (std::int32_t i = 2; i < x.rank; ++i) points *= static_cast<std::uint64_t>(x.dims[i]);
    for (std::uint64_t i = 0; i < x.elements; ++i)
      call.output<float>(0)[i] = factors[i / points % factors.size()] * call.input<float>(0)[i];
  }
  std::vector<float> factors;
};

/// y = x + t, where t is an attribute.
struct AddTensor {
  explicit AddTensor(const Node& node) : t(node.tensor("t")) {}
  void run(const Call& call) const {
    for (std::uint64_t i = 0; i < call.in(0).elements; ++i)
      call.output<float>(0)[i] = call.input<float>(0)[i] + static_cast<const float*>(t.data)[i % t.elements];
  }
  const lamina_tensor& t;
};

/// An operation that prepares both weights together: y = x * w0 + w1.
struct Both {
  explicit Both(const Node& node) : count(static_cast<std::size_t>(node.size(1, 0))) {}
  static std::size_t prepared_bytes(const Node& node) {
    return node.in(1).constant->bytes + node.in(2).constant->bytes;
  }
  static void prepare(const Node& node, void* block) {
    ++prepared;
    const auto *a = node.in(1).constant, *b = node.in(2).constant;
    std::memcpy(block, a->data, a->bytes);
    std::memcpy(static_cast<char*>(block) + a->bytes, b->data, b->bytes);
  }
  void run(const Call& call) const {
    const auto* w = call.prepared<float>();
    for (std::uint64_t i = 0; i < call.in(0).elements; ++i)
      call.output<float>(0)[i] = call.input<float>(0)[i] * w[i % count] + w[count + i % count];
  }
  std::size_t count;
  static inline std::atomic<int> prepared;
};

/// y = x + the number of the run: not pure.
struct Count {
  explicit Count(const Node&) {}
  Count() = default;
  static std::unique_ptr<Count> load(const Node&, const void*, std::size_t) {
    return std::make_unique<Count>();
  }
  static std::size_t saved_bytes() { return 1; }
  static void save(void* block) { *static_cast<char*>(block) = 0; }
  static void reference(const Call& call) {
    for (std::uint64_t i = 0; i < call.in(0).elements; ++i)
      call.output<float>(0)[i] = call.input<float>(0)[i] + static_cast<float>(runs);
    ++runs;
  }
  void run(const Call& call) const {
    reference(call);
    if (const auto* stages = call.raw().stages)
      stages->apply(stages, call.output<float>(0), 0, static_cast<std::int64_t>(call.in(0).elements));
  }
  static inline std::atomic<int> runs;
};

}  // namespace

extern "C" LAMINA_EXTENSION_EXPORT int created_so_far() { return created; }
extern "C" LAMINA_EXTENSION_EXPORT int loaded_so_far() { return loaded; }
extern "C" LAMINA_EXTENSION_EXPORT int prepared_so_far() { return Both::prepared; }

LAMINA_EXTENSION(library) {
  library.about("keeper", "2.0", "none");
  library.add(Operation("test.keeps", "Table")
                  .input("x")
                  .output("y")
                  .real("step", 0.5)
                  .sample("x=f32[1,4,3]")
                  .sample("x=[2,3,2,2] step=2")
                  .kernel<Table>());
  library.add(Operation("test.keeps", "AddTensor")
                  .input("x")
                  .output("y")
                  .attribute("t", LAMINA_TENSOR)
                  .kernel<AddTensor>());
  library.add(Operation("test.keeps", "Both")
                  .input("x")
                  .input("scale", {LAMINA_F32}, LAMINA_CONSTANT)
                  .input("shift", {LAMINA_F32}, LAMINA_CONSTANT)
                  .output("y")
                  .sample("x=[8] scale=[8] shift=[8](1,2,3,4,5,6,7,8)")
                  .kernel<Both>());
  library.add(Operation("test.keeps", "Count")
                  .flags(LAMINA_IMPURE | LAMINA_TAKES_STAGES)
                  .input("x")
                  .output("y")
                  .sample("x=[2,3]")
                  .kernel<Count>());
}
