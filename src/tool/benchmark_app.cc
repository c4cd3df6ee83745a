#include "tool/benchmark_app.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/words.h"
#include "tool/benchmark_app_options.h"
#include "tool/common.h"

namespace lamina::tool {
namespace {

class Translation {
 public:
  explicit Translation(const std::vector<std::string>& in)
      : in_(in), has_model_(std::any_of(in.begin(), in.end(), [](const std::string& word) {
          const auto* row = find_app_option(word);
          return row && row->meaning == AppMeaning::model;
        })) {}

  BenchmarkAppWords made() {
    for (at_ = 0; at_ < in_.size(); ++at_) {
      const auto* row = find_app_option(in_[at_]);
      const auto* single = row ? row : find_by_own_name(in_[at_]);
      pieces_.push_back({adds_up(single) ? nullptr : single, {}});
      if (row)
        take(*row);
      else
        take_own(single);
    }
    // If an option is given several times, the last one counts, as with gflags.
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto again = [&](const Piece& p) { return p.row && p.row == pieces_[i].row; };
      if (std::none_of(pieces_.begin() + static_cast<std::ptrdiff_t>(i) + 1, pieces_.end(), again))
        out_.words.insert(out_.words.end(), pieces_[i].words.begin(), pieces_[i].words.end());
    }
    return std::move(out_);
  }

 private:
  /// The words that one option of the command line becomes. `row`: null if several of the option are all
  /// used.
  struct Piece {
    const AppOption* row;
    std::vector<std::string> words;
  };
  std::vector<std::string>& words() { return pieces_.back().words; }

  /// lamina's own name of an option that has one value: "--threads", "--threads=2".
  static const AppOption* find_by_own_name(const std::string& word) {
    const auto name = word.substr(0, word.find('='));
    for (const auto& row : app_options())
      if ((row.meaning == AppMeaning::renamed || row.meaning == AppMeaning::of_cpu) && row.text == name &&
          !is_list(row))
        return &row;
    return nullptr;
  }

  /// lamina's own option takes a value for each input.
  static bool is_list(const AppOption& row) {
    for (const auto* list : {"--shape", "--data-shape", "--layout", "--types", "--extensions",
                             "--mean-values", "--scale-values", "--input"})
      if (row.text == list) return true;
    return false;
  }

  /// Files do everywhere, and lists in lamina's own form and spelling: "--shape a=1 --shape b=2".
  bool adds_up(const AppOption* row) const {
    if (!row || row->meaning == AppMeaning::files) return true;
    return is_list(*row) && !has_model_ && in_[at_].starts_with(std::string(row->text));
  }

  /// A word that is not benchmark_app's; with the value behind it where it is lamina's name of such an
  /// option.
  void take_own(const AppOption* row) {
    words().push_back(in_[at_]);
    if (row && in_[at_].find('=') == std::string::npos && at_ + 1 < in_.size()) words().push_back(in_[++at_]);
  }

  void take(const AppOption& row) {
    typed_ = in_[at_].substr(0, in_[at_].find('='));
    taken_.reset();
    key_.clear();
    translate(row);
    // "--iterations -niter=10": for what reports say of the command line.
    const auto ours = row.meaning == AppMeaning::model ? std::string_view("model")
                      : row.text.starts_with("--")     ? row.text
                      : !key_.empty()                  ? std::string_view(key_)
                                                       : std::string_view("-");
    words().push_back(
        fmt::format("--written={} {}{}{}", ours, typed_, taken_ ? "=" : "", taken_.value_or("")));
  }

  void translate(const AppOption& row) {
    const std::string ours(row.text);
    switch (row.meaning) {
      case AppMeaning::flag:
        if (flag()) words().push_back(ours);
        return;
      case AppMeaning::boolean:
        return add(ours, flag() ? "true" : "false");
      case AppMeaning::device:
        return device(value());
      case AppMeaning::model:
        words().push_back(value());
        words().push_back("--as-benchmark-app");
        return;
      case AppMeaning::files:
        return all_files();
      case AppMeaning::renamed:
        return add(ours, value());
      case AppMeaning::of_cpu:
        return add(ours, of_cpu(value()));
      case AppMeaning::pin:
        return pin();
      case AppMeaning::precision:
        return precision(of_cpu(value()));
      case AppMeaning::bf16:
        return set("ENFORCE_BF16", flag() ? "YES" : "NO");
      case AppMeaning::cache:
        return set("CACHE_DIR", value());
      case AppMeaning::types:
        return add(ours, fmt::format("{}={}", row.names[0], value()));
      case AppMeaning::idle:
        value();
        return idle(row.text);
      case AppMeaning::idle_flag:
        if (flag()) idle(row.text);
        return;
    }
  }

  /// The value of the current option: after its '=', or the next word.
  std::string value() {
    const auto equals = in_[at_].find('=');
    if (equals == std::string::npos && at_ + 1 == in_.size())
      throw UsageError(fmt::format("{}: wanted a value after it", typed_));
    taken_ = equals != std::string::npos ? in_[at_].substr(equals + 1) : in_[++at_];
    return *taken_;
  }

  /// The option stands alone, or with true or false behind '=' or as the next word.
  bool flag() {
    const bool equals = in_[at_].find('=') != std::string::npos;
    if (!equals && (at_ + 1 == in_.size() || !meant_as_value(in_[at_ + 1]))) return true;
    const auto given = value();
    if (const auto said = truth(given)) return *said;
    throw UsageError(fmt::format("{}{}{}: wanted true or false", typed_, equals ? "=" : " ", given));
  }

  /// True if the word after a boolean option is its value, and not the next option or the model.
  bool meant_as_value(const std::string& word) const {
    if (word.starts_with("-")) return false;
    std::error_code error;  // of names that no file can have
    return has_model_ || truth(word) ||
           (word.find_first_of("./") == std::string::npos && !std::filesystem::exists(word, error));
  }

  void add(const std::string& ours, const std::string& value) {
    words().push_back(ours);
    words().push_back(value);
    out_.typed[ours] = typed_;
  }

  void set(const std::string& key, const std::string& value) {
    key_ = key;
    words().push_back("--set");
    words().push_back(key + "=" + value);
  }

  void idle(std::string_view why) {
    words().push_back(fmt::format("--idle={} has no effect: {}", typed_, why));
  }

  void device(const std::string& name) const {
    for (const auto* cpu : {"CPU", "AUTO", "AUTO:CPU", "MULTI:CPU", "HETERO:CPU"})
      if (upper_case(name) == cpu) return;
    throw UsageError(fmt::format("{} {}: lamina benchmark knows CPU only", typed_, name));
  }

  void pin() {
    const bool alone =
        in_[at_].find('=') == std::string::npos && (at_ + 1 == in_.size() || in_[at_ + 1].starts_with("-"));
    const auto word = alone ? "YES" : upper_case(value());
    if (word == "NUMA" || word == "HYBRID_AWARE")
      return set("CPU_BIND_THREAD", word == "NUMA" ? word : "YES");
    const auto said = truth(word);
    if (!said) throw UsageError(fmt::format("{} {}: wanted YES, NO, NUMA or HYBRID_AWARE", typed_, *taken_));
    set("CPU_BIND_THREAD", *said ? "YES" : "NO");
  }

  void precision(const std::string& text) {
    auto word = lower_case(text);
    if (word.starts_with("fp")) word.erase(1, 1);
    if (word != "f32" && word != "bf16" && word != "f16")
      throw UsageError(fmt::format("{} {}: wanted f32, bf16 or f16", typed_, text));
    set("INFERENCE_PRECISION_HINT", word);
  }

  /// Several words, as benchmark_app takes them: with -m none of them is the model.
  void all_files() {
    auto written = value();
    files(written);
    while (has_model_ && at_ + 1 < in_.size() && !in_[at_ + 1].starts_with("-")) {
      files(in_[++at_]);
      written += " " + in_[at_];
    }
    taken_ = written;
  }

  /// "a.png", "x:a.png,b.png,y:c.npy": files go to the input that was named last.
  void files(const std::string& text) {
    std::string name;
    for (const auto piece : pieces_of(text)) {
      std::string file(piece);
      if (const auto colon = file.find(':'); colon != std::string::npos) {
        name = file.substr(0, colon) + "=";
        file.erase(0, colon + 1);
      }
      if (file == "random") {
        if (!name.empty()) add("--made-up", name.substr(0, name.size() - 1));
        continue;
      }
      if (file == "image_info")
        add("--image-info", name.empty() ? "*" : name.substr(0, name.size() - 1));
      else
        for (const auto& one : files_in(file)) add("--input", name + one);
    }
  }

  /// A folder's files that can be inputs, by name; else the file itself.
  static std::vector<std::string> files_in(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (!fs::is_directory(path, error)) return {path};
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(path, error)) {
      const auto kind = lower_case(entry.path().extension().string());
      for (const auto* known : {".npy", ".npz", ".bin", ".png", ".jpg", ".jpeg", ".ppm", ".pgm"})
        if (kind == known) out.push_back(entry.path().string());
    }
    std::sort(out.begin(), out.end());
    if (out.empty()) throw UsageError(fmt::format("-i {}: no files for inputs are in that folder", path));
    return out;
  }

  static std::optional<bool> truth(const std::string& word) {
    const auto text = lower_case(word);
    if (text == "true" || text == "yes" || text == "1") return true;
    if (text == "false" || text == "no" || text == "0") return false;
    return {};
  }
  /// Values may be said by device: "CPU:4", "CPU:bf16,GPU:f32".
  std::string of_cpu(const std::string& text) {
    if (text.find(':') == std::string::npos) return text;
    std::string own;
    for (std::size_t at = 0; at <= text.size();) {
      const auto end = std::min(text.find(',', at), text.size());
      const auto part = text.substr(at, end - at);
      at = end + 1;
      if (part.starts_with("CPU:"))
        own = part.substr(4);
      else
        words().push_back(
            fmt::format("--idle={}: \"{}\" has no effect: it is not for the CPU", typed_, part));
    }
    if (own.empty()) throw UsageError(fmt::format("{} {}: has no entry for the CPU", typed_, text));
    return own;
  }

  const std::vector<std::string>& in_;
  const bool has_model_;
  std::size_t at_ = 0;
  std::string typed_;
  std::optional<std::string> taken_;  ///< the value of the option at hand
  std::string key_;                   ///< that the option at hand sets
  std::vector<Piece> pieces_;
  BenchmarkAppWords out_;
};

}  // namespace

BenchmarkAppWords translate_benchmark_app(const std::vector<std::string>& words) {
  return Translation(words).made();
}

}  // namespace lamina::tool
