#include "saved/model.h"

#include "saved/libraries.h"

namespace lamina {
namespace {

void write_unsupported(ByteWriter& to, const Unsupported& u) {
  to.text(u.type);
  to.text(u.domain);
  to.put(u.version);
  to.texts(u.nodes);
  to.text(u.reason);
}

Unsupported read_unsupported(ByteReader& from) {
  Unsupported u;
  u.type = from.text();
  u.domain = from.text();
  u.version = from.get<std::int64_t>();
  u.nodes = from.texts();
  u.reason = from.text();
  return u;
}

void write_operator(ByteWriter& to, const FileOperator& op) {
  to.text(op.type);
  to.text(op.domain);
  to.text(op.node);
  to.texts({op.made.begin(), op.made.end()});
}

FileOperator read_operator(ByteReader& from) {
  FileOperator op;
  op.type = from.text();
  op.domain = from.text();
  op.node = from.text();
  for (auto& name : from.texts()) op.made.insert(std::move(name));
  return op;
}

/// A few of them: it is for people.
std::string inputs_of(const Graph& graph) {
  constexpr std::size_t kFew = 4;
  const auto& inputs = graph.inputs();
  std::string out;
  for (std::size_t i = 0; i < std::min(kFew, inputs.size()); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", graph.value(inputs[i]).name,
                       to_string(graph.type(inputs[i])));
  return inputs.size() > kFew ? out + fmt::format(", and {} more", inputs.size() - kFew) : out;
}

ByteReader reader_of(const CompiledFile& file) {
  const auto index = file.find(SectionKind::model);
  if (!index) fail(ErrorCode::bad_file, "{}: damaged: there is no section model", file.path());
  return {file.section(*index), file.path() + ": section model"};
}

void write_about(CompiledFileWriter& file, const Graph& graph, const std::vector<InputShapes>& planned) {
  ByteWriter to;
  to.text(graph.name);
  to.text(inputs_of(graph));
  to.list(planned, [&](const InputShapes& shapes) {
    to.list(shapes, [&](const Dims& dims) { to.list(dims, [&](std::int64_t d) { to.put(d); }); });
  });
  file.add(SectionKind::about, to.take());
}

}  // namespace

AboutModel about_model(const CompiledFile& file) {
  const auto index = file.find(SectionKind::about);
  if (!index) return {};
  ByteReader from(file.section(*index), file.path() + ": section about");
  AboutModel about{from.text(), from.text()};
  about.planned = from.list([&] {
    return from.list([&] {
      const auto dims = from.list([&] { return from.get<std::int64_t>(); }, sizeof(std::int64_t));
      return Dims(dims.begin(), dims.end());
    });
  });
  return about;
}

void write_model(CompiledFileWriter& file, const Loaded& loaded, bool with_weights,
                 const std::vector<InputShapes>& planned) {
  ByteWriter to;
  TensorWriter tensors(file, SectionKind::constant);
  const auto large = with_weights ? TensorData::stored : TensorData::none;
  const WriteTensor tensor = [&](ByteWriter& w, const Tensor& t) { tensors.write(w, t, large); };
  to.put(with_weights);
  write_libraries(to, *loaded.extensions, loaded.graph);
  to.text(name_of(loaded.format));
  to.text(loaded.version);
  to.text(loaded.producer);
  to.texts(loaded.warnings);
  to.list(loaded.metadata, [&](const auto& pair) {
    to.text(pair.first);
    to.text(pair.second);
  });
  to.list(loaded.unsupported, [&](const Unsupported& u) { write_unsupported(to, u); });
  to.list(loaded.operators, [&](const FileOperator& op) { write_operator(to, op); });
  to.list(loaded.defaults, [&](const auto& pair) {
    to.text(pair.first);
    tensor(to, pair.second);
  });
  write_graph(to, loaded.graph, tensor);
  file.add(SectionKind::model, to.take());
  write_about(file, loaded.graph, planned);
}

bool has_weights(const CompiledFile& file) { return reader_of(file).flag(); }

Loaded read_model(const CompiledFile& file, const ExtensionSet& given) {
  auto from = reader_of(file);
  const TensorReader tensors(file, SectionKind::constant, false);
  const ReadTensor tensor = [&](ByteReader& r) { return tensors(r); };
  Loaded loaded;
  from.flag();
  loaded.extensions = read_libraries(from, given, file.path());
  const auto format = from.text();
  const auto known = model_format_named(format);
  if (!known)
    fail(ErrorCode::bad_file, "{}: made of a model of the unknown format \"{}\"", file.path(), format);
  loaded.format = *known;
  loaded.version = from.text();
  loaded.producer = from.text();
  loaded.warnings = from.texts();
  for (auto left = from.count(); left > 0; --left) {
    const auto key = from.text();
    loaded.metadata[key] = from.text();
  }
  loaded.unsupported = from.list([&] { return read_unsupported(from); });
  loaded.operators = from.list([&] { return read_operator(from); });
  for (auto left = from.count(); left > 0; --left) {
    const auto name = from.text();
    loaded.defaults[name] = tensor(from);
  }
  loaded.graph = read_graph(
      from, [&](std::string_view name) { return loaded.extensions->find_saved(name); }, tensor);
  from.end();
  return loaded;
}

}  // namespace lamina
