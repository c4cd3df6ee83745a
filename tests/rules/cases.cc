#include "tests/rules/cases.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace lamina::testing {
namespace {

bool starts(const std::string& line, const std::string& word) {
  return line == word || line.rfind(word + " ", 0) == 0;
}

std::string rest(const std::string& line, const std::string& word) {
  return line.size() > word.size() ? line.substr(word.size() + 1) : "";
}

class Reader {
 public:
  Reader(std::string file, std::vector<RuleCase>& out) : file_(std::move(file)), out_(out) {}

  void read() {
    std::ifstream in(file_);
    for (std::string line; std::getline(in, line);) {
      ++number_;
      if (!statement(line) && text_) *text_ += line + "\n";
    }
    finish();
    if (rule_.empty()) fail("names no rule");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(file_ + ":" + std::to_string(number_) + ": " + what);
  }

  bool statement(const std::string& line) {
    if (!open_ && (line.empty() || line[0] == '#')) return true;
    if (starts(line, "rule")) {
      finish();
      rule_ = rest(line, "rule");
      tolerance_ = 1e-5;
      for_file_ = false;
    } else if (starts(line, "tolerance")) {
      tolerance_ = std::stod(rest(line, "tolerance"));
    } else if (starts(line, "for_file")) {
      for_file_ = true;
    } else if (starts(line, "case")) {
      finish();
      current_ = {.file = std::filesystem::path(file_).stem().string(),
                  .rule = rule_,
                  .name = rest(line, "case"),
                  .tolerance = tolerance_,
                  .for_file = for_file_,
                  .before = "",
                  .after = "",
                  .refusal = ""};
      open_ = true;
      text_ = &current_.before;
    } else if (open_ && starts(line, "becomes")) {
      ended_ = true;
      text_ = &current_.after;
    } else if (open_ && starts(line, "stays")) {
      ended_ = true;
      text_ = nullptr;
      const auto reason = rest(line, "stays");
      if (!reason.empty() && (reason.size() < 2 || reason.front() != '"' || reason.back() != '"'))
        fail("the reason needs quotes");
      if (!reason.empty()) current_.refusal = reason.substr(1, reason.size() - 2);
    } else {
      return false;
    }
    return true;
  }

  void finish() {
    if (!open_) return;
    if (!ended_) fail("case \"" + current_.name + "\" has neither becomes nor stays");
    out_.push_back(current_);
    open_ = ended_ = false;
    text_ = nullptr;
  }

  std::string file_;
  std::vector<RuleCase>& out_;
  RuleCase current_;
  std::string rule_;
  bool for_file_ = false;
  double tolerance_ = 1e-5;
  std::string* text_ = nullptr;
  bool open_ = false, ended_ = false;
  int number_ = 0;
};

}  // namespace

std::vector<RuleCase> read_cases(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".test") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<RuleCase> out;
  for (const auto& f : files) Reader(f, out).read();
  return out;
}

}  // namespace lamina::testing
