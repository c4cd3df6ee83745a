#include "api/loaded_model.h"

#include <algorithm>
#include <cstdlib>

#include "api/at_work.h"
#include "api/input_shapes.h"
#include "api/limit_checks.h"
#include "api/options_table.h"
#include "api/preparing.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "exec/variables.h"
#include "extension/conformance.h"
#include "formats/formats.h"
#include "rules/extension_rules.h"

namespace lamina {
namespace {

constexpr std::size_t kName = 60;  // characters of one name among many

std::string type_of(const Unsupported& u) {
  std::string out = (u.domain.empty() ? "" : clipped(u.domain, kName) + ":") + clipped(u.type, kName);
  if (u.version != 0) out += "-" + std::to_string(u.version);
  return out;
}

std::uint64_t bytes_of(const std::vector<LoadedModel::Part>& parts) {
  std::uint64_t sum = 0;
  for (const auto& part : parts) sum += part.file->size();
  return sum;
}

/// Notes which files are opened.
class NotingSource final : public ModelSource {
 public:
  NotingSource(const ModelSource& source, std::vector<LoadedModel::Part>& parts, const ReadOptions& options)
      : ModelSource(source.model()), source_(source), parts_(parts), options_(options) {
    noted({"model", model()});
  }
  std::shared_ptr<const MappedFile> companion(const std::string& extension) const override {
    auto file = source_.companion(extension);
    if (file) noted({"weights", file, file->identity() && options_.weights.empty()});
    return file;
  }
  std::string companion_path(const std::string& extension) const override {
    return source_.companion_path(extension);
  }
  std::shared_ptr<const MappedFile> external_data(const std::string& location) const override {
    auto file = source_.external_data(location);
    noted({"external " + location, file, file->identity().has_value()});
    return file;
  }

 private:
  void noted(LoadedModel::Part part) const {
    for (const auto& p : parts_)
      if (p.role == part.role) return;
    parts_.push_back(std::move(part));
    const auto most = options_.limits.memory;
    if (most != 0 && bytes_of(parts_) > most)
      fail(ErrorCode::over_limit, "{}: files of {} bytes, LIMIT_MEMORY is {}", parts_.back().file->path(),
           bytes_of(parts_), most);
  }
  const ModelSource& source_;
  std::vector<LoadedModel::Part>& parts_;
  const ReadOptions& options_;
};

/// Sections lie at multiples of 64 of the file: its memory must, too.
std::shared_ptr<const MappedFile> well_placed(std::shared_ptr<const MappedFile> file) {
  if (reinterpret_cast<std::uintptr_t>(file->data()) % 64 == 0) return file;
  const auto copy = std::make_shared<Tensor>(ElementType::u8, Dims{static_cast<std::int64_t>(file->size())});
  std::memcpy(copy->raw(), file->data(), file->size());
  return MappedFile::in_memory(file->path(), {copy->raw(), file->size()}, copy);
}

ReadSettings settings_of(const ReadOptions& options) {
  ReadSettings s;
  s.gate = OperatorGate(options.limits);
  s.settable = options.settable;
  if (!options.extensions.empty()) s.extensions = std::make_shared<const ExtensionSet>(options.extensions);
  return s;
}

/// With LAMINA_CHECK=1 in the environment: the layers of libraries are tried before they are used.
bool wants_check(const Loaded& loaded) {
  const char* const wanted = std::getenv("LAMINA_CHECK");
  return !loaded.extensions->empty() && wanted && std::string_view(wanted) == "1";
}
constexpr std::size_t kRoom = 200;  // characters of what is not supported, so that the error is not cut

/// Operators that one reason keeps out.
struct Refusal {
  std::string reason;
  Strings types;
  std::size_t nodes = 0;
};

std::vector<Refusal> refusals_of(const std::vector<Unsupported>& all) {
  std::vector<Refusal> out;
  for (const auto& u : all) {
    auto it = std::find_if(out.begin(), out.end(), [&](const Refusal& r) { return r.reason == u.reason; });
    // Operators that are not known as such have no reason in common.
    if (it == out.end() || u.reason.empty()) it = out.insert(out.end(), Refusal{u.reason, {}, 0});
    const auto type = type_of(u);
    if (std::find(it->types.begin(), it->types.end(), type) == it->types.end()) it->types.push_back(type);
    it->nodes += u.nodes.size();
  }
  return out;
}

std::string to_string(const Refusal& r) {
  constexpr std::size_t kTypes = 3;
  const auto shown = std::min(r.types.size(), kTypes);
  auto out = fmt::format("{}{} ({} node{})",
                         fmt::join(r.types.begin(), r.types.begin() + std::ptrdiff_t(shown), ", "),
                         shown < r.types.size() ? fmt::format(" and {} more", r.types.size() - shown) : "",
                         r.nodes, r.nodes == 1 ? "" : "s");
  return one_line(r.reason.empty() ? out : out + ": " + r.reason, kRoom);
}

/// The operators and how many nodes they have, with the reason: as many as there is room for.
std::string by_reason(const std::vector<Unsupported>& all) {
  const auto refusals = refusals_of(all);
  std::string text;
  std::size_t named = 0;
  for (const auto& r : refusals) {
    const auto one = to_string(r);
    if (named != 0 && text_length(text) + text_length(one) > kRoom) break;
    text += (named++ ? "; " : "") + one;
  }
  return named < refusals.size() ? text + fmt::format("; and {} more", refusals.size() - named) : text;
}

std::unique_ptr<const ModelSource> source_in_memory(const LoadedModel& model) {
  constexpr std::string_view kExternal = "external ";
  std::shared_ptr<const MappedFile> file, weights;
  MemorySource::Files external;
  for (const auto& part : model.parts()) {
    if (part.role == "model") file = part.file;
    if (part.role == "weights") weights = part.file;
    if (part.role.starts_with(kExternal)) external[part.role.substr(kExternal.size())] = part.file;
  }
  return std::make_unique<MemorySource>(std::move(file), std::move(weights), external);
}

void check_layers(const Loaded& loaded) {
  for (const auto& row : check_extensions(loaded.graph))
    if (!row.ok())
      fail(ErrorCode::extension, "node \"{}\": {}: {}: {}", row.node, row.op, row.problem, row.tried);
}

}  // namespace

std::string to_string(const Unsupported& u) {
  constexpr std::size_t kNodes = 8;
  std::string out = type_of(u) + " (";
  for (std::size_t i = 0; i < std::min(u.nodes.size(), kNodes); ++i)
    out += (i ? ", \"" : "\"") + clipped(u.nodes[i], kName) + "\"";
  if (u.nodes.size() > kNodes) out += fmt::format(" and {} more", u.nodes.size() - kNodes);
  out += ")";
  return one_line(u.reason.empty() ? out : out + ": " + u.reason);
}

std::unique_ptr<const ModelSource> source_of(const LoadedModel& model) {
  if (model.compiled() || model.derived() || model.parts().empty())
    fail(ErrorCode::unsupported, "{}: wanted a model as it is in its file, neither compiled nor changed",
         model.path());
  if (!model.parts()[0].file->identity()) return source_in_memory(model);
  std::string given;
  for (const auto& part : model.parts())
    if (part.role == "weights" && !part.named_by_model) given = part.file->path();
  return std::make_unique<FileSource>(model.path(), given, model.limits().external_files);
}

LoadedModel::LoadedModel(const ModelSource& source, const ReadOptions& options)
    : path_(source.model()->path()),
      limits_(options.limits),
      settable_(options.settable),
      input_shapes_(options.input_shapes) {
  check_options({.limits = options.limits});
  const TokenSignal stop(options.stop);
  const auto what = path_ + ": reading";
  run_stoppable(preparing_rules(what, stop, limits_), [&] {
    stop_point();
    read_within_limits(source, options);
  });
}

void LoadedModel::read_within_limits(const ModelSource& source, const ReadOptions& options) {
  bounds_ = bounds_of(limits_, source.model()->size());
  const ReadingWithin here(bounds_, limits_, path_);
  read(source, options);
  require_within(*this, limits_);
  if (!parts_.empty()) bounds_.given = bytes_of(parts_);
  if (wants_check(loaded_) && has_weights_) check_layers(loaded());  // forks
}

void LoadedModel::read(const ModelSource& source, const ReadOptions& options) {
  const AtWork here;
  if (CompiledFile::is_one(source.model()->bytes()))
    read_compiled(source, options);
  else
    read_file(source, options);
  rules_ = extension_rules(loaded_.extensions);
  if (wants_check(loaded_) && has_weights_) loaded();  // while fork() waits
  describe();
  require_inputs(names_of(inputs_), input_shapes_, path_);
}

LoadedModel::LoadedModel(const LoadedModel& base, Graph graph)
    : path_(base.path_),
      limits_(base.limits_),
      bounds_(base.bounds_),
      settable_(base.settable_),
      input_shapes_(base.input_shapes_),
      derived_(true),
      loaded_(base.loaded()),
      rules_(base.rules_) {
  loaded_.graph = std::move(graph);
  describe();
}

void LoadedModel::read_file(const ModelSource& source, const ReadOptions& options) {
  auto settings = settings_of(options);
  const NotingSource noting(source, parts_, options);
  const auto shapes = shapes_of(options.input_shapes);
  settings.shapes = shapes;
  loaded_ = blaming_input_shapes(shapes, [&] {
    try {
      return lamina::read(noting, settings);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::bad_file || shapes.empty()) throw;
      settings.shapes.clear();
      lamina::read(noting, settings);  // throws what is wrong with the file itself
      throw;
    }
  });
  const bool asked =
      std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p.role == "weights"; });
  if (!options.weights.empty() && !asked)
    loaded_.warnings.push_back(
        fmt::format("{}: has no effect: the model asks for no such file", options.weights));
  // A page that is touched brings those around it, weights that nobody may ever read: a cache has them
  // packed.
  for (const auto& part : parts_) drop_mapped_pages(part.file->data(), part.file->size());
}

void LoadedModel::describe() {
  const auto& g = loaded_.graph;
  for (const auto v : g.inputs()) {
    inputs_.push_back(port_of(g.value(v).name, g.type(v)));
    const auto it = loaded_.defaults.find(g.value(v).name);
    if (it == loaded_.defaults.end()) continue;
    if (fits(g.type(v), it->second))
      inputs_.back().value = it->second;
    else
      loaded_.defaults.erase(it);  // input_shapes asks for another shape: it must be given
  }
  for (const auto& r : g.results()) outputs_.push_back(port_of(r.name, g.type(r.value)));
  for (const auto& w : loaded_.warnings) warnings_.push_back(one_line(w));
  for (const auto& u : loaded_.unsupported) unsupported_.push_back(to_string(u));
  try {
    for (const auto& v : variables_of(g)) variables_.push_back(port_of(v.name, v.type));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unsupported) throw;
    unsupported_.push_back(e.what());
  }
}

void LoadedModel::read_compiled(const ModelSource& source, const ReadOptions& options) {
  if (const auto most = options.limits.memory; most != 0 && source.model()->size() > most)
    fail(ErrorCode::over_limit, "{}: a file of {} bytes, LIMIT_MEMORY is {}", path_, source.model()->size(),
         most);
  compiled_ = std::make_shared<const CompiledFile>(well_placed(source.model()));
  compiled_->require_this_engine();
  has_weights_ = has_weights(*compiled_);
  const auto given = settings_of(options).extensions;
  loaded_ = read_model(*compiled_, *given);
  compiled_for_ = about_model(*compiled_).planned;
  std::erase_if(compiled_for_,
                [&](const InputShapes& shapes) { return shapes.size() != loaded_.graph.inputs().size(); });
  for (const auto& library : given->all())
    if (const auto& used = loaded_.extensions->all();
        std::find(used.begin(), used.end(), library) == used.end())
      loaded_.warnings.push_back(
          fmt::format("{}: has no effect: the model was compiled without it", library->origin.path));
  for (const auto& name : settable_)
    if (!loaded_.defaults.contains(name))
      fail(ErrorCode::bad_option, "{}: settable \"{}\": it was not when the model was compiled", path_, name);
  if (!loaded_.defaults.empty()) compiled_->check(SectionKind::constant);
  if (!input_shapes_.empty()) fix_sizes();
}

void LoadedModel::fix_sizes() {
  const auto asked = shapes_of(input_shapes_);
  auto graph = loaded_.graph;
  bool changed = false;
  for (const auto v : graph.inputs()) {
    const auto it = asked.find(graph.value(v).name);
    if (it == asked.end()) continue;
    const auto type = graph.type(v);
    const auto shape = merge(type.shape, it->second);
    if (!shape)
      fail(ErrorCode::bad_input, "{}: input \"{}\": {} for a model that was compiled for {}", path_,
           it->first, lamina::to_string(it->second), lamina::to_string(type));
    changed |= *shape != type.shape;
    graph.set_type(v, {type.element, *shape});
  }
  if (!changed) return;  // the plans of the file are good
  blaming_input_shapes(asked, [&] { graph.infer_types(); });
  loaded();  // it is compiled anew, which needs the weights
  loaded_.graph = std::move(graph);
  compiled_.reset();
  compiled_for_.clear();
  derived_ = true;
}

const Loaded& LoadedModel::loaded() const {
  checked_([&] {
    if (!has_weights_)
      fail(ErrorCode::bad_file,
           "{}: holds no weights (OPTIMIZE_SIZE): they are in the model that it was made of", path_);
    if (compiled_) on_threads(1, [&] { compiled_->check(SectionKind::constant); });  // nobody said how many
  });
  return loaded_;
}

Graph LoadedModel::graph_with(const ShapesByName& shapes) const {
  auto graph = loaded_.graph;
  bool open = true;
  for (const auto v : graph.inputs())
    if (const auto it = shapes.find(graph.value(v).name); it != shapes.end()) {
      open = open && keeps_sizes(graph.type(v).shape, it->second);
      graph.set_type(v, {graph.type(v).element, it->second});
    }
  if (open || compiled_ || derived_) {
    graph.infer_types();
    return graph;
  }
  ReadSettings settings;
  settings.gate = OperatorGate(limits_);
  settings.settable = settable_;
  settings.extensions = loaded_.extensions;
  settings.shapes = shapes;
  for (auto& [name, shape] : shapes_of(input_shapes_)) settings.shapes.emplace(name, std::move(shape));
  const ReadingWithin here(bounds_, limits_, path_);
  return lamina::read(*source_of(*this), settings).graph;
}

std::vector<Port> LoadedModel::output_ports(const NamedShapes& shapes) const {
  require_inputs(names_of(inputs_), shapes, path_);
  const auto asked = shapes_of(shapes);
  const AtWork here;
  const Within within(&bounds_);
  const TokenSignal never{std::stop_token()};
  const auto what = path_ + ": finding the outputs' shapes";
  const auto graph = run_stoppable(preparing_rules(what, never, limits_), [&] {
    return blaming_input_shapes(asked, [&] { return graph_with(asked); });
  });
  std::vector<Port> out;
  for (const auto& r : graph.results()) out.push_back(port_of(r.name, graph.type(r.value)));
  return out;
}

void LoadedModel::require_supported() const {
  if (unsupported_.empty()) return;
  std::string text;
  for (const auto& u : unsupported_) text += (text.empty() ? "" : "; ") + u;
  // Words about variables are in unsupported_ alone.
  if (text_length(text) > kRoom && !loaded_.unsupported.empty()) text = by_reason(loaded_.unsupported);
  fail(ErrorCode::unsupported, "{}: unsupported: {}", path_, text);
}

}  // namespace lamina
