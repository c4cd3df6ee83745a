#pragma once
/// What collects a library's declarations while lamina_extension() runs.
#include <string>
#include <vector>

#include "extension/declaration.h"

struct lamina_registrar {
  std::vector<lamina::DeclaredOperation> operations;
  std::vector<lamina::DeclaredRule> rules;
  lamina::DeclaredLibrary library;
  lamina::Strings ignored;  ///< what the library has set and this engine does not know
  std::string fault;        ///< the first one
};

namespace lamina {

lamina_status registrar_describe(lamina_registrar* registrar, const lamina_library* library);
lamina_status registrar_add_operation(lamina_registrar* registrar, const lamina_operation* operation);
lamina_status registrar_add_rule(lamina_registrar* registrar, const lamina_rule* rule);

}  // namespace lamina
