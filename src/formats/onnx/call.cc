#include "formats/onnx/call.h"

#include "base/no_destructor.h"
#include "formats/onnx/importer.h"
#include "graph/infer.h"
#include "ops/eval.h"

namespace lamina::onnx {
namespace {

[[noreturn]] void wrong_kind(std::string_view name, std::string_view wanted) {
  fail(ErrorCode::bad_file, "attribute \"{}\" is not {}", name, wanted);
}

}  // namespace

Call::Call(Importer& importer, Scope& scope, const NodeProto& node, std::int64_t version)
    : Building(scope.graph, importer.folding_budget),
      importer_(importer),
      scope_(scope),
      node_(node),
      version_(version) {
  for (auto name : node.inputs) inputs_.push_back(name.empty() ? ValueId{} : importer.lookup(scope, name));
}

void Call::warn(const std::string& text) { importer_.warn(text); }

ValueId Call::in(std::size_t i) const {
  if (!has(i)) fail("input {} is missing", i);
  return inputs_[i];
}

const Values& Call::all_present() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) in(i);
  return inputs_;
}

const AttributeProto* Call::find(std::string_view name) const {
  for (const auto& a : node_.attributes)
    if (a.name == name) return importer_.resolve(scope_, a);
  return nullptr;
}

std::int64_t Call::i(std::string_view name, std::int64_t fallback) const {
  const auto* a = find(name);
  if (!a) return fallback;
  if (a->type != AttributeProto::int_) wrong_kind(name, "an integer");
  return a->i;
}

double Call::f(std::string_view name, double fallback) const {
  const auto* a = find(name);
  if (!a) return fallback;
  if (a->type != AttributeProto::float_) wrong_kind(name, "a number");
  return a->f;
}

std::string Call::s(std::string_view name, std::string_view fallback) const {
  const auto* a = find(name);
  if (!a) return std::string(fallback);
  if (a->type != AttributeProto::string) wrong_kind(name, "a text");
  return std::string(a->s);
}

std::optional<Ints> Call::maybe_ints(std::string_view name) const {
  const auto* a = find(name);
  if (!a) return std::nullopt;
  if (a->type != AttributeProto::ints_ && !(a->type == AttributeProto::undefined && a->ints.empty()))
    wrong_kind(name, "a list of integers");
  return a->ints;
}

Ints Call::ints(std::string_view name, Ints fallback) const {
  auto values = maybe_ints(name);
  return values ? std::move(*values) : std::move(fallback);
}

Floats Call::floats(std::string_view name) const {
  const auto* a = find(name);
  if (!a) return {};
  if (a->type != AttributeProto::floats_ && a->type != AttributeProto::undefined)
    wrong_kind(name, "a list of numbers");
  return Floats(a->floats.begin(), a->floats.end());
}

Strings Call::strings(std::string_view name) const {
  const auto* a = find(name);
  if (!a) return {};
  if (a->type != AttributeProto::strings_ && a->type != AttributeProto::undefined)
    wrong_kind(name, "a list of texts");
  return Strings(a->strings.begin(), a->strings.end());
}

std::optional<Tensor> Call::tensor(std::string_view name) const {
  const auto* a = find(name);
  if (!a) return std::nullopt;
  if (a->sparse_tensor) return importer_.read(*a->sparse_tensor);
  if (!a->t) wrong_kind(name, "a tensor");
  return importer_.read(*a->t);
}

const GraphProto* Call::body(std::string_view name) const {
  const auto* a = find(name);
  if (!a || !a->g) fail("has no graph \"{}\"", name);
  return a->g.get();
}

ElementType Call::element_attribute(std::string_view name, ElementType fallback) const {
  const auto* a = find(name);
  if (!a) return fallback;
  const auto number = i(name, 0);
  const auto type = element_type_of_onnx(number);
  if (type == ElementType::undefined)
    unsupported("elements of type {} are not supported", name_of_onnx_type(number));
  return type;
}

Converter ConverterTable::find(std::string_view domain, std::string_view type) const {
  const auto it = rows_.find({std::string(domain), std::string(type)});
  return it == rows_.end() ? nullptr : it->second;
}

std::vector<std::pair<std::string, std::string>> ConverterTable::names() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, converter] : rows_) out.push_back(name);
  return out;
}

const ConverterTable& converters() {
  static const ProcessLifetime all([] {
    ConverterTable t;
    for (auto* add :
         {register_elementwise,  register_activation,    register_convolution, register_pooling,
          register_matmul,       register_normalization, register_loss,        register_random,
          register_reduction,    register_shape,         register_slicing,     register_gathering,
          register_generation,   register_sorting,       register_resize,      register_detection,
          register_quantization, register_recurrent,     register_conditional, register_loop,
          register_attention,    register_signal,        register_sequence,    register_sequence_map,
          register_scan,         register_microsoft,     register_ml})
      add(t);
    return t;
  });
  return *all;
}

}  // namespace lamina::onnx
