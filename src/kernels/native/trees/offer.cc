/// Ensembles of decision trees.
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "kernels/family.h"
#include "kernels/native/offers.h"
#include "kernels/native/trees/walk.h"

namespace lamina {
namespace {

/// Inputs that say what the trees are, all but x.
constexpr std::size_t kFirstTable = 1, kBase = 7;

struct TreeRows {
  std::int64_t count = 0, features = 0, block = 1;
  std::size_t bytes = 0;  ///< of scratch memory for a block
  WorkPartition blocks;
};

template <class T>
std::span<const TreeRecord<T>> records_of(const Tensor& packed) {
  return {reinterpret_cast<const TreeRecord<T>*>(packed.raw()), packed.bytes() / sizeof(TreeRecord<T>)};
}

/// A key of everything that decides the records, except the nodes.
std::string key_of(const std::vector<Tensor>& tables, ElementType type) {
  Hasher hash;
  for (const std::size_t i : {2, 3, 4, 6}) {
    hash.number(tables[i].bytes());
    hash.bytes({tables[i].raw(), tables[i].bytes()});
  }
  return fmt::format("native_trees {} {}", name_of(type), to_string(hash.result()));
}

/// The records, shared by plans for other numbers of rows.
template <class T>
Tensor packed_records(const WalkedTrees<T>& trees, const TreeTables& checked,
                      const std::vector<Tensor>& tables, const TreeRows& rows, WeightStore& store) {
  static_assert(sizeof(TreeRecord<T>) % sizeof(std::int64_t) == 0);
  const auto make = [&](const Tensor&) {
    const auto records = tree_records<T>(trees, checked, tables[2].data<T>());
    const auto bytes = records.size() * sizeof(TreeRecord<T>);
    Tensor out(ElementType::i64, {static_cast<std::int64_t>(bytes / sizeof(std::int64_t))});
    if (bytes > 0) std::memcpy(out.raw(), records.data(), bytes);
    return out;
  };
  if (tables[1].size() == 0) return make(tables[1]);
  auto packed = store.moved(tables[1], key_of(tables, tables[2].element_type()), PackedSize::of_any(), make);
  const auto leaves = trees.is_single ? std::int64_t{0} : static_cast<std::int64_t>(trees.first.size()) - 1;
  if (packed.element_type() != ElementType::i64 || packed.bytes() % sizeof(TreeRecord<T>) != 0 ||
      !packed.aligned() || !are_sound<T>(records_of<T>(packed), trees.trees, rows.features, leaves))
    fail(ErrorCode::bad_file, "packed trees of {} bytes do not fit their nodes", packed.bytes());
  return packed;
}

template <class T>
std::unique_ptr<Executable> made(const TreeEnsemble& op, const std::vector<Tensor>& tables,
                                 const TreeRows& rows, WeightStore& store) {
  const auto checked = checked_trees(op, tables[1], tables[3], tables[4], tables[5]);
  if (checked.features > rows.features)
    fail(ErrorCode::bad_input, "TreeEnsemble: x has {} features, the trees ask for {}", rows.features,
         checked.features);
  const std::span<const T> base =
      tables[kBase].valid() ? std::as_const(tables[kBase]).data<T>() : std::span<const T>();
  auto trees = walked_trees<T>(op, checked, tables[6].data<T>(), base);
  const auto records = packed_records(trees, checked, tables, rows, store);
  trees.records = records_of<T>(records);
  return executable([trees, rows, records, tables](const RunArgs& args) {
    const auto* x = static_cast<const T*>(args.in[0]);
    auto* y = static_cast<T*>(args.out[0]);
    parallel_for(rows.blocks, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      auto* scratch = static_cast<std::byte*>(args.scratch) + static_cast<std::size_t>(slot) * rows.bytes;
      for (auto b = begin; b < end; ++b) {
        const auto first = b * rows.block;
        walk_block(trees, x + first * rows.features, rows.features, std::min(rows.block, rows.count - first),
                   y + first * trees.target_count, scratch);
      }
    });
  });
}

}  // namespace

void offer_trees(const NodeView& v, Answers& answers) {
  const auto& op = *v.op<TreeEnsemble>();
  const auto type = v.element(0);
  if (type != ElementType::f32 && type != ElementType::f64)
    return answers.refuse("native", "trees of {}", name_of(type));
  std::vector<Tensor> tables(kBase + 1);
  for (std::size_t i = kFirstTable; i <= kBase; ++i) {
    if (!v.has(i)) continue;
    if (!v.constant(i)) return answers.refuse("native", "trees that are not constant");
    tables[i] = *v.constant(i);
  }
  const auto x = v.dims(0);
  if (element_count(x) == 0) return answers.refuse("native", "no rows or no features");
  TreeRows rows{x[0], x[1], rows_of_block(op.targets), block_bytes(op.targets, true), {}};
  // Few rows are shared among threads as well, in pieces that fill the lanes.
  constexpr std::int64_t kLanes = 8;
  rows.block = std::min(
      rows.block, std::max(kLanes, round_up(ceil_div(rows.count, std::int64_t{threads_here()} * 2), kLanes)));
  Offer o(v, fmt::format("native_trees_{}", name_of(type)), Layout::plain);
  for (std::size_t i = kFirstTable; i <= kBase; ++i)
    if (v.has(i)) o.consumed.push_back(i);
  // A step down takes about as long as so many elements of a light pass.
  constexpr double kStep = 60;
  const auto trees = static_cast<double>(tables[3].size()), nodes = static_cast<double>(tables[2].size());
  const double depth = 2 + 1.5 * std::log2(1 + nodes / std::max(1.0, trees));
  o.cost =
      cost_of(v.machine(), Family::vector_light,
              static_cast<double>(rows.count) * (trees * depth * kStep + static_cast<double>(op.targets)),
              4.0 * static_cast<double>(element_count(x)));
  rows.blocks = partitioned_here(ceil_div(rows.count, rows.block), o.cost.us());
  o.scratch = static_cast<std::size_t>(rows.blocks.slots) * rows.bytes;
  o.make = [op, tables, rows, type](MakeContext& context) {
    std::vector<Tensor> aligned;
    for (const auto& t : tables) aligned.push_back(t.valid() ? t.to_aligned() : t);
    return type == ElementType::f32 ? made<float>(op, aligned, rows, context.weights)
                                    : made<double>(op, aligned, rows, context.weights);
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
