#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>

#include "compiled.h"
#include "counters.h"
#include "errors.h"
#include "gil.h"
#include "interrupts.h"

namespace lamina::python {
namespace {

constexpr std::chrono::milliseconds kSlice{100};  // after which a wait looks for signals

/// A request with the arrays that are bound to it. Requires the GIL, but for the work itself.
class Bound {
 public:
  explicit Bound(const Compiled& compiled)
      : core_(compiled.core),
        request_([&] {
          const Unlocked release;
          return std::optional<Request>(core_->model().create_request());
        }()),
        inputs_(core_->inputs.size()),
        outputs_(core_->outputs.size()) {}
  ~Bound() {
    // Once the interpreter has begun to end, a thread that is to call one of these callbacks may sleep for
    // ever. Its inference would never end: it is left as it is, with all that it uses.
    if (is_ending() && (core_->log || core_->progress) && is_under_way()) {
      (void)new auto(
          std::tuple(std::move(core_), std::move(request_), std::move(inputs_), std::move(outputs_)));
      return;
    }
    const Unlocked release;  // an inference may be under way
    request_.reset();
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  void set_input(nb::handle which, nb::handle value) {
    const auto i = core_->inputs.index(which);
    ArrayIn array;
    if (!value.is_none()) array = ArrayIn(value, core_->inputs[i], "input");
    require_rest();
    request_->set_input(i, value.is_none() ? Tensor() : array.tensor());
    std::swap(inputs_[i], array);  // the one before is released behind this
  }

  void set_output(nb::handle which, nb::handle value) {
    const auto i = core_->outputs.index(which);
    ArrayOut array;
    if (!value.is_none()) array = ArrayOut(value, core_->outputs[i]);
    require_rest();
    request_->set_output(i, value.is_none() ? Tensor() : array.tensor());
    std::swap(outputs_[i], array);
  }

  void run(std::optional<double> timeout) {
    begin();
    const Running running(*this);
    const Stop stop{[](void* request) { static_cast<Request*>(request)->cancel(); }, &*request_};
    if (!timeout) {
      without_the_gil(stop, [&] { request_->run(); });
    } else {
      using Clock = std::chrono::steady_clock;
      const auto until = Clock::now() + nanoseconds(*timeout);
      try {
        without_the_gil(stop, [&] { request_->run_for(std::max(until - Clock::now(), Clock::duration(0))); });
      } catch (const Error& error) {  // LIMIT_RUN_SECONDS may be over before
        if (error.code() == ErrorCode::over_limit && Clock::now() >= until) raise_timeout(*timeout);
        throw;
      }
    }
    take_outputs();
  }

  void start() {
    begin();
    const Running running(*this);
    const Unlocked release;
    request_->start();
    to_take_ = true;
  }

  bool wait(std::optional<double> timeout) {
    using Clock = std::chrono::steady_clock;
    const auto until = timeout ? Clock::now() + nanoseconds(*timeout) : Clock::time_point::max();
    for (bool rests = false; !rests;) {
      const auto left = until - Clock::now();
      {
        const Unlocked release;
        const auto slice = std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0), kSlice);
        rests = request_->wait_for(slice);
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!rests && timeout && Clock::now() >= until) return false;
    }
    if (std::exchange(to_take_, false)) take_outputs();
    return true;
  }

  void cancel() noexcept { request_->cancel(); }

  nb::object output(nb::handle which) {
    const auto i = core_->outputs.index(which);
    const auto& result = request_->output(i);
    if (outputs_[i].is_set()) return nb::borrow(outputs_[i].array());
    return array_of(result, false);
  }

  nb::dict variables() {
    nb::dict values;
    for (const auto& port : core_->model().variables()) {
      try {
        values[text(port.name)] = array_of(request_->variable(port.name), true);
      } catch (const Error& error) {  // not computed yet
        if (error.code() != ErrorCode::bad_input) throw;
        values[text(port.name)] = nb::none();
      }
    }
    return values;
  }

  void set_variable(const std::string& name, nb::handle value) {
    const auto& all = core_->model().variables();
    const auto port = std::find_if(all.begin(), all.end(), [&](const Port& p) { return p.name == name; });
    // An unknown name is refused by the library.
    request_->set_variable(name, port == all.end() ? Tensor() : copy_of(value, *port, "variable"));
  }

  void reset_state() { request_->reset_state(); }
  void set_profile(bool on) { request_->set_profile(on); }

  nb::list layer_times() const {
    nb::list rows;
    for (const auto& t : request_->layer_times())
      rows.append(nb::make_tuple(text(t.name), text(t.kernel), t.microseconds));
    return rows;
  }

  nb::list counters() const {
    std::vector<LayerCounter> all;
    {
      const Unlocked release;
      all = request_->counters();
    }
    return rows_of(all);
  }

  const char* status() const {
    switch (request_->status()) {
      case RequestStatus::idle:
        return "idle";
      case RequestStatus::queued:
        return "queued";
      case RequestStatus::running:
        return "running";
      case RequestStatus::done:
        return "done";
      case RequestStatus::failed:
        return "failed";
      case RequestStatus::canceled:
        return "canceled";
    }
    return "idle";
  }

  std::size_t memory() const { return request_->memory(); }
  std::size_t copies() const noexcept { return copies_; }

 private:
  /// While run() or start() works without the GIL.
  struct Running {
    explicit Running(Bound& of) : bound(of) { bound.running_ = true; }
    ~Running() { bound.running_ = false; }
    Bound& bound;
  };

  static std::chrono::nanoseconds nanoseconds(double seconds) {
    if (!(seconds >= 0)) fail(ErrorCode::bad_option, "a time of less than 0 seconds");
    return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9));
  }

  [[noreturn]] static void raise_timeout(double seconds) {
    const nb::object type = nb::module_::import_("lamina.errors").attr("Timeout");
    const auto what = nb::str("the inference took more than {} s").attr("format")(seconds);
    PyErr_SetObject(type.ptr(), what.ptr());
    throw nb::python_error();
  }

  bool is_under_way() const noexcept {
    const auto status = request_->status();
    return status == RequestStatus::queued || status == RequestStatus::running;
  }

  /// Arrays must not change under an inference.
  void require_rest() const {
    if (running_ || is_under_way()) fail(ErrorCode::busy, "the request is in use: an inference is under way");
  }

  void begin() {
    require_rest();
    copies_ = 0;
    for (auto& input : inputs_) copies_ += input.refresh();
  }

  void take_outputs() {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].is_set()) copies_ += outputs_[i].take(request_->output(i), core_->outputs[i]);
  }

  std::shared_ptr<Core> core_;
  std::optional<Request> request_;
  std::vector<ArrayIn> inputs_;
  std::vector<ArrayOut> outputs_;
  std::size_t copies_ = 0;
  bool running_ = false, to_take_ = false;
};

}  // namespace

void bind_request(nb::module_& m) {
  nb::class_<Bound>(m, "RequestBase", "The base of lamina.Request.")
      .def(nb::init<const Compiled&>(), nb::arg("model"))
      .def(
          "set_input", &Bound::set_input, nb::arg("which"), nb::arg("value").none(),
          nb::sig("def set_input(self, which: int | str, value: typing.Any) -> None"),
          "Binds an array to an input, given by its index or name.\n\n"
          "The array is shared, not copied, and only read: its present values count in each run. It must not "
          "change during a run. An array that is not contiguous is copied at each run, which `copies` "
          "counts. "
          "None releases the array. Raises BadInput when type or shape do not fit, Busy during a run.")
      .def("set_output", &Bound::set_output, nb::arg("which"), nb::arg("value").none(),
           nb::sig("def set_output(self, which: int | str, value: typing.Any | None) -> None"),
           "Binds a writable array into which results of an output are written.\n\n"
           "If it is not contiguous or not aligned, the result is copied into it, which `copies` counts. "
           "None: "
           "the request's own memory again. Raises BadInput when the array does not fit, Busy during a run.")
      .def(
          "run", &Bound::run, nb::arg("timeout") = nb::none(),
          nb::sig("def run(self, timeout: float | None = None) -> None"),
          "Runs one inference in the calling thread and the helpers of a stream, without the GIL.\n\n"
          "timeout: seconds after which the inference is canceled and Timeout raised. Raises BadInput for a "
          "missing input and shapes that the model cannot run on, Busy when another thread uses the request, "
          "Canceled after cancel(). Ctrl-C in the main thread raises KeyboardInterrupt. Afterwards the "
          "request "
          "can be used as before.")
      .def(
          "start", &Bound::start,
          "Queues one inference and returns at once; wait() ends it. Without streams (NUM_STREAMS 0) it runs "
          "before start() returns.")
      .def("wait", &Bound::wait, nb::arg("timeout") = nb::none(),
           nb::sig("def wait(self, timeout: float | None = None) -> bool"),
           "Waits for the end of an inference and raises its error; False when `timeout` seconds are over "
           "before. May be called from any thread. Ctrl-C raises KeyboardInterrupt; the inference goes on.")
      .def("cancel", &Bound::cancel,
           "Cancels the inference that is under way, from any thread: it ends with Canceled.")
      .def("output", &Bound::output, nb::arg("which"),
           nb::sig("def output(self, which: int | str) -> numpy.typing.NDArray[typing.Any]"),
           "The result of the last run: a read-only view that the next run overwrites (copy() keeps it), or "
           "the "
           "array of set_output(). Raises BadCall when nothing has run yet.")
      .def_prop_ro(
          "variables", &Bound::variables,
          nb::sig("def variables(self) -> dict[str, numpy.typing.NDArray[typing.Any] | None]"),
          "Copies of the values that the request keeps from run to run, by name; None for one that the "
          "first run computes.")
      .def("set_variable", &Bound::set_variable, nb::arg("name"), nb::arg("value"),
           nb::sig("def set_variable(self, name: str, value: typing.Any) -> None"),
           "Sets a variable to a copy of an array. Raises BadInput when there is no such variable, or when "
           "type "
           "or shape do not fit.")
      .def("reset_state", &Bound::reset_state,
           "Gives all variables their initial values again, to begin a new sequence.")
      .def("set_profile", &Bound::set_profile, nb::arg("on"),
           "Switches the timing of layers on or off, from the next run on.")
      .def("layer_time_rows", &Bound::layer_times,
           nb::sig("def layer_time_rows(self) -> list[tuple[str, str, float]]"), "What LayerTime is made of.")
      .def("counter_rows", &Bound::counters,
           nb::sig("def counter_rows(self) -> list[tuple[typing.Any, ...]]"), "What LayerCounter is made of.")
      .def_prop_ro("status", &Bound::status,
                   "\"idle\", \"queued\", \"running\", \"done\", \"failed\" or \"canceled\".")
      .def_prop_ro("memory", &Bound::memory,
                   "Bytes of memory between layers that the last run used in its stream.")
      .def_prop_ro(
          "copies", &Bound::copies,
          "Number of arrays that were copied for the last run because their memory could not be used.");
}

}  // namespace lamina::python
