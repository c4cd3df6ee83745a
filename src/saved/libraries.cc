#include "saved/libraries.h"

#include <algorithm>
#include <set>

#include "extension/custom_op.h"

namespace lamina {
namespace {

constexpr std::size_t kNamed = 3;  // operators in an error

/// A library as a file knows it.
struct Needed {
  std::string name, file, version;
  Hash128 content;
  Strings operations;

  /// `gate 1.0 (libgate.so)`
  std::string text() const {
    auto out = name + (version.empty() ? "" : " " + version);
    return file == name ? out : out + " (" + file + ")";
  }
};

void find_operations(const Graph& graph, const Extension& library, std::set<std::string>& out) {
  for (const auto id : graph.order()) {
    const auto& node = graph.node(id);
    for (const auto& body : node.bodies) find_operations(body, library, out);
    const auto* op = custom_op(node.op);
    if (op && op->declared().origin.path == library.origin.path)
      out.insert(fmt::format("{} {}", op->declared().name(), op->declared().since));
  }
}

Needed needed_of(const Extension& library, const Graph& graph) {
  std::set<std::string> operations;
  find_operations(graph, library, operations);
  return {library.name(),
          library.origin.name,
          library.about.version,
          library.content(),
          {operations.begin(), operations.end()}};
}

std::string for_what(const Needed& needed) {
  if (needed.operations.empty()) return "";
  std::string out;
  for (std::size_t i = 0; i < std::min(needed.operations.size(), kNamed); ++i)
    out += (i ? ", " : " for ") + needed.operations[i];
  if (needed.operations.size() > kNamed)
    out += fmt::format(" and {} more", needed.operations.size() - kNamed);
  return out;
}

/// The library of this name, an identical build if there is one.
std::shared_ptr<const Extension> found(const Needed& needed, const ExtensionSet& given) {
  std::shared_ptr<const Extension> like;
  for (const auto& library : given.all()) {
    if (library->name() != needed.name) continue;
    if (!like || library->content() == needed.content) like = library;
  }
  return like;
}

[[noreturn]] void refuse(const Needed& needed, const Extension* given, const std::string& path) {
  std::string but = "it is not among the extensions";
  if (given && given->about.version != needed.version)
    but = fmt::format("{} is version {}", given->origin.path,
                      given->about.version.empty() ? "unknown" : given->about.version);
  else if (given)
    but = fmt::format("{} has another content than when the model was compiled", given->origin.path);
  fail(ErrorCode::unsupported, "{}: needs the library {}{}: {}", path, needed.text(), for_what(needed), but);
}

}  // namespace

void add_libraries(Hasher& to, const ExtensionSet& libraries) {
  for (const auto& library : libraries.all()) {
    to.text(library->name());
    to.text(library->about.version);
    to.hash(library->content());
  }
}

void write_libraries(ByteWriter& to, const ExtensionSet& libraries, const Graph& graph) {
  to.list(libraries.all(), [&](const auto& library) {
    const auto needed = needed_of(*library, graph);
    to.text(needed.name);
    to.text(needed.file);
    to.text(needed.version);
    to.hash(needed.content);
    to.list(needed.operations, [&](const std::string& operation) { to.text(operation); });
  });
}

std::shared_ptr<const ExtensionSet> read_libraries(ByteReader& from, const ExtensionSet& given,
                                                   const std::string& path) {
  std::vector<std::shared_ptr<const Extension>> out;
  for (auto left = from.count(); left > 0; --left) {
    Needed needed;
    needed.name = from.text();
    needed.file = from.text();
    needed.version = from.text();
    needed.content = from.hash();
    needed.operations = from.list([&] { return from.text(); });
    const auto library = found(needed, given);
    if (!library || library->content() != needed.content) refuse(needed, library.get(), path);
    out.push_back(library);
  }
  return std::make_shared<const ExtensionSet>(out);
}

}  // namespace lamina
