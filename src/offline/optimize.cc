/// The public function of the offline optimiser: from a model to the files of an IR.
#include "lamina/optimize.h"

#include <chrono>
#include <filesystem>

#include "api/at_work.h"
#include "api/inside.h"
#include "api/limit_checks.h"
#include "api/preparing.h"
#include "base/atomic_file.h"
#include "base/guard.h"
#include "base/users_calls.h"
#include "base/words.h"
#include "draw/rewrite_report.h"
#include "draw/totals.h"
#include "formats/ir/writer.h"
#include "offline/faq.h"
#include "offline/model_reader.h"
#include "offline/optimize_options.h"
#include "rules/extension_rules.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

GraphFigures figures_of(const Graph& graph) {
  const auto t = graph_totals(graph);
  return {.operators = t.nodes,
          .multiply_adds = t.multiply_adds,
          .flops = t.flops(),
          .complete = t.all_known,
          .for_batch_1 = t.of_one};
}

/// Rules that fired, the most frequent first.
std::vector<Fusion> fired(const Ledger& ledger) {
  std::vector<Fusion> out;
  for (const auto& [rule, count] : ledger.counts())
    if (count.hits) out.push_back({rule, count.hits});
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  return out;
}

/// The way from a model to the files.
class Optimizing {
 public:
  Optimizing(std::string model, const std::string& xml_path, const OptimizeOptions& options)
      : o_(options), progress_(of_user(options.progress)), opened_(of_user(options.opened)) {
    report_.model = std::move(model);
    report_.xml = xml_path;
    if (lower_case(fs::path(xml_path).extension().string()) != ".xml")
      fail(ErrorCode::bad_option, "{}: wanted a name that ends with .xml", xml_path);
    report_.bin = bin_path_of(xml_path);
  }

  /// Called with each file of the model.
  void opened(const std::string& path) const {
    if (opened_) opened_(path);
    for (const auto& target : {report_.xml, report_.bin})
      if (std::error_code ignored; fs::equivalent(path, target, ignored))
        fail(ErrorCode::bad_option, "{} would be overwritten, which is the model itself; wanted another name",
             target);
  }

  OptimizeReport run(const ModelReader& reader) && {
    const auto begin = Clock::now();
    auto request = request_of(o_);
    RewriteAlbum album;
    if (o_.page) request.rewriting.observer = &album;
    if (progress_) request.progress = progress_;
    require_room();
    const auto conversion = converted(reader, request);
    tell(conversion.loaded.warnings, report_.reading_warnings);
    tell(conversion.warnings, report_.warnings);
    describe(conversion);
    write(conversion);
    if (o_.page) report_.page = page(conversion, album);
    if (progress_) progress_("writing", 1);
    report_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(report_);
  }

 private:
  /// Notes warnings, and says them.
  void tell(const std::vector<std::string>& warnings, std::vector<std::string>& to) const {
    for (const auto& warning : warnings) {
      to.push_back(in_callers_words(warning, o_.dashes));
      if (!o_.log) continue;
      const InUsersCallback here;
      o_.log(LogLevel::warning, to.back());
    }
  }

  /// Checks before the work that the outputs can be written. A pipe or device is not touched.
  void require_room() const {
    const auto folder = fs::path(report_.xml).parent_path();
    if (!folder.empty() && !fs::is_directory(folder)) {
      std::error_code error;
      fs::create_directories(folder, error);
      if (error)
        fail_faq(ErrorCode::bad_file, 22, "{}: the folder cannot be made: {}", folder.string(),
                 error.message());
    }
    std::error_code ignored;
    if (fs::exists(report_.xml, ignored) && !fs::is_regular_file(report_.xml, ignored)) return;
    try {
      AtomicFile(report_.xml);
    } catch (const Error& e) {
      throw FaqError(e.code(), 22, e.what());
    }
  }

  Conversion converted(const ModelReader& reader, const ConversionRequest& request) const {
    const auto bounds = bounds_of(reader.limits(), 0);
    const Within within(&bounds);
    const TokenSignal stop(o_.reading.stop);
    const auto what = report_.model + ": reading and rewriting";
    return run_stoppable(preparing_rules(what, stop, reader.limits()), [&] {
      stop_point();
      return convert_model(
          report_.model, [&](const ReadSettings& settings) { return reader.read(settings); }, request);
    });
  }

  /// True if floats that were f16 in the model stay f16, since the user did not ask for a type.
  bool keeps_halves(const Conversion& conversion) const {
    return conversion.has_halves && !o_.compress_to_fp16 && o_.ir_version > 10;
  }

  void describe(const Conversion& c) {
    report_.format = name_of(c.loaded.format);
    report_.ir_version = o_.ir_version;
    report_.compressed_to_fp16 = o_.compress_to_fp16.value_or(false);
    report_.keeps_halves = keeps_halves(c);
    report_.rewrites = c.ledger.rewrites();
    report_.rules = fired(c.ledger);
    report_.before = figures_of(c.before);
    report_.after = figures_of(c.loaded.graph);
    report_.unused_inputs = c.unused_inputs;
    report_.dropped_inputs = c.dropped_inputs;
    report_.exempt = c.exempt;
    for (const auto& note : c.notes) report_.notes.push_back(in_callers_words(note, o_.dashes));
  }

  void write(const Conversion& conversion) {
    WriteIrOptions options;
    options.version = o_.ir_version;
    options.compress_to_fp16 = report_.compressed_to_fp16;
    options.keep_halves = report_.keeps_halves;
    options.rt_info = o_.rt_info;
    options.rt_info["MO_version"] = version();
    options.rt_info["Runtime_version"] = version();
    auto named = conversion.loaded;
    if (!o_.model_name.empty())
      named.graph.name = o_.model_name;
    else if (named.graph.name.empty())
      named.graph.name = fs::path(report_.xml).stem().string();
    const TokenSignal stop(o_.reading.stop);
    const auto what = report_.xml + ": writing";
    const auto written = run_stoppable({.signal = &stop, .what = what}, [&] {
      stop_point();
      return written_ir(named, options);
    });
    report_.layers = written.layers;
    report_.constants = written.constants;
    report_.shared_constants = written.shared_constants;
    report_.xml_bytes = written.xml_bytes;
    report_.bin_bytes = written.bin_bytes;
    tell(written.warnings, report_.writing_warnings);
  }

  WrittenIr written_ir(const Loaded& loaded, const WriteIrOptions& options) const {
    try {
      return write_ir(loaded, report_.xml, options);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::unsupported) throw;
      throw FaqError(e.code(), 24, e.what());
    }
  }

  std::string page(const Conversion& done, const RewriteAlbum& album) const {
    auto notes = report_.notes;
    for (const auto& name : done.dropped_inputs)
      notes.push_back(fmt::format("input \"{}\" is removed: no node after the cut reads it", name));
    notes.insert(notes.end(), report_.warnings.begin(), report_.warnings.end());
    return to_html({.model = fs::path(report_.model).filename().string(),
                    .format = format_text(done.loaded),
                    .before = done.before,
                    .after = done.loaded.graph,
                    .ledger = done.ledger,
                    .album = album,
                    .disable = done.rewriting.disable,
                    .exempt = done.rewriting.exempt,
                    .more = extension_rules(done.loaded.extensions),
                    .notes = std::move(notes)});
  }

  const OptimizeOptions& o_;
  ProgressCallback progress_;
  FileCallback opened_;
  OptimizeReport report_;
};

}  // namespace

OptimizeReport optimize(const std::string& model_path, const std::string& xml_path,
                        const OptimizeOptions& options) {
  return guarded("optimize", [&] {
    const AtWork here;
    return with_questions(options.dashes, [&] {
      Optimizing work(model_path, xml_path, options);
      const ModelReader reader(model_path, options.reading,
                               [&](const std::string& file) { work.opened(file); });
      return std::move(work).run(reader);
    });
  });
}

OptimizeReport optimize(const Model& model, const std::string& xml_path, const OptimizeOptions& options) {
  return guarded("optimize", [&] {
    const AtWork here;
    return with_questions(options.dashes, [&] {
      Optimizing work(Inside::of(model).path(), xml_path, options);
      const ModelReader reader(model, [&](const std::string& file) { work.opened(file); });
      return std::move(work).run(reader);
    });
  });
}

}  // namespace lamina
