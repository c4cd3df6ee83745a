#pragma once
/// lamina/extension.h in C++20: declarations as calls, kernels as classes, exceptions as errors. Header only,
/// nothing to link with. docs/extensions.md has examples; lamina/extension.h defines the meaning of
/// everything.
///
///     struct Gate {
///       explicit Gate(const Node& node) : slope(static_cast<float>(node.real("slope"))) {}
///       void apply(const float* in, float* out, std::size_t count) const { ... }
///       float slope;
///     };
///     LAMINA_EXTENSION(library) {
///       library.about("gate", "1.0", "MIT");
///       library.add(Operation("com.example", "Gate").input("x").output("y").real("slope",
///       0.1).elementwise<Gate>());
///     }
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lamina/extension.h"

/// The namespace is not shared with other libraries, whatever symbols they export.
#if defined(__GNUC__)
#define LAMINA_EXTENSION_OWN __attribute__((visibility("hidden")))
#else
#define LAMINA_EXTENSION_OWN
#endif

namespace lamina::extension {

/// The engine's table of functions; valid from the beginning of LAMINA_EXTENSION on.
LAMINA_EXTENSION_OWN inline const lamina_host*& engine() {
  static const lamina_host* host = nullptr;
  return host;
}

/// Runs f; an exception from it becomes the error of the call.
template <class F>
lamina_status guarded(lamina_context* context, F&& f) noexcept {
#if defined(__cpp_exceptions)
  try {
    f();
    return LAMINA_OK;
  } catch (const std::exception& e) {
    return engine()->fail(context, e.what());
  } catch (...) {
    return engine()->fail(context, "an exception that is no std::exception");
  }
#else
  (void)context;
  f();
  return LAMINA_OK;
#endif
}

/// Reports an error by an exception. Code that is compiled without exceptions must not call it, since it ends
/// the process there: such code calls engine()->fail(context, why) and returns; the returned value is ignored
/// then.
[[noreturn]] inline void refuse(const std::string& why) {
#if defined(__cpp_exceptions)
  throw std::runtime_error(why);
#else
  (void)why;
  std::terminate();
#endif
}

/// Attributes of a node. The functions throw std::runtime_error if none was declared with that name and kind.
class Attributes {
 public:
  explicit Attributes(lamina_context* context) : context_(context) {}
  bool flag(const char* name) const { return value<std::int32_t>(engine()->get_bool, name) != 0; }
  std::int64_t integer(const char* name) const { return value<std::int64_t>(engine()->get_int, name); }
  double real(const char* name) const { return value<double>(engine()->get_float, name); }
  std::string text(const char* name) const { return value<const char*>(engine()->get_string, name); }
  std::vector<std::int64_t> integers(const char* name) const {
    return list<std::int64_t>(engine()->get_ints, name);
  }
  std::vector<double> reals(const char* name) const { return list<double>(engine()->get_floats, name); }
  std::vector<std::string> texts(const char* name) const {
    const char* const* first = nullptr;
    std::size_t count = 0;
    if (engine()->get_strings(context_, name, &first, &count) != LAMINA_OK) refuse(name);
    return {first, first + count};
  }
  const lamina_tensor& tensor(const char* name) const {
    return *value<const lamina_tensor*>(engine()->get_tensor, name);
  }
  lamina_context* context() const { return context_; }

 private:
  template <class T, class Get>
  T value(Get get, const char* name) const {
    T out{};
    if (get(context_, name, &out) != LAMINA_OK) refuse(name);
    return out;
  }
  template <class T, class Get>
  std::vector<T> list(Get get, const char* name) const {
    const T* first = nullptr;
    std::size_t count = 0;
    if (get(context_, name, &first, &count) != LAMINA_OK) refuse(name);
    return {first, first + count};
  }
  lamina_context* context_;
};

/// A node before it runs: lamina_node.
class Node : public Attributes {
 public:
  explicit Node(const lamina_node* node) : Attributes(node->context), node_(node) {}
  const lamina_node& raw() const { return *node_; }
  std::size_t inputs() const { return node_->inputs; }
  bool has(std::size_t i) const { return i < node_->inputs && node_->in[i]; }
  const lamina_value& in(std::size_t i) const {
    if (!has(i)) refuse("input " + std::to_string(i) + " is missing");
    return *node_->in[i];
  }
  /// The size of an axis; for sizes that are known.
  std::int64_t size(std::size_t input, std::size_t axis) const { return in(input).low[axis]; }
  /// A constant's elements; throws if the input is no known constant. T must be the constant's element type:
  /// check in(i).type.
  template <class T>
  const T* constant(std::size_t i) const {
    if (!in(i).constant) refuse("input " + std::to_string(i) + " is no constant");
    return static_cast<const T*>(in(i).constant->data);
  }
  /// Sets the type and shape of an output; for infer() only.
  void set_output(std::size_t i, const lamina_value& value) const {
    if (engine()->set_output(context(), i, &value) != LAMINA_OK) refuse("set_output");
  }
  void set_output(std::size_t i, std::int32_t type, const std::vector<std::int64_t>& sizes) const {
    const lamina_value v{sizeof(v),    type,         static_cast<std::int32_t>(sizes.size()),
                         sizes.data(), sizes.data(), nullptr,
                         nullptr};
    set_output(i, v);
  }

 private:
  const lamina_node* node_;
};

/// A run: lamina_call.
class Call : public Attributes {
 public:
  explicit Call(const lamina_call* call) : Attributes(call->context), call_(call) {}
  const lamina_call& raw() const { return *call_; }
  std::size_t inputs() const { return call_->inputs; }
  bool has(std::size_t i) const { return i < call_->inputs && call_->in[i]; }
  const lamina_tensor& in(std::size_t i) const {
    if (!has(i)) refuse("input " + std::to_string(i) + " is missing, or in the prepared block");
    return *call_->in[i];
  }
  const lamina_tensor& out(std::size_t i) const {
    if (i >= call_->outputs) refuse("output " + std::to_string(i) + " is missing");
    return *call_->out[i];
  }
  template <class T>
  const T* input(std::size_t i) const {
    return static_cast<const T*>(in(i).data);
  }
  template <class T>
  T* output(std::size_t i) const {
    return static_cast<T*>(out(i).data);
  }
  template <class T>
  T* scratch() const {
    return static_cast<T*>(call_->scratch);
  }
  template <class T>
  const T* prepared() const {
    return static_cast<const T*>(call_->prepared);
  }
  /// Allocates an output whose shape is known only in run().
  template <class T>
  T* allocate(std::size_t i, const std::vector<std::int64_t>& dims) const {
    void* const memory =
        engine()->allocate_output(context(), i, static_cast<std::int32_t>(dims.size()), dims.data());
    if (!memory) refuse("allocate_output");
    return static_cast<T*>(memory);
  }
  /// body(begin, end) or body(begin, end, slot) on the stream's threads.
  template <class F>
  void parallel_for(std::int64_t count, std::int64_t grain, const F& body) const {
    struct Loop {
      const F& body;
      lamina_context* context;
    } loop{body, context()};
    const auto piece = [](void* data, std::int64_t begin, std::int64_t end, std::int32_t slot) {
      const auto& l = *static_cast<const Loop*>(data);
      guarded(l.context, [&] {
        if constexpr (std::is_invocable_v<const F&, std::int64_t, std::int64_t, std::int32_t>)
          l.body(begin, end, slot);
        else
          l.body(begin, end);
      });
    };
    if (engine()->parallel_for(context(), count, grain, piece, &loop) != LAMINA_OK) refuse("parallel_for");
  }
  int threads() const { return engine()->thread_count(context()); }

 private:
  const lamina_call* call_;
};

/// A combination of types and layouts; lists have an entry per port. Empty lists have the meaning of null in
/// lamina_configuration.
struct Configuration {
  std::string name;
  std::vector<std::int32_t> in_layouts = {}, out_layouts = {}, in_types = {}, out_types = {};
  std::vector<std::int32_t> in_place = {};  ///< pairs: input, output
  double nanoseconds = 0;
};

/// A declaration of an operation. It keeps its address once it is added to a library.
class Operation {
 public:
  Operation(std::string domain, std::string type, std::int64_t since = 1)
      : domain_(std::move(domain)), type_(std::move(type)) {
    op_.struct_size = sizeof(op_);
    op_.since_version = since;
  }
  Operation& doc(std::string text) { return doc_ = std::move(text), *this; }
  Operation& flags(std::uint32_t flags) { return op_.flags |= flags, *this; }
  Operation& input(std::string name, std::vector<std::int32_t> types = {LAMINA_F32},
                   std::uint32_t flags = 0) {
    return in_.push_back({std::move(name), std::move(types), flags}), *this;
  }
  Operation& output(std::string name, std::vector<std::int32_t> types = {LAMINA_F32},
                    std::uint32_t flags = 0) {
    return out_.push_back({std::move(name), std::move(types), flags}), *this;
  }
  /// `value`: the default in text; without it nodes must have the attribute.
  Operation& attribute(std::string name, std::int32_t kind, std::optional<std::string> value = {}) {
    return attributes_.push_back({std::move(name), kind, std::move(value)}), *this;
  }
  Operation& real(std::string name, double value) {
    char text[64];  // the shortest that is read as the same number, whatever the locale
    const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
    return attribute(std::move(name), LAMINA_FLOAT, std::string(text, end));
  }
  Operation& integer(std::string name, std::int64_t value) {
    return attribute(std::move(name), LAMINA_INT, std::to_string(value));
  }
  Operation& configuration(Configuration c) { return configurations_.push_back(std::move(c)), *this; }
  /// What "lamina check" tries without a model: lamina_operation::samples.
  Operation& sample(std::string text) { return samples_.push_back(std::move(text)), *this; }
  Operation& tolerance(double absolute, double relative) {
    return op_.absolute = absolute, op_.relative = relative, *this;
  }

  /// K is constructed from a Node, once for each plan, and has `void run(const Call&) const`. It may have
  /// these static functions: `void infer(const Node&)`, `void reference(const Call&)`, `std::size_t
  /// scratch_bytes(const Node&)`, `std::size_t prepared_bytes(const Node&)` with `void prepare(const Node&,
  /// void* block)`; and, to be kept in compiled models, `std::size_t saved_bytes() const` and `void
  /// save(void* block) const` with a static `std::unique_ptr<K> load(const Node&, const void* block,
  /// std::size_t bytes)`.
  template <class K>
  Operation& kernel() {
    instances<K>();
    op_.run = [](const lamina_call* call) {
      return guarded(call->context, [&] { static_cast<const K*>(call->instance)->run(Call(call)); });
    };
    if constexpr (requires(const Node& n) { K::infer(n); })
      op_.infer = [](const lamina_node* node) {
        return guarded(node->context, [&] { K::infer(Node(node)); });
      };
    if constexpr (requires(const Call& c) { K::reference(c); })
      op_.reference = [](const lamina_call* call) {
        return guarded(call->context, [&] { K::reference(Call(call)); });
      };
    if constexpr (requires(const Node& n) { K::scratch_bytes(n); })
      op_.scratch_bytes = [](const lamina_node* node, std::size_t* bytes) {
        return guarded(node->context, [&] { *bytes = K::scratch_bytes(Node(node)); });
      };
    if constexpr (requires(const Node& n, void* block) { K::prepare(n, block); }) {
      op_.prepared_bytes = [](const lamina_node* node, std::size_t* bytes) {
        return guarded(node->context, [&] { *bytes = K::prepared_bytes(Node(node)); });
      };
      op_.prepare = [](const lamina_node* node, void* block) {
        return guarded(node->context, [&] { K::prepare(Node(node), block); });
      };
    }
    if constexpr (requires(const Node& n, const void* block) { K::load(n, block, std::size_t{}); }) kept<K>();
    return *this;
  }

  /// K is constructed from a Node (whose shapes may be unknown) and has `void apply(const float* in, float*
  /// out, std::size_t count) const`, which throws nothing.
  template <class K>
  Operation& elementwise(double nanoseconds = 0) {
    instances<K>();
    op_.elementwise = [](const void* instance, const float* in, float* out, std::size_t count) {
      static_cast<const K*>(instance)->apply(in, out, count);
    };
    op_.elementwise_nanoseconds = nanoseconds;
    return *this;
  }

  /// True if `other` declares the same operation.
  bool is_also(const Operation& other) const {
    return domain_ == other.domain_ && type_ == other.type_ && op_.since_version == other.op_.since_version;
  }
  /// The pointer from raw().
  const lamina_operation* made() const { return &op_; }
  /// The struct, which points into this object.
  const lamina_operation* raw() {
    op_.domain = domain_.c_str();
    op_.type = type_.c_str();
    op_.doc = doc_.c_str();
    fill(in_, c_in_);
    fill(out_, c_out_);
    op_.in = c_in_.data();
    op_.inputs = c_in_.size();
    op_.out = c_out_.data();
    op_.outputs = c_out_.size();
    c_attributes_.clear();
    for (const auto& a : attributes_)
      c_attributes_.push_back(
          {sizeof(lamina_attribute), a.name.c_str(), "", a.kind, 0, a.value ? a.value->c_str() : nullptr});
    op_.attribute = c_attributes_.data();
    op_.attributes = c_attributes_.size();
    c_configurations_.clear();
    for (const auto& c : configurations_)
      c_configurations_.push_back({sizeof(lamina_configuration), c.name.c_str(), list(c.in_types),
                                   list(c.in_layouts), list(c.out_types), list(c.out_layouts),
                                   list(c.in_place), c.in_place.size() / 2, c.nanoseconds, nullptr, nullptr});
    op_.configuration = c_configurations_.data();
    op_.configurations = c_configurations_.size();
    c_samples_.clear();
    for (const auto& s : samples_) c_samples_.push_back(s.c_str());
    c_samples_.push_back(nullptr);
    op_.samples = c_samples_.data();
    return &op_;
  }

 private:
  struct PortText {
    std::string name;
    std::vector<std::int32_t> types;
    std::uint32_t flags = 0;
  };
  struct AttributeText {
    std::string name;
    std::int32_t kind = 0;
    std::optional<std::string> value;
  };

  template <class K>
  void instances() {
    op_.create = [](const lamina_node* node, void** instance) {
      return guarded(node->context, [&] { *instance = new K(Node(node)); });
    };
    op_.destroy = [](void* instance) { delete static_cast<K*>(instance); };
  }
  template <class K>
  void kept() {
    op_.saved_bytes = [](const lamina_node* node, std::size_t* bytes) {
      return guarded(node->context, [&] { *bytes = static_cast<const K*>(node->instance)->saved_bytes(); });
    };
    op_.save = [](const lamina_node* node, void* block) {
      return guarded(node->context, [&] { static_cast<const K*>(node->instance)->save(block); });
    };
    op_.load = [](const lamina_node* node, const void* block, std::size_t bytes, void** instance) {
      return guarded(node->context, [&] { *instance = K::load(Node(node), block, bytes).release(); });
    };
  }
  static const std::int32_t* list(const std::vector<std::int32_t>& from) {
    return from.empty() ? nullptr : from.data();
  }
  static void fill(std::vector<PortText>& from, std::vector<lamina_port>& to) {
    to.clear();
    for (auto& p : from) {
      if (p.types.empty() || p.types.back() != LAMINA_NO_TYPE) p.types.push_back(LAMINA_NO_TYPE);
      to.push_back({sizeof(lamina_port), p.name.c_str(), "", p.flags, 0, p.types.data()});
    }
  }

  std::string domain_, type_, doc_;
  std::vector<PortText> in_, out_;
  std::vector<AttributeText> attributes_;
  std::deque<Configuration> configurations_;
  std::vector<std::string> samples_;
  std::vector<const char*> c_samples_;
  std::vector<lamina_port> c_in_, c_out_;
  std::vector<lamina_attribute> c_attributes_;
  std::vector<lamina_configuration> c_configurations_;
  lamina_operation op_{};
};

/// The library that LAMINA_EXTENSION declares. Declarations stay for as long as the library is loaded.
class Library {
 public:
  explicit Library(lamina_registrar* registrar) : registrar_(registrar) {}

  void about(const char* name, const char* version, const char* licence, std::uint32_t flags = 0) {
    const lamina_library about{sizeof(about), name, version, licence, nullptr, flags, 0};
    note(engine()->describe(registrar_, &about));
  }
  void add(Operation operation) {
    // The system may keep a library in memory: the next model asks it again, after it has declared these.
    auto& [mutex, all] = operations();
    const std::lock_guard lock(mutex);
    const auto same = [&](const Operation& kept) { return kept.is_also(operation); };
    const auto kept = std::find_if(all.begin(), all.end(), same);
    const auto* const op = kept != all.end() ? kept->made() : all.emplace_back(std::move(operation)).raw();
    note(engine()->add_operation(registrar_, op));
  }
  /// The texts must be literals, or live as long as the library.
  void add_rule(const char* name, std::int32_t stage, const char* pattern, const char* replacement,
                const char* doc = "") {
    const lamina_rule rule{sizeof(rule), name, doc, stage, 0, pattern, replacement, nullptr};
    note(engine()->add_rule(registrar_, &rule));
  }
  int status() const { return status_; }

 private:
  struct Operations {
    std::mutex mutex;  // two engines in one process may ask at once
    std::deque<Operation> all;
  };
  LAMINA_EXTENSION_OWN static Operations& operations() {
    static Operations kept;
    return kept;
  }
  void note(lamina_status status) {
    if (status != LAMINA_OK) status_ = LAMINA_FAILED;
  }
  lamina_registrar* registrar_;
  int status_ = LAMINA_OK;
};

}  // namespace lamina::extension

/// The function that the engine calls; the braces after it declare the contents of the library.
#define LAMINA_EXTENSION(library)                                                        \
  static void lamina_declare_extension(::lamina::extension::Library& library);           \
  extern "C" LAMINA_EXTENSION_EXPORT int lamina_extension(const lamina_host* host,       \
                                                          lamina_registrar* registrar) { \
    if (::lamina::extension::engine() != host) ::lamina::extension::engine() = host;     \
    ::lamina::extension::Library declared(registrar);                                    \
    lamina_declare_extension(declared);                                                  \
    return declared.status();                                                            \
  }                                                                                      \
  static void lamina_declare_extension(::lamina::extension::Library& library)
