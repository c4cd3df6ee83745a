#include "formats/caffe/call.h"

#include "base/no_destructor.h"
#include "ops/eval.h"
#include "ops/shaping.h"

namespace lamina::caffe {

void Call::warn(const std::string& text) const {
  constexpr std::size_t kMost = 100;
  if (warnings_.size() < kMost)
    warnings_.push_back(fmt::format("layer \"{}\" ({}): {}", layer_.name, layer_.type, text));
}

ValueId Call::in(std::size_t i) const {
  if (i >= inputs_.size()) fail("has {} bottoms, wanted {}", inputs_.size(), i + 1);
  return inputs_[i];
}

std::size_t Call::axis(std::int64_t axis, ValueId v) const {
  return normalize_axis(axis, known_rank(v), "axis");
}

std::int64_t Call::size(ValueId v, std::size_t axis) const {
  if (axis >= known_rank(v)) fail("the bottom has shape {}, wanted an axis {}", to_string(shape(v)), axis);
  if (!shape(v)[axis].known())
    unsupported("the size of axis {} of \"{}\" is not known: give the input's shape", axis,
                graph().value(v).name);
  return shape(v)[axis].size();
}

const Blob& Call::blob(std::size_t i) const {
  if (i < blobs()) return (*blobs_)[i];
  if (!weights_.is_there() && weights_.wanted().empty())
    fail("needs weights, but none were given with the model in memory");
  if (!weights_.is_there()) fail("needs weights, but there is no {}", weights_.wanted());
  if (blobs_ == nullptr) fail("needs weights, but {} has no layer of that name", weights_.file()->path());
  fail("has {} blobs in {}, wanted {}", blobs(), weights_.file()->path(), i + 1);
}

Tensor Call::tensor(std::size_t i, const Dims& dims) const {
  const auto& b = blob(i);
  for (const auto* checked : {&b.dims, &dims})
    if (element_count(*checked) != b.count)
      fail("blob {} has {} values, wanted {} for the shape {}", i, b.count, element_count(*checked),
           to_string(*checked));
  return b.tensor(dims, weights_.file());
}

Tensor Call::vector(std::size_t i) const { return tensor(i, {static_cast<std::int64_t>(blob(i).count)}); }

ValueId Call::number(double value) const {
  return constant(Tensor::scalar<float>(static_cast<float>(value)));
}

ValueId Call::floats(const Dims& dims, const Floats& values) const {
  return constant(from_doubles(ElementType::f32, dims, values));
}

ValueId Call::reshape(ValueId v, const Ints& pattern) const {
  const auto& now = shape(v);
  if (now.known() && now.sizes() == pattern) return v;
  if (const auto* t = graph().constant(v);
      t && std::all_of(pattern.begin(), pattern.end(), [](auto d) { return d > 0; }))
    return constant(t->reshaped(pattern));
  return add(Reshape{true}, {v, ints_constant(pattern)});
}

const ConverterTable& converters() {
  static const ProcessLifetime all([] {
    ConverterTable t;
    for (auto* add :
         {register_activation, register_convolution, register_detection, register_elementwise,
          register_normalization, register_pooling, register_resize, register_shape, register_sorting})
      add(t);
    return t;
  });
  return *all;
}

}  // namespace lamina::caffe
