#include "tool/quantize_data.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/directory.h"
#include "base/error.h"
#include "base/npz.h"

namespace lamina::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostKept = std::size_t{512} << 20;  // bytes of samples that are kept in memory

bool is_sample(const std::string& name) {
  return looks_like_image(name) || name.ends_with(".npy") || name.ends_with(".npz");
}

std::vector<std::string> files_in(const std::string& folder, std::vector<std::string>& notes) {
  if (fs::is_regular_file(folder)) return {folder};
  std::error_code error;
  auto names = names_in(folder, error);
  if (error) fail(ErrorCode::bad_file, "--data {}: {}", folder, error.message());
  std::sort(names.begin(), names.end());
  std::vector<std::string> out;
  for (const auto& name : names)
    if (is_sample(name)) out.push_back((fs::path(folder) / name).string());
  if (out.empty())
    fail(ErrorCode::bad_input, "--data {}: no samples, wanted images, .npy or .npz files", folder);
  if (out.size() < names.size())
    notes.push_back(fmt::format("--data {}: {} of {} files are samples", folder, out.size(), names.size()));
  return out;
}

/// Rows [begin, begin + count) along axis 0, in the same memory.
Tensor rows_between(const Tensor& t, std::int64_t begin, std::int64_t count) {
  Dims dims = t.shape();
  const std::size_t row = t.bytes() / static_cast<std::size_t>(dims[0]);
  dims[0] = count;
  const auto whole = std::make_shared<const Tensor>(t);
  return Tensor::share(t.element_type(), dims, whole, whole->raw() + static_cast<std::size_t>(begin) * row);
}

class Files {
 public:
  Files(const SampleOptions& options, const std::vector<Port>& ports, const Common& common)
      : o_(options), ports_(ports) {
    std::vector<std::string> names;
    for (const auto& p : ports) names.push_back(p.name);
    shapes_ = common.shapes(names);
  }

  /// Lists the samples in their order. Notes are those of the first file, since they hold for all.
  std::vector<std::string> list() {
    std::vector<std::string> notes;
    const auto paths = files_in(o_.folder, notes);
    if (o_.image.any() && std::none_of(paths.begin(), paths.end(), looks_like_image))
      throw UsageError("--mean, --scale, --layout, --color and --fit are for images: no sample is one");
    for (const auto& path : paths) {
      if (looks_like_image(path) && !samples_.empty()) {  // decoded when it is used
        samples_.push_back({path});
        continue;
      }
      const auto before = notes.size();
      const auto count = samples_in(path, notes);
      if (!samples_.empty()) notes.resize(before);
      for (std::size_t i = 0; i < count; ++i) samples_.push_back({path, i, count});
    }
    return notes;
  }
  std::size_t size() const { return samples_.size(); }

  std::vector<Tensor> get(std::size_t index) {
    if (const auto it = kept_.find(index); it != kept_.end()) return it->second;
    const auto& sample = samples_.at(index);
    auto tensors = file(sample.path);
    if (sample.of > 1)
      for (auto& t : tensors) {
        const auto rows = t.shape()[0] / static_cast<std::int64_t>(sample.of);
        t = rows_between(t, static_cast<std::int64_t>(sample.part) * rows, rows).clone();
      }
    std::size_t bytes = 0;
    for (const auto& t : tensors) bytes += t.bytes();
    if (bytes_ + bytes <= kMostKept) bytes_ += bytes, kept_.emplace(index, tensors);
    return tensors;
  }

 private:
  struct Sample {
    std::string path;
    std::size_t part = 0, of = 1;
  };

  /// Arrays may hold several samples, which is seen where the model fixes the batch.
  std::size_t samples_in(const std::string& path, std::vector<std::string>& notes) {
    const auto tensors = read(path, notes);
    if (looks_like_image(path)) return 1;
    std::int64_t times = 0;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const auto &wanted = ports_[i].shape, &found = tensors[i].shape();
      if (!ports_[i].ranked) return 1;
      bool fits = wanted.size() == found.size();
      for (std::size_t k = 1; fits && k < wanted.size(); ++k) fits = wanted[k] < 0 || wanted[k] == found[k];
      const auto batch = wanted.empty() ? 1 : wanted[0];
      const auto rows = found.empty() ? 1 : found[0];
      if (!fits || (batch > 0 && (rows == 0 || rows % batch != 0)) ||
          tensors[i].element_type() != ports_[i].type)
        fail(ErrorCode::bad_input, "{}: {}[{}] does not fit input \"{}\", which is {}", path,
             name_of(tensors[i].element_type()), fmt::join(found, ","), ports_[i].name, to_string(ports_[i]));
      const auto own = batch > 0 && !wanted.empty() ? rows / batch : 1;
      if (times != 0 && own != times)
        fail(ErrorCode::bad_input, "{}: {} samples for input \"{}\", {} for others", path, own,
             ports_[i].name, times);
      times = own;
    }
    return static_cast<std::size_t>(std::max<std::int64_t>(times, 1));
  }

  /// Samples of one array are asked for one after the other.
  const std::vector<Tensor>& file(const std::string& path) {
    if (last_path_ != path) {
      std::vector<std::string> notes;
      last_ = read(path, notes);
      last_path_ = path;
    }
    return last_;
  }

  std::vector<Tensor> read(const std::string& path, std::vector<std::string>& notes) const {
    InputOptions options;
    if (looks_like_image(path)) options.image = o_.image;
    options.only_given = true;
    try {
      if (path.ends_with(".npz"))
        options.inputs = path;
      else if (ports_.size() == 1)
        options.input = {ports_[0].name + "=" + path};
      else
        fail(ErrorCode::bad_input, "one array for a model of {} inputs, wanted .npz files", ports_.size());
      return gather_inputs(ports_, options, shapes_, notes);
    } catch (const Error& e) {
      const std::string_view text = e.what();
      throw Error(e.code(), text.starts_with(path) ? std::string(text) : fmt::format("{}: {}", path, text));
    }
  }

  const SampleOptions o_;
  const std::vector<Port>& ports_;
  AskedShapes shapes_;
  std::vector<Sample> samples_;
  std::string last_path_;
  std::vector<Tensor> last_;
  std::map<std::size_t, std::vector<Tensor>> kept_;
  std::size_t bytes_ = 0;
};

/// `count` of the numbers below `of`, evenly spread.
std::vector<std::size_t> spread(std::size_t count, const std::vector<std::size_t>& of) {
  std::vector<std::size_t> out;
  count = std::min(count, of.size());
  for (std::size_t i = 0; i < count; ++i) out.push_back(of[i * of.size() / count]);
  return out;
}

Samples samples_at(const std::shared_ptr<Files>& files, std::vector<std::size_t> indices) {
  const auto count = indices.size();
  return {count, [files, indices = std::move(indices)](std::size_t i) { return files->get(indices.at(i)); }};
}

}  // namespace

SampleFiles find_samples(const SampleOptions& options, const std::vector<Port>& ports, const Common& common) {
  if (ports.empty()) fail(ErrorCode::bad_input, "--data {}: the model has no inputs", options.folder);
  const auto files = std::make_shared<Files>(options, ports, common);
  SampleFiles out;
  out.notes = files->list();
  std::vector<std::size_t> all(files->size()), others;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto used = spread(options.most, all);
  std::set_difference(all.begin(), all.end(), used.begin(), used.end(), std::back_inserter(others));
  out.measures_others = !others.empty();
  out.held_out = samples_at(files, spread(options.held_out, others.empty() ? used : others));
  out.calibration = samples_at(files, used);
  return out;
}

}  // namespace lamina::tool
