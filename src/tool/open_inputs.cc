#include "tool/open_inputs.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "tool/common.h"

namespace lamina::tool {
namespace {

/// Sizes that models usually take: of images, and of sequences and all else. Each row is tried in turn.
struct Usual {
  std::int64_t side, length;
};
constexpr Usual kUsual[] = {{224, 128}, {256, 64}, {320, 32}, {128, 16},
                            {64, 8},    {32, 1},   {48, 256}, {28, 512}};

bool is_channels(std::int64_t size) { return size == 1 || size == 3 || size == 4; }

/// Where height and width are in the shape of an image; else nothing.
std::vector<std::size_t> sides_of(const Dims& d) {
  if (d.size() == 4 && d[1] < 0 && is_channels(d[3])) return {1, 2};
  if (d.size() == 4) return {2, 3};
  if (d.size() == 3 && is_channels(d[0])) return {1, 2};
  if (d.size() == 3 && is_channels(d[2]) && d[1] < 0) return {0, 1};
  return {};
}

/// Sizes of the same name are the same in all inputs; the first one says it.
class Proposal {
 public:
  /// `batches`: inputs of the model have an open batch in front.
  Proposal(const std::vector<OpenInput>& open, const Usual& usual, std::size_t unknown_rank, bool batches)
      : batches_(batches) {
    for (const auto& input : open) shapes_.push_back(filled(input, usual, unknown_rank));
  }
  const std::vector<Dims>& shapes() const { return shapes_; }

 private:
  Dims filled(const OpenInput& input, const Usual& usual, std::size_t unknown_rank) {
    Dims dims = input.ranked ? input.shape : Dims(unknown_rank, -1);
    const auto sides = sides_of(dims);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] >= 0) continue;
      const bool side = std::find(sides.begin(), sides.end(), i) != sides.end();
      const bool channels = dims.size() == 4 && i == 1 && !side;
      const bool batch = (i == 0 && !side) || (i == 1 && has_inner_batch(input.port->shape));
      dims[i] = named(*input.port, i, batch ? 1 : side ? usual.side : channels ? 3 : usual.length);
    }
    return dims;
  }

  /// States of recurrent layers, [layers, batch, size], beside inputs that have their batch in front.
  bool has_inner_batch(const Dims& d) const { return batches_ && d.size() == 3 && d[0] > 0 && d[2] > 0; }

  std::int64_t named(const Port& port, std::size_t i, std::int64_t size) {
    if (i >= port.dimension_names.size() || port.dimension_names[i].empty()) return size;
    return names_.emplace(port.dimension_names[i], size).first->second;
  }

  std::map<std::string, std::int64_t> names_;
  std::vector<Dims> shapes_;
  const bool batches_;
};

/// Shapes of all values can be told from these.
bool fits(const Model& model, const std::vector<OpenInput>& open, const std::vector<Dims>& shapes) {
  NamedShapes all;
  for (std::size_t i = 0; i < open.size(); ++i)
    all[open[i].port->name] = PartialShape(shapes[i].begin(), shapes[i].end());
  try {
    model.output_ports(all);
    return true;
  } catch (const Error& e) {
    if (ends_the_work(e.code())) throw;
    return false;
  }
}

}  // namespace

std::vector<Dims> proposed_shapes(const std::vector<OpenInput>& open, const Model* model) {
  if (model && !model->compiled_for().empty()) {
    std::vector<Dims> out;
    for (const auto& input : open) {
      const auto at = std::find_if(model->inputs().begin(), model->inputs().end(),
                                   [&](const Port& p) { return p.name == input.port->name; });
      if (at == model->inputs().end()) break;
      out.push_back(model->compiled_for()[0][static_cast<std::size_t>(at - model->inputs().begin())]);
    }
    if (out.size() == open.size()) return out;
  }
  const auto has_batch = [](const Port& p) { return !p.shape.empty() && p.shape[0] < 0; };
  const bool batches = model && std::any_of(model->inputs().begin(), model->inputs().end(), has_batch);
  constexpr std::size_t kRanks[] = {4, 2, 3, 1};
  const bool ranked = std::all_of(open.begin(), open.end(), [](const auto& input) { return input.ranked; });
  if (model && model->unsupported().empty())
    for (const auto rank : kRanks) {
      for (const auto& usual : kUsual)
        if (Proposal p(open, usual, rank, batches); fits(*model, open, p.shapes())) return p.shapes();
      if (ranked) break;
    }
  return Proposal(open, kUsual[0], kRanks[0], batches).shapes();
}

void ask_for_sizes(const std::vector<OpenInput>& open, const Model* model, bool files) {
  const auto shapes = proposed_shapes(open, model);
  constexpr std::size_t kFew = 8;
  std::string names, options;
  for (std::size_t i = 0; i < open.size(); ++i) {
    const auto& port = *open[i].port;
    if (i < kFew) names += fmt::format("{}\"{}\" {}", i == 0 ? "" : ", ", port.name, to_string(port));
    options +=
        fmt::format(" --shape {}", shell_word(fmt::format("{}={}", port.name, fmt::join(shapes[i], ","))));
  }
  if (open.size() > kFew) names += fmt::format(" and {} more", open.size() - kFew);
  throw UsageError(
      fmt::format("the model leaves sizes of its input{} open: {}; give them, for example with{}{}",
                  open.size() == 1 ? "" : "s", names, options, files ? " (or give input files)" : ""));
}

}  // namespace lamina::tool
