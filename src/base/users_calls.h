#pragma once
/// Functions of the user's that long work calls.
#include <exception>
#include <functional>
#include <utility>

#include "base/guard.h"
#include "base/quiescence.h"

namespace lamina {

/// The function, called as code of the user's: what it throws ends the work and is thrown as it is. An empty
/// function stays empty. A function may keep state in itself, so it is wrapped once, not at each call.
template <class R, class... A>
std::function<R(A...)> of_user(std::function<R(A...)> function) {
  if (!function) return {};
  return [function = std::move(function)](A... arguments) -> R {
    const InUsersCallback here;
    try {
      return function(std::forward<A>(arguments)...);
    } catch (...) {
      throw FromUser{std::current_exception()};
    }
  };
}

}  // namespace lamina
