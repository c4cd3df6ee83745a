/// Options as their keys set them.
#include "api/options_table.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/option_words.h"
#include "base/words.h"

namespace lamina {

const OptionRow* find_option(std::string_view key) {
  for (const auto& row : option_rows())
    if (row.info.key == bare_key(key)) return &row;
  return nullptr;
}

std::pair<Precision, std::string_view> asked_precision(const Options& o) {
  if (o.precision) return {*o.precision, "INFERENCE_PRECISION_HINT"};
  if (o.enforce_bf16) return {*o.enforce_bf16 ? Precision::bf16 : Precision::model, "ENFORCE_BF16"};
  if (o.execution_mode != ExecutionMode::none)
    return {o.execution_mode == ExecutionMode::performance ? Precision::bf16 : Precision::model,
            "EXECUTION_MODE_HINT"};
  return {Precision::model, ""};
}

void check_options(const Options& o) {
  for (const auto& row : option_rows()) {
    const auto found = row.wrong ? row.wrong(o) : "";
    if (!found.empty()) fail(ErrorCode::bad_option, "{}: wanted {}", found, row.info.values);
  }
}

void Options::set(std::string_view key, std::string_view value) {
  guarded("Options::set", [&] {
    const auto* const row = find_option(key);
    if (row == nullptr) refuse_key(key);
    auto word = value;
    std::string upper;
    if (row->words) {
      upper = upper_case(value);
      word = upper;
      for (const std::string_view prefix : {"KEY_", "CPU_THROUGHPUT_"})
        if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
    }
    auto changed = *this;
    if (!row->set(changed, word))
      fail(ErrorCode::bad_option, "{}: \"{}\", wanted {}", key, value, row->info.values);
    changed.given.insert(row->info.setting);
    *this = std::move(changed);
  });
}

std::vector<OptionInfo> option_list() {
  return guarded("option_list", [] {
    std::vector<OptionInfo> out;
    for (const auto& row : option_rows()) out.push_back(row.info);
    return out;
  });
}

}  // namespace lamina
