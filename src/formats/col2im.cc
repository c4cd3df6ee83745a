#include "formats/col2im.h"

namespace lamina {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;
constexpr std::int64_t kLargestBlock = 1 << 10, kMostChannels = 1 << 20;
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 40;

/// What is left of the padded picture's axis beside one block.
std::int64_t room(const Col2Im& c, std::size_t axis) {
  return c.image[axis] + c.pads_begin[axis] + c.pads_end[axis] - c.dilations[axis] * (c.block[axis] - 1) - 1;
}

/// The product of numbers from 1 on; a number above kMostBlocks if it exceeds that.
std::int64_t product(const Ints& sizes) {
  std::int64_t out = 1;
  for (const auto size : sizes) {
    if (size > kMostBlocks / out) return kMostBlocks + 1;
    out *= size;
  }
  return out;
}

}  // namespace

std::int64_t Col2Im::block_size() const { return product(block); }

Ints Col2Im::grid() const {
  Ints out;
  for (std::size_t i = 0; i < image.size(); ++i) out.push_back(room(*this, i) / strides[i] + 1);
  return out;
}

std::string Col2Im::fault(const TensorType& columns) const {
  struct Part {
    const Ints& list;
    const char* name;
    std::int64_t least;
  };
  const auto axes = image.size();
  for (const auto& [list, name, least] :
       {Part{image, "image shape", 1}, Part{block, "block shape", 1}, Part{strides, "strides", 1},
        Part{dilations, "dilations", 1}, Part{pads_begin, "pads", 0}, Part{pads_end, "pads", 0}}) {
    if (list.size() != axes)
      return fmt::format("{} has {} values, wanted {} as the image shape has", name, list.size(), axes);
    for (const auto v : list)
      if (v < least || v >= kLargest) return fmt::format("{} has {}, wanted {} or more", name, v, least);
  }
  for (std::size_t i = 0; i < axes; ++i)
    if (room(*this, i) < 0) return fmt::format("axis {} of the padded image is smaller than a block", i);
  const Shape& shape = columns.shape;
  if (!shape.ranked()) return "";
  if (shape.rank() != 3) return fmt::format("the columns have shape {}, wanted rank 3", to_string(shape));
  const auto size = product(block), blocks = product(grid());
  if (size > kMostBlocks || blocks > kMostBlocks) return "the image is too large";
  if (shape[1].known() && (shape[1].size() < size || shape[1].size() % size != 0))
    return fmt::format("{} channels for blocks of {}", shape[1].size(), size);
  if (!shape[2].fits(Dim(blocks)))
    return fmt::format("has {} blocks, wanted {}", to_string(shape[2]), blocks);
  return "";
}

std::string Col2Im::beyond(const TensorType& columns) const {
  if (!is_float(columns.element)) return fmt::format("elements of type {}", name_of(columns.element));
  if (!columns.shape.ranked() || !columns.shape[1].known()) return "an unknown number of channels";
  if (image.empty() || image.size() > 3) return fmt::format("images with {} axes", image.size());
  if (block_size() > kLargestBlock) return fmt::format("blocks of more than {} elements", kLargestBlock);
  if (const auto channels = columns.shape[1].size(); channels > kMostChannels)
    return fmt::format("{} channels", channels);
  return "";
}

ConvolutionBackpropData Col2Im::convolution(std::int64_t channels) const {
  ConvolutionBackpropData op;
  op.groups = channels;
  op.strides = strides;
  op.dilations = dilations;
  op.pads_begin = pads_begin;
  op.pads_end = pads_end;
  for (std::size_t i = 0; i < image.size(); ++i) op.output_padding.push_back(room(*this, i) % strides[i]);
  return op;
}

Tensor Col2Im::kernels(std::int64_t channels, ElementType type) const {
  const auto size = block_size();
  std::vector<double> w(static_cast<std::size_t>(channels * size * size));
  for (std::int64_t i = 0; i < channels * size; ++i) w[static_cast<std::size_t>(i * size + i % size)] = 1;
  Ints dims{channels * size, 1};
  dims.insert(dims.end(), block.begin(), block.end());
  return from_doubles(type, dims, w);
}

}  // namespace lamina
