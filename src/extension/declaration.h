#pragma once
/// What a library of custom layers declares (include/lamina/extension.h), read and checked once.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shared_library.h"
#include "graph/op.h"
#include "lamina/extension.h"

namespace lamina {

struct DeclaredPort {
  std::string name, doc;
  bool optional = false, variadic = false, constant = false;
  std::vector<ElementType> types;
  bool takes(ElementType type) const;
  /// What a tensor of that type is to the port: models in halves are computed in f32, unless the port knows
  /// them.
  ElementType as_taken(ElementType type) const;
};

struct DeclaredAttribute {
  std::string name, doc;
  std::int32_t kind = 0;           ///< LAMINA_BOOL, ...
  std::optional<Attribute> value;  ///< nothing: a node must say it
};

/// Lists have an entry per declared port; types and layouts are the border's numbers.
struct DeclaredConfiguration {
  std::string name;
  std::vector<std::int32_t> in_types, in_layouts, out_types, out_layouts;
  std::vector<std::pair<std::size_t, std::size_t>> in_place;
  double nanoseconds = 0;
  lamina_status (*run)(const lamina_call*) = nullptr;
  lamina_status (*accepts)(const lamina_node*) = nullptr;
};

/// Where something comes from, and what keeps its code in the process: null for what is linked in.
struct Origin {
  std::string name, path;  ///< "libgate.so", "/opt/libgate.so"
  std::shared_ptr<SharedLibrary> library;
};

struct DeclaredOperation {
  std::string domain, type, doc;
  std::string word;  ///< name of the operator in graphs: "com.example.Gate"
  std::int64_t since = 1;
  std::uint32_t flags = 0;
  ElementType accumulates = ElementType::undefined;
  std::vector<DeclaredPort> in, out;
  std::vector<DeclaredAttribute> attributes;
  Strings samples;
  std::vector<DeclaredConfiguration> configurations;  ///< one at least where there is a kernel
  lamina_operation calls = {};                        ///< functions and numbers; pointers to data are null
  OpInfo info;
  Origin origin;

  bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
  std::string name() const { return domain + ":" + type; }
  std::string saved_name() const { return name() + "@" + std::to_string(since); }
  /// The port of tensor i; variadic ones have many. Null: there is none.
  const DeclaredPort* port(const std::vector<DeclaredPort>& ports, std::size_t i) const;
  static std::size_t port_index(const std::vector<DeclaredPort>& ports, std::size_t i);
};

struct DeclaredRule {
  std::string name, doc, pattern, replacement;
  std::int32_t stage = 0;
  lamina_status (*accepts)(const lamina_match*) = nullptr;
  Origin origin;
};

struct DeclaredLibrary {
  std::string name, version, licence;
  Strings needs;
  bool never_unload = false;
};

/// A struct of the border as this engine knows it: what the library does not know is zero. What it knows
/// beyond that and has set is named in `ignored`. Throws Error(bad_file) for no struct at all.
template <class T>
T taken(const T* from, std::string_view what, Strings& ignored);

/// From the library's structs. Throw Error(bad_file) that says what is wrong with them; `ignored` as above.
DeclaredOperation operation_of(const lamina_operation* from, Strings& ignored);
DeclaredRule rule_of(const lamina_rule* from, Strings& ignored);
DeclaredLibrary library_of(const lamina_library* from, Strings& ignored);

/// Numbers of the border.
ElementType type_of_border(std::int32_t type);  ///< undefined: none of them
std::int32_t border_type(ElementType type);     ///< LAMINA_NO_TYPE: the border has none
/// "channels_last", "the layout of input 1"
std::string layout_text(std::int32_t layout);

}  // namespace lamina
