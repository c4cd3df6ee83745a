#include "calls.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "errors.h"
#include "gil.h"
#include "interrupts.h"

namespace lamina::python {

namespace {

int new_descriptor() noexcept { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

}  // namespace

constinit Ended::One Ended::closed_{nullptr, nullptr};

Ended::Ended() : descriptor_(new_descriptor()) {
  if (descriptor_ < 0) fail(ErrorCode::out_of_memory, "no file descriptor is left");
}

Ended::~Ended() {
  close();
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Ended::add(PyObject* call) noexcept {
  auto* const one = new One{call, nullptr};
  auto* last = last_.load();
  do {
    if (last == &closed_) {
      delete one;
      return let_go(call);
    }
    one->before = last;
  } while (!last_.compare_exchange_weak(last, one));
  if (last == nullptr) wake();  // else the reader has been woken
}

nb::list Ended::take() {
  // First: who adds a call after take() has emptied the list wakes the reader again.
  eventfd_t count = 0;
  (void)eventfd_read(descriptor_, &count);
  auto* taken = last_.load();
  while (taken != &closed_ && !last_.compare_exchange_weak(taken, nullptr)) {
  }
  if (taken == &closed_) return {};
  One* first = nullptr;
  while (taken != nullptr) first = std::exchange(taken, std::exchange(taken->before, first));
  nb::list calls;
  while (first != nullptr) {
    calls.append(nb::steal(first->call));
    delete std::exchange(first, first->before);
  }
  return calls;
}

bool Ended::has_some() const noexcept {
  const auto* const last = last_.load();
  return last != nullptr && last != &closed_;
}

bool Ended::wait(std::chrono::nanoseconds time) {
  const Unlocked release;
  const auto most = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  pollfd readable{descriptor_, POLLIN, 0};
  (void)poll(&readable, 1, static_cast<int>(std::clamp<std::int64_t>(most, 0, INT_MAX)));
  return has_some();
}

void Ended::wake() noexcept { (void)eventfd_write(descriptor_, 1); }

void Ended::close() noexcept { drop(&closed_); }

void Ended::after_fork_in_child() noexcept {
  drop(last_.load() == &closed_ ? &closed_ : nullptr);
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = new_descriptor();
}

void Ended::drop(One* then) noexcept {
  for (auto* one = last_.exchange(then); one != nullptr && one != &closed_;) {
    let_go(one->call);
    delete std::exchange(one, one->before);
  }
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
          nb::arg("seconds"), "Waits until there are calls. False when there are none.")
      .def(
          "wake", [](EndedCalls& self) { self.list->wake(); }, "Ends a wait, or the next one before take().")
      .def(
          "close", [](EndedCalls& self) { self.list->close(); }, "Drops calls that end from now on.")
      .def(
          "after_fork_in_child", [](EndedCalls& self) { self.list->after_fork_in_child(); },
          "In the child of a fork: drops all calls, and takes a descriptor that is not the parent's.");
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
