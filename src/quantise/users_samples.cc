#include "quantise/users_samples.h"

#include "base/error.h"
#include "base/users_calls.h"

namespace lamina {

void require_fit(const std::vector<Port>& ports, const std::vector<Tensor>& sample, std::size_t index) {
  if (sample.size() != ports.size())
    fail(ErrorCode::bad_input, "sample {}: {} tensors, the model has {} inputs", index, sample.size(),
         ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto& tensor = sample[i];
    if (!tensor.valid()) {
      if (ports[i].value.valid()) continue;
      fail(ErrorCode::bad_input, "sample {}: input \"{}\" is missing", index, ports[i].name);
    }
    const auto &wanted = ports[i].shape, &found = tensor.shape();
    bool fits = !ports[i].ranked || wanted.size() == found.size();
    for (std::size_t k = 0; ports[i].ranked && fits && k < wanted.size(); ++k)
      fits = wanted[k] < 0 || wanted[k] == found[k];
    if (!fits || tensor.element_type() != ports[i].type)
      fail(ErrorCode::bad_input, "sample {}: {}[{}] does not fit input \"{}\", which is {}", index,
           name_of(tensor.element_type()), fmt::join(found, ","), ports[i].name, to_string(ports[i]));
  }
}

Samples checked_samples(const Samples& samples, const std::vector<Port>& ports) {
  if (samples.count != 0 && !samples.get)
    fail(ErrorCode::bad_input, "{} samples, but no function that gives them", samples.count);
  return {samples.count, [get = of_user(samples.get), &ports](std::size_t i) {
            auto tensors = get(i);
            require_fit(ports, tensors, i);
            return tensors;
          }};
}

}  // namespace lamina
