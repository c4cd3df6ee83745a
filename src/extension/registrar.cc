#include "extension/registrar.h"

#include "base/error.h"

namespace lamina {
namespace {

constexpr std::size_t kMostDeclared = 4096;

template <class F>
lamina_status noting_faults(lamina_registrar* registrar, const F& add) {
  if (!registrar) return LAMINA_FAILED;
  try {
    if (registrar->operations.size() + registrar->rules.size() >= kMostDeclared)
      fail(ErrorCode::bad_file, "more than {} operations and rules", kMostDeclared);
    add();
    return LAMINA_OK;
  } catch (const std::exception& e) {
    if (registrar->fault.empty()) registrar->fault = e.what();
    return LAMINA_FAILED;
  }
}

}  // namespace

lamina_status registrar_describe(lamina_registrar* registrar, const lamina_library* library) {
  return noting_faults(registrar, [&] { registrar->library = library_of(library, registrar->ignored); });
}

lamina_status registrar_add_operation(lamina_registrar* registrar, const lamina_operation* operation) {
  return noting_faults(registrar,
                       [&] { registrar->operations.push_back(operation_of(operation, registrar->ignored)); });
}

lamina_status registrar_add_rule(lamina_registrar* registrar, const lamina_rule* rule) {
  return noting_faults(registrar, [&] { registrar->rules.push_back(rule_of(rule, registrar->ignored)); });
}

}  // namespace lamina
