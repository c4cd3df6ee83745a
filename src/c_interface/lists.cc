#include "c_interface/handles.h"
#include "c_interface/structs.h"

namespace lamina::c_interface {
namespace {

constexpr const char* kHeld[]{"texts",   "entries",     "options",  "properties",
                              "fusions", "layer times", "counters", "ports"};

/// The rows of a list of that kind, by its place in kHeld, among which there is one of that index.
template <std::size_t kind>
const auto& rows_of(const lamina_c_list* list, std::size_t index) {
  const auto& held = object(list, "list").rows;
  const auto* const rows = std::get_if<kind>(&held);
  if (rows == nullptr) fail(ErrorCode::bad_call, "the list has {}, not {}", kHeld[held.index()], kHeld[kind]);
  if (index >= rows->size()) fail(ErrorCode::bad_input, "element {} of a list of {}", index, rows->size());
  return *rows;
}
static_assert(std::variant_size_v<decltype(lamina_c_list::rows)> == std::size(kHeld));
static_assert(static_cast<int>(LayerStatus::executed) == LAMINA_C_LAYER_EXECUTED &&
              static_cast<int>(LayerStatus::optimized_out) == LAMINA_C_LAYER_OPTIMIZED_OUT &&
              static_cast<int>(LayerStatus::not_run) == LAMINA_C_LAYER_NOT_RUN);

}  // namespace
}  // namespace lamina::c_interface

using namespace lamina;
using namespace lamina::c_interface;

lamina_c_status lamina_c_list_size(const lamina_c_list* list, size_t* size) {
  return call("lamina_c_list_size", [&] {
    argument(size, "where to put the size") =
        std::visit([](const auto& rows) { return rows.size(); }, object(list, "list").rows);
  });
}
lamina_c_status lamina_c_list_text(const lamina_c_list* list, size_t index, const char** text) {
  return call("lamina_c_list_text", [&] {
    const auto& rows = rows_of<0>(list, index);
    argument(text, "where to put the text") = rows[index].c_str();
  });
}
lamina_c_status lamina_c_list_entry(const lamina_c_list* list, size_t index, lamina_c_entry* entry) {
  return call("lamina_c_list_entry", [&] {
    const auto& [key, value] = rows_of<1>(list, index)[index];
    give(entry, {0, key.c_str(), key.size(), value.c_str(), value.size()}, "lamina_c_entry");
  });
}
lamina_c_status lamina_c_list_option(const lamina_c_list* list, size_t index, lamina_c_option* option) {
  return call("lamina_c_list_option", [&] {
    const auto& row = rows_of<2>(list, index)[index];
    give(option, {0, row.key.c_str(), row.values.c_str(), row.help.c_str(), row.setting.c_str()},
         "lamina_c_option");
  });
}
lamina_c_status lamina_c_list_property(const lamina_c_list* list, size_t index, lamina_c_property* property) {
  return call("lamina_c_list_property", [&] {
    const auto& row = rows_of<3>(list, index)[index];
    give(property,
         {0, row.key.c_str(), row.value.c_str(), row.asked.c_str(), row.reason.c_str(), row.read_only, 0},
         "lamina_c_property");
  });
}
lamina_c_status lamina_c_list_fusion(const lamina_c_list* list, size_t index, lamina_c_fusion* fusion) {
  return call("lamina_c_list_fusion", [&] {
    const auto& row = rows_of<4>(list, index)[index];
    give(fusion, {0, row.rule.c_str(), row.count}, "lamina_c_fusion");
  });
}
lamina_c_status lamina_c_list_layer_time(const lamina_c_list* list, size_t index, lamina_c_layer_time* time) {
  return call("lamina_c_list_layer_time", [&] {
    const auto& row = rows_of<5>(list, index)[index];
    give(time, {0, row.name.c_str(), row.kernel.c_str(), row.microseconds}, "lamina_c_layer_time");
  });
}
lamina_c_status lamina_c_list_counter(const lamina_c_list* list, size_t index, lamina_c_counter* counter) {
  return call("lamina_c_list_counter", [&] {
    const auto& row = rows_of<6>(list, index)[index];
    give(counter,
         {0, row.name.c_str(), row.type.c_str(), row.kernel.c_str(), row.into.c_str(),
          static_cast<std::int32_t>(row.status), 0, row.runs, row.last_us, row.average_us, row.min_us,
          row.cpu_us},
         "lamina_c_counter");
  });
}
lamina_c_status lamina_c_list_port(const lamina_c_list* list, size_t index, lamina_c_port* port) {
  return call("lamina_c_list_port", [&] { rows_of<7>(list, index).show(index, port); });
}
void lamina_c_list_free(lamina_c_list* list) { delete list; }
