/// The offline optimiser and the quantiser: from a model to files.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "compiled.h"
#include "errors.h"
#include "gil.h"
#include "lamina/optimize.h"
#include "lamina/quantize.h"
#include "long_work.h"
#include "sizes.h"

namespace lamina::python {
namespace {

std::string path_of(nb::handle bytes) {
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

/// Sets the field if the dictionary has the key.
template <class T>
void take(const nb::dict& from, const char* key, T& field) {
  if (from.contains(key)) field = nb::cast<T>(from[key]);
}
template <class T>
void take(const nb::dict& from, const char* key, std::optional<T>& field) {
  if (from.contains(key)) field = nb::cast<T>(from[key]);
}

using CutRow = std::tuple<std::string, std::optional<Sizes>, std::string, std::optional<std::string>>;

void take_cuts(const nb::dict& from, const char* key, std::vector<InputCut>& field) {
  if (!from.contains(key)) return;
  for (auto& [name, sizes, type, value] : nb::cast<std::vector<CutRow>>(from[key])) {
    InputCut cut{.name = std::move(name), .value = std::move(value)};
    if (sizes) cut.shape = shape_of(*sizes);
    if (!type.empty()) {
      const auto known = element_type_named(type);
      if (!known) fail(ErrorCode::bad_option, std::string(key) + ": \"" + type + "\" is no element type");
      cut.type = *known;
    }
    field.push_back(std::move(cut));
  }
}

void take_values(const nb::dict& from, const char* key, std::vector<ChannelValues>& field) {
  using Row = std::pair<std::string, std::vector<double>>;
  if (!from.contains(key)) return;
  for (auto& [name, values] : nb::cast<std::vector<Row>>(from[key])) field.push_back({name, values});
}

void take_shapes(const nb::dict& from, OptimizeOptions& o) {
  if (from.contains("input_shape"))
    for (const auto& sizes : nb::cast<std::vector<Sizes>>(from["input_shape"]))
      o.input_shape.push_back(shape_of(sizes));
  if (from.contains("shape"))
    for (const auto& [name, sizes] : nb::cast<std::map<std::string, Sizes>>(from["shape"]))
      o.shape[name] = shape_of(sizes);
}

void take_reading(const nb::dict& from, ReadOptions& o) {
  take(from, "settable", o.settable);
  take(from, "extensions", o.extensions);
  if (from.contains("weights")) o.weights = path_of(from["weights"]);
  Options wanted;
  if (from.contains("limits"))
    for (const auto& [key, value] : nb::cast<std::map<std::string, std::string>>(from["limits"]))
      wanted.set(key, value);
  o.limits = wanted.limits;
}

OptimizeOptions optimize_options(const nb::dict& texts, const nb::dict& from) {
  OptimizeOptions o;
  take_reading(from, o.reading);
  take(from, "model_name", o.model_name);
  take_cuts(from, "input", o.input);
  take_cuts(from, "freeze_placeholder_with_value", o.freeze_placeholder_with_value);
  take(from, "output", o.output);
  take_shapes(from, o);
  take(from, "batch", o.batch);
  using Layouts = std::vector<std::tuple<std::string, std::string, std::string>>;
  if (from.contains("layout"))
    for (auto& [name, source, target] : nb::cast<Layouts>(from["layout"]))
      o.layout.push_back({name, source, target});
  take_values(from, "mean_values", o.mean_values);
  take_values(from, "scale_values", o.scale_values);
  take(from, "scale", o.scale);
  take(from, "reverse_input_channels", o.reverse_input_channels);
  if (from.contains("mean_file")) o.mean_file = path_of(from["mean_file"]);
  take(from, "mean_file_offsets", o.mean_file_offsets);
  take(from, "disable_fusing", o.disable_fusing);
  take(from, "disable_gfusing", o.disable_gfusing);
  take(from, "disable_resnet_optimization", o.disable_resnet_optimization);
  take(from, "disable_weights_compression", o.disable_weights_compression);
  take(from, "disable", o.disable);
  take(from, "exempt", o.exempt);
  take(from, "finegrain_fusing", o.finegrain_fusing);
  take(from, "ir_version", o.ir_version);
  take(from, "compress_to_fp16", o.compress_to_fp16);
  take(from, "rt_info", o.rt_info);
  take(from, "page", o.page);
  for (const auto& [name, value] : texts) o.set(nb::cast<std::string>(name), nb::cast<std::string>(value));
  return o;
}

/// As a bar of tqdm's wants it: how much more is done.
ProgressCallback increments_to(nb::handle callable) {
  if (callable.is_none()) return {};
  return [callable](std::string_view, double done) {
    if (done <= 0) return;  // a stage begins
    tell_python([&] { call_python(callable, nb::make_tuple(1)); });
  };
}

/// A FaqError with its `question`.
[[noreturn]] void raise_with_question(const FaqError& error) {
  raise(error);
  nb::python_error raised;
  nb::object value = nb::borrow(raised.value());
  value.attr("_question") = error.question();
  throw raised;
}

nb::tuple optimize_model(nb::handle model, const nb::bytes& path, const nb::bytes& xml, const nb::dict& texts,
                         const nb::dict& options, nb::handle progress) {
  try {
    auto o = optimize_options(texts, options);
    o.progress = progress_of(progress);
    const Read* const read = model.is_none() ? nullptr : nb::cast<const Read*>(model);
    const auto from = path_of(path), to = path_of(xml);
    OptimizeReport report;
    stoppable(o.reading.stop, [&] { report = read ? optimize(*read->model, to, o) : optimize(from, to, o); });
    return nb::make_tuple(text(report.json()), text(report.page), texts_of(report.reading_warnings),
                          texts_of(report.writing_warnings));
  } catch (const FaqError& error) {
    raise_with_question(error);
  }
}

/// Samples as tensors of their own. Requires the GIL.
class Taken {
 public:
  explicit Taken(const Model& model) : ports_(model.inputs(), "input") {}

  /// The next sample of the iterator; false: there is none.
  bool take(nb::handle iterator) {
    const nb::object sample = nb::steal(PyIter_Next(iterator.ptr()));
    if (!sample.is_valid()) {
      if (PyErr_Occurred()) throw nb::python_error();
      return false;
    }
    std::vector<Tensor> tensors(ports_.size());
    if (PyMapping_Check(sample.ptr()) && nb::hasattr(sample, "items")) {
      for (const nb::handle item : sample.attr("items")()) {
        const auto i = ports_.index(item[0]);
        tensors[i] = copied(item[1], i);
      }
    } else if (PyTuple_Check(sample.ptr()) || PyList_Check(sample.ptr())) {
      const auto count = nb::len(sample);
      if (count != ports_.size()) fail_count(count);
      for (std::size_t i = 0; i < count; ++i) tensors[i] = copied(sample[i], i);
    } else {
      if (ports_.size() != 1) fail_count(1);
      tensors[0] = copied(sample, 0);
    }
    all_->push_back(std::move(tensors));
    return true;
  }

  std::size_t size() const { return all_->size(); }
  Samples samples(std::size_t begin, std::size_t end) const {
    return {end - begin, [all = all_, begin](std::size_t i) { return all->at(begin + i); }};
  }

 private:
  [[noreturn]] void fail_count(std::size_t found) const {
    const auto inputs = std::to_string(ports_.size());
    fail(ErrorCode::bad_input,
         "sample " + std::to_string(size()) + ": " + std::to_string(found) + " arrays, the model has " +
             inputs +
             (ports_.size() == 1 ? " input; if a loader gives labels, too: (x for x, _ in loader)"
                                 : " inputs; wanted a dict by name, or a tuple in their order"));
  }
  Tensor copied(nb::handle array, std::size_t i) const {
    ArrayIn in(array, ports_[i], "input");
    in.refresh();  // fills the memory of one that is not contiguous
    return in.tensor().clone();
  }

  Ports ports_;
  std::shared_ptr<std::vector<std::vector<Tensor>>> all_ =
      std::make_shared<std::vector<std::vector<Tensor>>>();
};

Calibration calibration_named(const std::string& name) {
  for (const auto& [known, value] :
       std::initializer_list<std::pair<const char*, Calibration>>{{"min-max", Calibration::min_max},
                                                                  {"percentile", Calibration::percentile},
                                                                  {"entropy", Calibration::entropy},
                                                                  {"mse", Calibration::mse}})
    if (name == known) return value;
  fail(ErrorCode::bad_option,
       "calibration \"" + name + "\", wanted auto, min-max, percentile, entropy or mse");
}

QuantizeOptions quantize_options(const nb::dict& from, const ModelLimits& limits) {
  QuantizeOptions o;
  if (from.contains("calibration"))
    o.calibration = calibration_named(nb::cast<std::string>(from["calibration"]));
  take(from, "percentile", o.percentile);
  take(from, "symmetric_activations", o.symmetric_activations);
  take(from, "per_channel", o.per_channel);
  take(from, "weight_bits", o.weight_bits);
  take(from, "exclude", o.exclude);
  take(from, "exclude_types", o.exclude_types);
  take(from, "equalize", o.equalize);
  take(from, "correct_bias", o.correct_bias);
  take(from, "max_drop", o.max_drop);
  take(from, "samples", o.samples);
  take(from, "held_out", o.held_out);
  take(from, "shape", o.shape);
  take(from, "threads", o.running.threads);
  o.running.limits = limits;
  if (from.contains("properties"))
    for (const auto& [key, value] : nb::cast<std::map<std::string, std::string>>(from["properties"]))
      o.running.set(key, value);
  return o;
}

nb::tuple quantize_model(const Read& read, nb::handle data, const nb::bytes& output, const nb::dict& options,
                         nb::handle progress) {
  auto o = quantize_options(options, read.limits);
  o.progress = increments_to(progress);
  if (o.samples == 0) fail(ErrorCode::bad_option, "samples 0: wanted a number from 1 on");
  const nb::object iterator = nb::steal(PyObject_GetIter(data.ptr()));
  if (!iterator.is_valid()) throw nb::python_error();
  Taken taken(*read.model);
  while (taken.size() < o.samples + o.held_out && taken.take(iterator)) {
  }
  const auto own = std::min(taken.size(), o.samples);
  const CalibrationData samples{.calibration = taken.samples(0, own),
                                .held_out = taken.samples(own, taken.size()),
                                .held_out_is_new = taken.size() > own};
  const auto to = path_of(output);
  QuantizeReport report;
  stoppable(o.stop, [&] { report = quantize(*read.model, samples, to, o); });
  return nb::make_tuple(text(report.json()), text(report.html()), texts_of(report.lines()),
                        texts_of(report.warnings));
}

}  // namespace

void bind_offline(nb::module_& m) {
  m.def(
      "optimize", &optimize_model, nb::arg("model").none(), nb::arg("path"), nb::arg("xml"), nb::arg("texts"),
      nb::arg("options"), nb::arg("progress").none(),
      nb::sig(
          "def optimize(model: ModelBase | None, path: bytes, xml: bytes, texts: dict[str, str], options: "
          "dict[str, typing.Any], progress: typing.Callable[[str, float], object] | None) -> tuple[str, str, "
          "list[str], list[str]]"),
      "Writes an IR of the model, or of the file `path`; lamina.optimize describes it. Returns the report as "
      "JSON, "
      "the page, and warnings about the model's files and about the IR.");
  m.def("quantize", &quantize_model, nb::arg("model"), nb::arg("data"), nb::arg("output"), nb::arg("options"),
        nb::arg("progress").none(),
        nb::sig("def quantize(model: ModelBase, data: typing.Iterable[typing.Any], output: bytes, options: "
                "dict[str, "
                "typing.Any], progress: typing.Callable[[int], object] | None) -> tuple[str, str, list[str], "
                "list[str]]"),
        "Writes the quantised model; lamina.quantize describes it. Returns the report as JSON, as HTML and "
        "in lines, "
        "and warnings about the file.");
}

}  // namespace lamina::python
