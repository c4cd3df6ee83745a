#include "exec/job.h"

#include <typeinfo>

#include "base/error.h"
#include "base/guard.h"
#include "base/no_destructor.h"
#include "exec/dispatch.h"

namespace lamina {

const std::exception_ptr& canceled_error() {
  static const ProcessLifetime error(
      [] { return std::make_exception_ptr(Error(ErrorCode::canceled, "the inference was canceled")); });
  return *error;
}

std::exception_ptr own_copy(const std::exception_ptr& error) noexcept {
  if (!error) return error;
  try {
    std::rethrow_exception(error);
  } catch (const FromUser& user) {
    return user.thrown;
  } catch (const Error& e) {
    return typeid(e) == typeid(Error) ? std::make_exception_ptr(e) : error;
  } catch (...) {
    return error;
  }
}

JobState outcome_of(const std::exception_ptr& error) noexcept {
  if (!error) return JobState::done;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == ErrorCode::canceled ? JobState::canceled : JobState::failed;
  } catch (...) {
    return JobState::failed;
  }
}

// The fork handler and shut_down() know jobs by their list; see exec/processes.cc.
Job::Job() : place_{this}, element_(place_.begin()) {
  auto& d = Dispatch::here();
  const std::lock_guard lock(d.mutex);
  d.jobs.push_back(this);
}

Job::~Job() {
  auto& d = Dispatch::here();
  const std::lock_guard lock(d.mutex);
  std::erase(d.jobs, this);
}

void Job::join(List& list) noexcept {
  list.splice(list.end(), in_ != nullptr ? *in_ : place_, element_);
  in_ = &list;
}

void Job::leave() noexcept {
  if (in_ != nullptr) place_.splice(place_.end(), *in_, element_);
  in_ = nullptr;
}

void Job::wake_waiters() noexcept {
  for (auto* w = waiters_; w != nullptr; w = w->next) w->waker.notify_all();
}

bool Job::in_own_callback() const noexcept {
  return caller_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void Job::set_callback(Callback callback) {
  auto fresh = callback ? std::make_shared<const Callback>(std::move(callback)) : nullptr;
  const std::lock_guard lock(Dispatch::here().mutex);
  callback_.swap(fresh);
}

/// Ends the job in a child of fork(): the thread that ran it does not exist here.
void Job::end_in_child() noexcept {
  caller_ = runner_ = std::thread::id();
  stream_ = -1;
  again_ = again_canceled_ = false;
  error_ = canceled_error();
  forget_result();
  state_ = JobState::canceled;
  if (self_.use_count() > 1) self_.reset();  // else its owner has gone: nothing is destroyed in here
}

}  // namespace lamina
