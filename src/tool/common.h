#pragma once
/// Functions and options that the verbs of the command share.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/resident_memory.h"
#include "base/table_text.h"
#include "lamina/lamina.h"
#include "tool/options.h"

namespace lamina::tool {

/// Options that every verb which compiles has.
struct Common {
  std::string model;
  std::vector<std::string> set, limit, disable, exempt, force, shape, settable, extensions;
  std::string precision, max_isa = "native", log_level = "warning", json, weights;
  int threads = 0;
  bool quiet = false, tune = false;

  Options options() const;
  ReadOptions reading() const;  ///< what add_model() asks for
  /// The shapes of --shape, by name. `inputs`: those of the model; a shape without a name is for the only
  /// input. Throws UsageError, and Error(bad_input) for an unknown name.
  std::vector<std::pair<std::string, Dims>> shapes(const std::vector<std::string>& inputs) const;
  /// A human line on standard output, unless --quiet or JSON goes there. Names in it may hold anything.
  template <class... A>
  void say(fmt::format_string<A...> text, A&&... args) const {
    if (!quiet && json != "-") fmt::print("{}\n", printable(fmt::format(text, std::forward<A>(args)...)));
  }
  /// Text without names, which may have several lines.
  void say_text(const std::string& text) const {
    if (!quiet && json != "-") fmt::print("{}\n", text);
  }
  /// A line on standard error for each, unless --quiet.
  void note(const std::vector<std::string>& notes) const;
};
void add_model(OptionSet& options, Common& common, bool required = true);
void add_extensions(OptionSet& options, Common& common);  ///< beside a model; add_model() does it, too
void add_shape(OptionSet& options, Common& common);
void add_compile_options(OptionSet& options, Common& common);
void add_json(OptionSet& options, Common& common);

/// A line on standard error, whatever it holds; where that cannot be written it is lost, and the work goes
/// on.
void tell(std::string_view line);

/// Writes the document where --json says; nothing when it says nothing.
void write_json(const Common& common, const nlohmann::json& document);

/// Progress on standard error after a second of silence, on a terminal only: "reading model.onnx ... 43 %, 5
/// s". A thread of its own updates it; if the user asked for one thread, at() does.
class Progress {
 public:
  Progress(std::string text, const Common& common);
  ~Progress();
  /// Sets the current work and how much of it is done, from 0 to 1. May be called from any thread.
  void at(double fraction, std::string_view stage = {});
  /// The progress callback for the library, which may call it after the object is destroyed.
  ProgressCallback callback() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  bool ticks_ = false;
};

/// A wrong command line: exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws UsageError for a name that the option gives and that is not one of a page; none is asked for by "".
void require_page_name(const std::string& path, std::string_view option = "--report");

}  // namespace lamina::tool
