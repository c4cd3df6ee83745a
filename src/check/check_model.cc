/// The public functions of lamina/check.h about one run of a model, and about libraries.
#include <algorithm>
#include <limits>

#include "api/at_work.h"
#include "api/inside.h"
#include "base/arena.h"
#include "base/element_types.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/users_calls.h"
#include "check/check.h"
#include "exec/variable_memory.h"
#include "explain/layers.h"
#include "extension/conformance.h"
#include "interpreter/interpreter.h"
#include "lamina/check.h"
#include "ops/repeated_draws.h"
#include "plan/plan.h"

namespace lamina {
namespace {

using checking::Agreement;
using checking::Findings;

StoredAgreement public_agreement(const Agreement& a) {
  StoredAgreement out{.snr_db = a.snr,
                      .wanted_snr_db = a.wanted_snr,
                      .cosine = a.cosine,
                      .largest_error = a.largest,
                      .allowed_error = a.allowed,
                      .at = a.where,
                      .mismatches = a.mismatches,
                      .count = a.count,
                      .fault = a.fault,
                      .text = to_string(a)};
  if (a.ranking) out.ranking = {a.ranking->rows, a.ranking->top1, a.ranking->top5};
  if (a.loss) out.score_loss = {a.loss->largest, a.loss->allowed};
  return out;
}

void add_findings(CheckReport& report, const Findings& found) {
  for (const auto& v : found.values) report.values.push_back({v.name, v.made_by, v.problem, v.difference});
  for (const auto& l : found.layers) report.layers.push_back({l.name, l.op, l.kernel, l.difference, l.note});
  for (const auto& o : found.outputs) {
    CheckedOutput row{o.name, o.against, o.difference, o.note};
    if (o.agreement) row.agreement = public_agreement(*o.agreement);
    report.outputs.push_back(std::move(row));
  }
  for (const auto& d : found.drifts) report.drifts.push_back({d.name, d.against, d.difference});
}

/// The inputs with the defaults of those that are not given.
std::vector<Tensor> complete_inputs(const std::vector<Port>& ports, std::vector<Tensor> inputs) {
  if (inputs.size() != ports.size())
    fail(ErrorCode::bad_input, "{} input{} given, the model has {}", inputs.size(),
         inputs.size() == 1 ? "" : "s", ports.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& port = ports[i];
    auto& tensor = inputs[i];
    if (!tensor.valid()) tensor = port.value;
    if (!tensor.valid()) fail(ErrorCode::bad_input, "input \"{}\" is missing", port.name);
    const auto shape = Shape::of(tensor.shape());
    bool fits = !port.ranked || port.shape.size() == tensor.shape().size();
    for (std::size_t k = 0; port.ranked && fits && k < port.shape.size(); ++k)
      fits = port.shape[k] < 0 || port.shape[k] == tensor.shape()[k];
    if (!fits || tensor.element_type() != port.type)
      fail(ErrorCode::bad_input, "input \"{}\" is {}, not {}", port.name, to_string(port),
           to_string(TensorType{tensor.element_type(), shape}));
  }
  return inputs;
}

/// Runs the request so that the token ends it, while it waits for a stream, too.
void run_until(Request& request, const std::stop_token& stop) {
  const std::stop_callback cancel(stop, [&] { request.cancel(); });
  request.run();
}

/// One run of a model. Requests run outside of an activity (AtWork), since they may wait for a stream whose
/// owner waits for a fork.
class RunCheck {
 public:
  RunCheck(const LoadedModel& model, const std::vector<Tensor>& inputs, const CheckOptions& options)
      : model_(model),
        o_(options),
        inputs_(complete_inputs(model.inputs(), inputs)),
        progress_(of_user(options.progress)),
        stop_(options.stop),
        what_(model.path() + ": checking") {
    if (o_.steps < 1) fail(ErrorCode::bad_option, "steps 0: wanted a number from 1 on");
    if (!o_.expected.empty() && o_.expected.size() != model.outputs().size())
      fail(ErrorCode::bad_input, "{} expected outputs given, the model has {}", o_.expected.size(),
           model.outputs().size());
    report_.model = model.path();
  }

  /// Tries custom layers before any of them runs in this process. False: some are wrong.
  bool custom_layers_are_good() {
    if (model_.described().extensions->empty()) return true;
    const AtWork here;
    const Within within(&model_.bounds());
    run_stoppable(rules(model_.limits()), [&] {
      report_.extensions = lamina::check_extensions(specialise(model_.loaded().graph, inputs_, {}));
    });
    return report_.faults() == 0;
  }

  /// `given`: whose outputs are checked. `whole`: gives the same with its original weights, later.
  template <class Whole>
  void run(const CompiledModel& given, const Whole& whole) {
    const auto& compiled = Inside::of(given);
    const auto limits = rules(compiled.options().limits);
    working(compiled, limits, [&] { make_steps_before(); });
    auto request = request_of(given);
    run_stoppable(limits, [&] { run_until(request, o_.stop); });
    note_precision(compiled, request);
    const CompiledModel& with_weights = whole();
    std::optional<Request> own;
    if (&with_weights != &given) {
      own.emplace(request_of(with_weights));
      run_stoppable(limits, [&] { run_until(*own, o_.stop); });
    }
    working(compiled, limits,
            [&] { check_against_reference(Inside::of(with_weights), own ? *own : request, request); });
    report_.ran = true;
  }

  CheckReport report() && {
    report_.clean = report_.faults() == 0;
    return std::move(report_);
  }

 private:
  StopRules rules(const ModelLimits& limits) const {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    return {.signal = &stop_,
            .what = what_,
            .loop_iterations = static_cast<std::int64_t>(
                std::min<std::uint64_t>(limits.loop_iterations, std::uint64_t{kMost}))};
  }

  /// The body's loops have the model's threads, the interpreter's, too.
  template <class F>
  void working(const Compiled& compiled, const StopRules& limits, const F& body) const {
    const AtWork here;
    const Within within(&compiled.bounds());
    run_stoppable(limits, [&] {
      stop_point();
      on_threads(compiled.threads(), body);
    });
  }

  void make_steps_before() {
    InterpreterOptions options;
    options.variables = &values_;
    for (std::size_t step = 1; step < o_.steps; ++step) interpret(model_.loaded().graph, inputs_, options);
  }

  Request request_of(const CompiledModel& model) const {
    auto request = model.create_request();
    for (std::size_t i = 0; i < inputs_.size(); ++i) request.set_input(i, inputs_[i]);
    for (const auto& [name, value] : values_) request.set_variable(name, value);
    return request;
  }

  void note_precision(const Compiled& compiled, const Request& request) {
    const auto precisions = precisions_of(compiled, request);
    report_.precision = to_string(precisions);
    report_.bf16_unused = compiled.precision() == Precision::bf16 && !precisions.bf16();
  }

  bool is_half_precision(const Compiled& compiled) const {
    const auto& ports = model_.outputs();
    return compiled.widened() ||
           std::any_of(ports.begin(), ports.end(), [](const Port& p) { return is_half(p.type); });
  }

  void check_against_reference(const Compiled& whole, const Request& request, const Request& given) {
    std::vector<checking::Output> outputs;
    for (std::size_t i = 0; i < model_.outputs().size(); ++i)
      outputs.push_back(
          {model_.outputs()[i].name, given.output(i), o_.expected.empty() ? Tensor() : o_.expected[i]});
    checking::Run run{whole.original(), with_variables(whole.program(), inputs_, values_),
                      Inside::runner_of(request).plans(), std::move(outputs), is_half_precision(whole)};
    run.with_levels = [&] { return checking::with_levels(whole); };
    if (precisions_of(whole, request).bf16())  // else it is a run in f32, whatever was asked for
      run.before_bf16 = [&](const checking::RunPart& part) { return checking::before_bf16(whole, part); };
    const auto found = checking::check_run(run, [&](double done) {
      if (progress_) progress_("checking", done);
    });
    add_findings(report_, found);
    if (o_.bisect) report_.bisect = bisected(whole, found);
  }

  static BisectedRewrite bisected(const Compiled& whole, const Findings& found) {
    BisectedRewrite out{.total = whole.ledger().rewrites()};
    if (found.wrong.empty()) return out;
    const auto guilty = checking::guilty_rewrite(whole, found.wrong.front());
    if (!guilty) {
      out.in_planning = true;
      return out;
    }
    return {
        .total = guilty->total, .number = guilty->number, .rewrite = guilty->rewrite, .value = guilty->value};
  }

  const LoadedModel& model_;
  const CheckOptions& o_;
  const std::vector<Tensor> inputs_;
  const ProgressCallback progress_;
  const TokenSignal stop_;
  const std::string what_;
  VariableValues values_;  // before the run that is checked
  CheckReport report_;
};

}  // namespace

CheckReport check(const Model& model, const Options& options, const std::vector<Tensor>& inputs,
                  const CheckOptions& check_options) {
  return guarded("check", [&] {
    const RepeatedDraws repeated;
    RunCheck work(Inside::of(model), inputs, check_options);
    if (!work.custom_layers_are_good()) return std::move(work).report();
    auto compiling = options;
    compiling.keep_weights = true;
    if (check_options.progress) compiling.progress = check_options.progress;
    if (check_options.stop.stop_possible()) compiling.stop = check_options.stop;
    const CompiledModel compiled(model, compiling);
    work.run(compiled, [&]() -> const CompiledModel& { return compiled; });
    return std::move(work).report();
  });
}

CheckReport check(const CompiledModel& model, const std::vector<Tensor>& inputs,
                  const CheckOptions& check_options) {
  return guarded("check", [&] {
    const RepeatedDraws repeated;
    RunCheck work(Inside::of(model).model(), inputs, check_options);
    if (!work.custom_layers_are_good()) return std::move(work).report();
    std::optional<CompiledModel> anew;
    work.run(model, [&]() -> const CompiledModel& {
      if (Inside::of(model).has_weights()) return model;
      return anew.emplace(Inside::with_weights(model, check_options.progress, check_options.stop));
    });
    return std::move(work).report();
  });
}

CheckReport check_extensions(const std::vector<std::string>& paths, const CheckOptions& check_options) {
  return guarded("check_extensions", [&] {
    const AtWork here;
    const TokenSignal stop(check_options.stop);
    const auto progress = of_user(check_options.progress);
    return run_stoppable({.signal = &stop, .what = "trying custom layers"}, [&] {
      stop_point();
      const ExtensionSet libraries(paths);
      CheckReport report;
      report.extensions.emplace();
      for (const auto& library : libraries.all()) {
        for (auto& trial : check_operations(*library)) report.extensions->push_back(std::move(trial));
        report.operations += library->operations.size();
        if (progress)
          progress("trying custom layers", static_cast<double>(&library - libraries.all().data() + 1) /
                                               static_cast<double>(libraries.all().size()));
      }
      report.clean = report.faults() == 0;
      return report;
    });
  });
}

}  // namespace lamina
