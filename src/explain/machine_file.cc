#include "explain/machine_file.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/nearest.h"
#include "base/parallel.h"

namespace lamina {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, double Rates::*>, 6> kRates{{{"products", &Rates::products},
                                                                         {"native", &Rates::native},
                                                                         {"light", &Rates::light},
                                                                         {"math", &Rates::math},
                                                                         {"memory", &Rates::memory},
                                                                         {"calls", &Rates::calls}}};
constexpr std::array<std::pair<const char*, std::size_t Machine::*>, 3> kCaches{
    {{"l1", &Machine::l1}, {"l2", &Machine::l2}, {"l3", &Machine::l3}}};

std::optional<Feature> feature_named(std::string_view name) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Feature::count); ++i)
    if (name_of(static_cast<Feature>(i)) == name) return static_cast<Feature>(i);
  return std::nullopt;
}

/// An object of the file; every field that is asked for must fit, and others must not be there.
class Fields {
 public:
  Fields(const std::string& file, std::string where, const json& object)
      : file_(file), where_(std::move(where)), object_(object) {
    if (!object.is_object()) wrong("", "an object");
  }

  const json* find(const char* name) {
    known_.insert(name);
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }
  std::string text(const char* name) {
    const auto* v = find(name);
    if (v && !v->is_string()) wrong(name, "a text");
    return v ? v->get<std::string>() : "";
  }
  /// `otherwise` where it is missing.
  double number(const char* name, double otherwise, double least, double most) {
    const auto* v = find(name);
    if (!v) return otherwise;
    if (!v->is_number() || !(v->get<double>() >= least && v->get<double>() <= most))
      wrong(name, fmt::format("a number from {} to {}", least, most));
    return v->get<double>();
  }
  int count(const char* name, int otherwise, int most) {
    const auto value = number(name, otherwise, 1, most);
    if (value != static_cast<int>(value)) wrong(name, "a whole number");
    return static_cast<int>(value);
  }
  [[noreturn]] void wrong(const std::string& name, const std::string& wanted) const {
    fail(ErrorCode::bad_input, "{}: {}{}: wanted {}", file_, where_, name.empty() ? "" : " \"" + name + "\"",
         wanted);
  }
  void nothing_else() const {
    for (const auto& [name, value] : object_.items())
      if (!known_.contains(name)) wrong(name, "no such field");
  }

 private:
  const std::string& file_;
  std::string where_;
  const json& object_;
  std::set<std::string> known_;
};

Isa level_of(Fields& fields) {
  const auto level = fields.text("level");
  for (const auto isa : {Isa::sse41, Isa::avx2, Isa::avx512})
    if (level == name_of(isa)) return isa;
  fields.wrong("level", "sse41, avx2 or avx512");
}

void read_cores(const std::string& path, Fields& fields, Machine& m) {
  const auto* list = fields.find("cores");
  if (!list) return;
  if (!list->is_array() || list->empty() || list->size() > 8) fields.wrong("cores", "a list of 1 to 8 kinds");
  m.cores.clear();
  for (const auto& entry : *list) {
    Fields kind(path, "cores", entry);
    Machine::Cores c;
    c.kind = kind.text("kind");
    c.count = kind.count("count", 1, kMostThreads);
    c.threads_per_core = kind.count("threads_per_core", 1, 8);
    c.speed = kind.number("speed", 1, 0.01, 1);
    kind.nothing_else();
    m.cores.push_back(std::move(c));
  }
}

json parsed(const std::string& path) {
  const auto file = MappedFile::open(path);
  auto document = json::parse(file->text(), nullptr, false);
  if (document.is_discarded()) fail(ErrorCode::bad_input, "{}: no JSON", path);
  if (document.is_object() && document.contains("machine")) return document["machine"];
  return document;
}

}  // namespace

json to_json(const Machine& m) {
  json features = json::array(), cores = json::array(), caches, rates;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Feature::count); ++i)
    if (const auto f = static_cast<Feature>(i); m.features.without(needed_by(m.isa())).has(f))
      features.push_back(name_of(f));
  for (const auto& c : m.cores)
    cores.push_back(
        {{"kind", c.kind}, {"count", c.count}, {"threads_per_core", c.threads_per_core}, {"speed", c.speed}});
  for (const auto& [name, cache] : kCaches) caches[name] = m.*cache >> 10;
  for (const auto& [name, rate] : kRates) rates[name] = m.rates.*rate;
  return {{"name", m.name},
          {"processor", m.processor},
          {"level", name_of(m.isa())},
          {"features", features},
          {"caches_kib", caches},
          {"cores", cores},
          {"numa_nodes", m.numa_nodes},
          {"rates", rates}};
}

Machine read_machine_file(const std::string& path) {
  const auto document = parsed(path);
  Fields fields(path, "machine", document);
  Machine m;
  m.here = false;
  m.name = fields.text("name");
  m.processor = fields.text("processor");
  m.library = level_of(fields);
  m.features = needed_by(m.library);
  if (const auto* list = fields.find("features")) {
    if (!list->is_array()) fields.wrong("features", "a list of names");
    for (const auto& name : *list) {
      const auto feature = name.is_string() ? feature_named(name.get<std::string>()) : std::nullopt;
      if (!feature) fields.wrong("features", "names such as avx_vnni, avx512_bf16, amx_int8");
      m.features.add(*feature);
    }
    if (m.isa() != m.library)
      fields.wrong("features",
                   fmt::format("not all of {}, the level is {}", name_of(m.isa()), name_of(m.library)));
  }
  if (const auto* rates = known_rates(m.processor, m.isa()))
    m.rates = *rates;
  else if (!m.processor.empty())
    fields.wrong("processor", "a family that is known here, or none and rates");
  if (const auto* object = fields.find("caches_kib")) {
    Fields caches(path, "caches_kib", *object);
    for (const auto& [name, cache] : kCaches)
      m.*cache = static_cast<std::size_t>(caches.number(name, static_cast<double>(m.*cache >> 10),
                                                        cache == &Machine::l3 ? 0 : 4, 1 << 21))
                 << 10;
    caches.nothing_else();
  }
  read_cores(path, fields, m);
  m.numa_nodes = fields.count("numa_nodes", 1, 1024);
  if (const auto* object = fields.find("rates")) {
    Fields rates(path, "rates", *object);
    for (const auto& [name, rate] : kRates) m.rates.*rate = rates.number(name, m.rates.*rate, 0.001, 1000);
    rates.nothing_else();
  }
  fields.nothing_else();
  return m;
}

}  // namespace lamina
