#include "calls.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "errors.h"
#include "interrupts.h"

namespace lamina::python {

Ended::~Ended() {
  close();
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Ended::add(PyObject* call) noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_) return let_go(call);
  list_.push_back(call);
  if (list_.size() > 1) return;  // the reader has been woken
  some_.notify_one();
  if (descriptor_ >= 0) eventfd_write(descriptor_, 1);
}

int Ended::descriptor() {
  const std::lock_guard lock(mutex_);
  if (descriptor_ < 0) {
    descriptor_ = eventfd(list_.empty() ? 0 : 1, EFD_NONBLOCK | EFD_CLOEXEC);
    if (descriptor_ < 0) fail(ErrorCode::out_of_memory, "no file descriptor is left");
  }
  return descriptor_;
}

nb::list Ended::take() {
  std::vector<PyObject*> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(list_);
    eventfd_t count = 0;
    if (descriptor_ >= 0) (void)eventfd_read(descriptor_, &count);
  }
  nb::list calls;
  for (auto* call : taken) calls.append(nb::steal(call));
  return calls;
}

bool Ended::wait(std::chrono::nanoseconds time) {
  const Unlocked release;
  std::unique_lock lock(mutex_);
  some_.wait_for(lock, time, [&] { return !list_.empty() || closed_ || woken_; });
  woken_ = false;
  return !list_.empty();
}

void Ended::wake() noexcept {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  some_.notify_all();
}

void Ended::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  some_.notify_all();
  for (auto* call : list_) let_go(call);
  list_.clear();
}

namespace {

/// One inference for a call.
class Call {
 public:
  Call(const Compiled& compiled, const nb::args& args, const nb::kwargs& named)
      : core_(compiled.core), slot_(core_->lend()) {
    try {
      core_->take_arguments(*slot_, args.ptr(), named.ptr());
    } catch (...) {
      core_->give_back(std::move(slot_));
      throw;
    }
  }
  ~Call() { end(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Starts the inference. When it has ended, `self` is among the calls of `ended`.
  void start(nb::handle self, const std::shared_ptr<Ended>& ended) {
    auto& slot = require_slot();
    if (!slot.flight) {
      slot.flight = std::make_unique<Flight>();
      slot.request->set_callback([flight = slot.flight.get()](const std::exception_ptr&) {
        const auto list = flight->ended;
        list->add(std::exchange(flight->call, nullptr));
      });
    }
    slot.flight->ended = ended;
    slot.flight->call = self.inc_ref().ptr();
    try {
      const Unlocked release;
      slot.request->start();
    } catch (...) {
      if (auto* call = std::exchange(slot.flight->call, nullptr)) Py_DECREF(call);
      throw;
    }
  }

  /// Runs the inference in the calling thread.
  void run() {
    auto& slot = require_slot();
    if (canceled_) fail(ErrorCode::canceled, "the inference was canceled before it began");
    without_the_gil({[](void* request) { static_cast<Request*>(request)->cancel(); }, &*slot.request},
                    [&] { slot.request->run(); });
  }

  void cancel() noexcept {
    canceled_ = true;
    if (slot_) slot_->request->cancel();
  }

  nb::object result() {
    auto& slot = require_slot();
    try {
      {
        const Unlocked release;
        slot.request->wait();  // its callback may not have returned yet
      }
      auto out = core_->results(slot);
      end();
      return out;
    } catch (...) {
      end();
      throw;
    }
  }

  void end() noexcept {
    if (slot_ == nullptr) return;
    {
      const Unlocked release;
      try {
        slot_->request->wait();
      } catch (...) {  // the inference's error, which nobody wants
      }
    }
    core_->give_back(std::move(slot_));
  }

 private:
  Slot& require_slot() {
    if (!slot_) fail(ErrorCode::bad_call, "the call has ended");
    return *slot_;
  }
  std::shared_ptr<Core> core_;
  std::unique_ptr<Slot> slot_;
  bool canceled_ = false;
};

struct EndedCalls {
  std::shared_ptr<Ended> list = std::make_shared<Ended>();
  ~EndedCalls() { list->close(); }
};

}  // namespace

void bind_calls(nb::module_& m) {
  nb::class_<EndedCalls>(m, "EndedCalls", "Calls that have ended. Thread-safe.")
      .def(nb::init<>())
      .def(
          "fileno", [](EndedCalls& self) { return self.list->descriptor(); },
          "A descriptor that can be read when there are calls.")
      .def(
          "take", [](EndedCalls& self) { return self.list->take(); }, nb::sig("def take(self) -> list[Call]"),
          "Takes all calls.")
      .def(
          "wait",
          [](EndedCalls& self, double seconds) {
            return self.list->wait(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
          },
          nb::arg("seconds"), "Waits until there are calls; False when the time is over.")
      .def(
          "wake", [](EndedCalls& self) { self.list->wake(); }, "Ends a wait, or the next one.")
      .def(
          "close", [](EndedCalls& self) { self.list->close(); }, "Drops calls that end from now on.");
  nb::class_<Call>(m, "Call", nb::dynamic_attr(), "One inference of a model, with its arrays.")
      .def(nb::init<const Compiled&, nb::args, nb::kwargs>(),
           nb::sig("def __init__(self, model: CompiledBase, *args: object, **named: object) -> None"),
           nb::arg("model"), nb::arg("args"), nb::arg("named"))
      .def(
          "start",
          [](nb::handle_t<Call> self, EndedCalls& ended) { nb::cast<Call&>(self).start(self, ended.list); },
          nb::sig("def start(self, ended: EndedCalls) -> None"), nb::arg("ended"),
          "Starts the inference; the call is put into `ended` when it has ended.")
      .def("run", &Call::run, "Runs the inference in the calling thread.")
      .def("cancel", &Call::cancel, "Cancels the inference.")
      .def("result", &Call::result, nb::sig("def result(self) -> lamina.outputs.Outputs"),
           "The outputs of an inference that has ended; raises its error. Once.")
      .def("end", &Call::end, "Waits for the end of the inference and drops its outputs.");
}

}  // namespace lamina::python
