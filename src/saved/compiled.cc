#include "saved/compiled.h"

#include <algorithm>
#include <tuple>

#include "base/parallel.h"

namespace lamina {
namespace {

/// The options that change what is made of a model, in the order in which files have them. This is the list.
constexpr auto kDeciding = std::tuple(&Options::precision, &Options::disable, &Options::exempt,
                                      &Options::force, &Options::stop_after);

/// Calls `f` with each of these fields.
template <class F>
void for_deciding(const F& f) {
  std::apply([&](auto... field) { (f(field), ...); }, kDeciding);
}

/// What a field says: no precision is that of the model.
template <class T>
const T& said(const T& value) {
  return value;
}
Precision said(const std::optional<Precision>& precision) { return precision.value_or(Precision::model); }

void write_value(ByteWriter& to, Precision precision) { to.put(precision); }
void write_value(ByteWriter& to, const std::vector<std::string>& texts) { to.texts(texts); }
void write_value(ByteWriter& to, long number) { to.put(static_cast<std::int64_t>(number)); }

void read_value(ByteReader& from, std::optional<Precision>& precision) {
  precision = from.choice(Precision::f16);
}
void read_value(ByteReader& from, std::vector<std::string>& texts) { texts = from.texts(); }
void read_value(ByteReader& from, long& number) { number = static_cast<long>(from.get<std::int64_t>()); }

void write_options(ByteWriter& to, const Options& o) {
  for_deciding([&](auto field) { write_value(to, said(o.*field)); });
}

Options read_options(ByteReader& from) {
  Options o;
  for_deciding([&](auto field) { read_value(from, o.*field); });
  return o;
}

void write_variables(ByteWriter& to, const std::vector<Variable>& variables, const WriteTensor& tensor) {
  to.list(variables, [&](const Variable& v) {
    to.text(v.name);
    write_type(to, v.type);
    tensor(to, v.initial);
    to.count(v.computed);
    to.put(v.result.has_value());
    to.count(v.result.value_or(0));
  });
}

std::vector<Variable> read_variables(ByteReader& from, const ReadTensor& tensor) {
  return from.list([&] {
    Variable v;
    v.name = from.text();
    v.type = read_type(from);
    v.initial = tensor(from);
    v.computed = static_cast<std::size_t>(from.get<std::uint64_t>());
    const bool assigned = from.flag();
    const auto result = static_cast<std::size_t>(from.get<std::uint64_t>());
    if (assigned) v.result = result;
    return v;
  });
}

/// Indices of variables are those of the graphs.
void check_program(const ByteReader& from, const Stateless& model) {
  const auto& [graph, variables, initial] = model;
  bool good = variables.size() <= graph.inputs().size();
  for (const auto& v : variables) {
    good = good && (!v.result || *v.result < graph.results().size());
    good = good &&
           (v.initial.valid() ? fits(v.type, v.initial) : initial && v.computed < initial->results().size());
  }
  if (!good) from.wrong("variables of its graph");
}

/// The packings in the same order in each run: in the map they are ordered by address.
std::vector<std::pair<Hash128, const Packing*>> in_order(const std::vector<Packing>& packings,
                                                         TensorWriter& tensors) {
  std::vector<std::pair<Hash128, const Packing*>> out;
  for (const auto& p : packings) out.emplace_back(tensors.content(p.source), &p);
  const auto before = [](const auto& a, const auto& b) {
    return std::tie(a.second->key, a.first) < std::tie(b.second->key, b.first);
  };
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second->key == b.second->key;
  };
  std::stable_sort(out.begin(), out.end(), before);
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

void write_denormals(ByteWriter& to, const Denormals& d) {
  for (const auto n : {d.numbers, d.of, d.constants}) to.count(n);
}

Denormals read_denormals(ByteReader& from) {
  Denormals d;
  for (auto* n : {&d.numbers, &d.of, &d.constants}) *n = static_cast<std::size_t>(from.get<std::uint64_t>());
  return d;
}

void write_packings(ByteWriter& to, const std::vector<Packing>& packings, TensorWriter& tensors) {
  to.list(in_order(packings, tensors), [&](const auto& item) {
    const auto& [hash, packing] = item;
    to.hash(hash);
    to.text(packing->key);
    tensors.write(to, packing->packed);
    write_denormals(to, packing->denormals);
  });
}

ByteReader reader_of(const CompiledFile& file, SectionKind kind, std::uint32_t number = 0) {
  const auto index = file.find(kind, number);
  const auto name = to_string(SectionEntry{kind, number, 0, 0, {}});
  if (!index) fail(ErrorCode::bad_file, "{}: damaged: there is no section {}", file.path(), name);
  return {file.section(*index), fmt::format("{}: section {}", file.path(), name)};
}

}  // namespace

Options options_of(const CompiledFile& file) {
  auto from = reader_of(file, SectionKind::compiled);
  return read_options(from);
}

void take_deciding(Options& to, const Options& from) {
  for_deciding([&](auto field) { to.*field = said(from.*field); });
}

Options deciding(const Options& options) {
  Options o;
  take_deciding(o, options);
  return o;
}

bool decide_alike(const Options& a, const Options& b) {
  bool alike = true;
  for_deciding([&](auto field) { alike = alike && said(a.*field) == said(b.*field); });
  return alike;
}

void add_deciding(Hasher& to, const Options& options) {
  ByteWriter bytes;
  write_options(bytes, options);
  to.bytes(bytes.take());
}

void write_compiled(CompiledFileWriter& file, const ProgramToSave& program,
                    const std::vector<PlanToSave>& plans, const std::vector<Packing>& packings,
                    const SavedCompiled* before) {
  TensorWriter tensors(file, SectionKind::weights,
                       [before](const Tensor& t) { return before ? before->known(t) : std::nullopt; });
  const WriteTensor stored = [&](ByteWriter& w, const Tensor& t) { tensors.write(w, t); };
  const WriteTensor hollow = [&](ByteWriter& w, const Tensor& t) { tensors.write(w, t, TensorData::none); };
  ByteWriter to;
  write_options(to, program.options);
  to.texts(program.facts.widened);
  to.texts(program.facts.warnings);
  write_denormals(to, program.facts.denormals);
  to.list(program.times, [&](const StepTimeAlone& t) {
    to.put(t.all);
    to.put(t.memory);
  });
  to.put(!packings.empty());
  write_packings(to, packings, tensors);
  to.list(plans, [&](const PlanToSave& plan) {
    to.text(plan.key);
    to.put(static_cast<std::int32_t>(plan.threads));
  });
  write_graph(to, *program.graph, hollow);
  write_variables(to, *program.variables, stored);
  to.put(program.initial != nullptr);
  if (program.initial) write_graph(to, *program.initial, stored);
  file.add(SectionKind::compiled, to.take());

  for (const auto& plan : plans) {
    const WriteTensor constant = [&](ByteWriter& w, const Tensor& t) {
      tensors.write(w, t, plan.packed.contains(t.raw()) ? TensorData::by_content : TensorData::stored);
    };
    ByteWriter one;
    write_graph(one, *plan.graph, constant);
    one.list(*plan.recipes, [&](const auto& pair) {
      one.put(pair.first.index);
      one.text(to_text(pair.second));
    });
    file.add(SectionKind::plan, one.take());
  }
}

SavedCompiled::SavedCompiled(std::shared_ptr<const CompiledFile> file, Constant constant,
                             std::shared_ptr<const ExtensionSet> extensions)
    : file_(std::move(file)),
      constant_(std::move(constant)),
      tensors_(*file_, SectionKind::weights, true, [this](auto... a) { return by_content(a...); }),
      find_op_([extensions = std::move(extensions)](std::string_view name) {
        return extensions->find_saved(name);
      }) {
  for (const auto kind : {SectionKind::compiled, SectionKind::plan, SectionKind::weights}) file_->check(kind);
  auto from = reader_of(*file_, SectionKind::compiled);
  options_ = read_options(from);
  facts_.widened = from.texts();
  facts_.warnings = from.texts();
  facts_.denormals = read_denormals(from);
  times_ = from.list([&] {
    const auto all = from.get<double>();
    return StepTimeAlone{all, from.get<double>()};
  });
  packed_ = from.flag();
  read_packings(from);
  keys_ = from.list([&] {
    auto key = from.text();
    return PlanKey{std::move(key), from.get<std::int32_t>()};
  });
  program_at_ = from.at();
}

void SavedCompiled::read_packings(ByteReader& from) {
  for (auto left = from.count(); left > 0; --left) {
    const auto hash = from.hash();
    Packing p;
    p.key = from.text();
    p.packed = tensors_(from);
    p.denormals = read_denormals(from);
    if (!p.packed.valid()) from.wrong("a packing");
    packings_[{p.key, hash}] = std::move(p);
  }
}

Stateless SavedCompiled::program() const {
  auto from = reader_of(*file_, SectionKind::compiled);
  from.take(program_at_);
  const ReadTensor tensor = [&](ByteReader& r) { return tensors_(r); };
  Stateless out;
  out.graph = read_graph(from, find_op_, tensor);
  out.variables = read_variables(from, tensor);
  if (from.flag()) out.initial = read_graph(from, find_op_, tensor);
  from.end();
  check_program(from, out);
  return out;
}

std::vector<Packing> SavedCompiled::packings() const {
  std::vector<Packing> out;
  for (const auto& [at, packing] : packings_) {
    out.push_back(packing);
    out.back().source = by_content(ElementType::u8, {1}, at.second, 0);
  }
  return out;
}

std::optional<Hash128> SavedCompiled::known(const Tensor& tensor) const {
  std::lock_guard lock(mutex_);
  const auto it = contents_.find(tensor.raw());
  return it == contents_.end() ? std::nullopt : std::optional(it->second);
}

Tensor SavedCompiled::by_content(ElementType type, const Dims& dims, const Hash128& hash,
                                 std::size_t behind) const {
  if (!packed_) {
    const auto constant = constant_ ? constant_(hash) : Tensor();
    if (!constant.valid() || constant.element_type() != type || constant.shape() != dims)
      fail(ErrorCode::bad_file, "{}: a plan reads a constant that the model does not have", file_->path());
    return constant;
  }
  std::lock_guard lock(mutex_);
  auto& tensor = hollow_[{hash, behind}];
  if (!tensor.valid()) {
    const auto memory = unreadable_memory(std::max<std::size_t>(element_count(dims) * 8, 1) + behind);
    const auto* address = static_cast<const std::byte*>(memory.get()) + behind;
    tensor = Tensor::share(ElementType::u8, {0}, memory, address);
    contents_[address] = hash;
  }
  return Tensor::share(type, dims, std::make_shared<const Tensor>(tensor), tensor.raw());
}

KeptPlan SavedCompiled::plan(const PlanKey& key) const {
  const auto at = std::find(keys_.begin(), keys_.end(), key) - keys_.begin();
  auto from = reader_of(*file_, SectionKind::plan, static_cast<std::uint32_t>(at));
  KeptPlan out;
  out.graph = read_graph(from, find_op_, [&](ByteReader& r) { return tensors_(r); });
  out.recipes = from.list([&] {
    const NodeId node{from.get<std::uint32_t>()};
    return std::pair(node, recipe_of(from.text()));
  });
  from.end();
  return out;
}

std::optional<KeptPlan> SavedCompiled::find(const std::string& key, int threads) const {
  const PlanKey wanted{key, threads};
  if (std::find(keys_.begin(), keys_.end(), wanted) == keys_.end()) return std::nullopt;
  return plan(wanted);
}

std::optional<Packing> SavedCompiled::find(const Tensor& source, const std::string& key) const {
  const auto first = packings_.lower_bound({key, Hash128{}});
  const auto hollow = known(source);
  const bool there = first != packings_.end() && first->first.first == key;
  if (there) {
    const auto hash = hollow ? *hollow : hash_of({source.raw(), source.bytes()});
    if (const auto it = packings_.find({key, hash}); it != packings_.end()) return it->second;
  }
  if (hollow) fail(ErrorCode::bad_file, "{}: weights are not packed as \"{}\"", file_->path(), key);
  return std::nullopt;
}

}  // namespace lamina
