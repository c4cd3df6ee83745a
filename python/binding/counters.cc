#include "counters.h"

namespace lamina::python {
namespace {

const char* name_of(LayerStatus status) {
  return status == LayerStatus::executed        ? "executed"
         : status == LayerStatus::optimized_out ? "optimized_out"
                                                : "not_run";
}

}  // namespace

nb::list rows_of(const std::vector<LayerCounter>& counters) {
  nb::list rows;
  for (const auto& c : counters)
    rows.append(nb::make_tuple(text(c.name), text(c.type), text(c.kernel), text(c.into), name_of(c.status),
                               c.runs, c.last_us, c.average_us, c.min_us, c.cpu_us));
  return rows;
}

}  // namespace lamina::python
