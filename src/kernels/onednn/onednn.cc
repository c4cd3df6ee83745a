#include "kernels/onednn/onednn.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/mapped_file.h"
#include "base/no_destructor.h"
#include "base/quiescence.h"
#include "base/work_partition.h"
#include "kernels/list.h"
#include "kernels/onednn/integers.h"
#include "kernels/onednn_isa.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/normalization.h"
#include "ops/pooling.h"
#include "ops/reduction.h"
#include "ops/resize.h"

namespace lamina {
namespace onednn {

dnnl::engine& engine() {
  static ProcessLifetime engine([] {
    // oneDNN prints errors of its own, unless the user wants to see what it prints.
    if (!std::getenv("ONEDNN_VERBOSE") && !std::getenv("DNNL_VERBOSE")) dnnl::set_verbose(0);
    onednn_isa();  // limits it before its first primitive
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  });
  return *engine;
}

std::optional<dnnl::memory::data_type> type_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return dnnl::memory::data_type::f32;
    case ElementType::f16:
      return dnnl::memory::data_type::f16;
    case ElementType::bf16:
      return dnnl::memory::data_type::bf16;
    case ElementType::i32:
      return dnnl::memory::data_type::s32;
    case ElementType::i8:
      return dnnl::memory::data_type::s8;
    case ElementType::u8:
      return dnnl::memory::data_type::u8;
    default:
      return std::nullopt;
  }
}

Desc desc(const Dims& dims, ElementType type, Layout layout) {
  if (dims.empty()) return Desc({1}, *type_of(type), dnnl::memory::dims{1});
  return Desc(dims, *type_of(type), strides_of(dims, layout));
}

Desc any(const Dims& dims, ElementType type) {
  return Desc(dims, *type_of(type), dnnl::memory::format_tag::any);
}

std::string label(const Machine& machine, const char* implementation, std::string_view type) {
  std::string out = implementation;
  if (machine.library != onednn_isa()) {  // asked here, in place of the one that runs there
    constexpr std::array<std::string_view, 3> kLevels{"sse41", "avx2", "avx512_core"};
    const auto here = kLevels[static_cast<std::size_t>(onednn_isa())];
    if (const auto at = out.find(here); at != std::string::npos)
      out.replace(at, here.size(), kLevels[static_cast<std::size_t>(machine.library)]);
  }
  for (auto& c : out)
    if (c == ':') c = '_';
  return out.ends_with(type) ? out : fmt::format("{}_{}", out, type);
}

double filled_lanes(const Machine& machine, std::int64_t count) {
  const double lanes = machine.library == Isa::avx512 ? 16 : machine.library == Isa::avx2 ? 8 : 4;
  const auto channels = static_cast<double>(count);
  return std::ceil(channels / lanes) * lanes / channels;
}

ElementType multiplied(const NodeView& v) {
  if (v.all(ElementType::f32)) return ElementType::f32;
  const auto* body = epilogue(v.node());
  const auto sums = body ? body->type(body->inputs()[0]).element : v.out_element();
  const auto x = v.element(0), w = v.element(1);
  if (is_byte(x) && is_byte(w)) return sums == ElementType::i32 ? x : ElementType::undefined;
  const bool bias = !v.has(2) || v.element(2) == ElementType::f32;
  const bool narrow = x == ElementType::bf16 && w == ElementType::bf16;
  return narrow && sums == ElementType::f32 && bias ? ElementType::bf16 : ElementType::undefined;
}

Verdict multiplies(const NodeView& v) {
  const auto type = multiplied(v);
  if (is_byte(type)) return multiplies_bytes(v.machine());
  if (type == ElementType::undefined || (type == ElementType::bf16 && !multiplies_bf16(v.machine())))
    return Verdict::no(
        "element types other than f32, bf16 with f32 sums where there are instructions for it, and u8 or i8 "
        "with i32 sums");
  if (v.has(zero_point_input(v.node().op, 0)) || v.has(zero_point_input(v.node().op, 1)))
    return Verdict::no("zero points of {}", name_of(type));
  return Verdict::yes();
}

double share_of_f32(const Machine& machine, ElementType type) {
  if (type == ElementType::f32) return 1;
  const double without_tiles = is_byte(type) ? 0.25 : 0.5;
  const auto tiles = is_byte(type) ? Feature::amx_int8 : Feature::amx_bf16;
  return without_tiles * (machine.features.has(tiles) ? 0.25 : 1);
}

bool is_ref(const char* implementation) { return std::strstr(implementation, "ref") != nullptr; }

namespace {

dnnl::reorder::primitive_desc reorder_of(const Desc& from, const Desc& to) {
  return {engine(), from, engine(), to, user_scratch()};
}

/// What packs an argument at each run.
struct Packing {
  std::size_t arg;
  dnnl::reorder primitive;
  Desc scratchpad;
};

struct Bound {
  dnnl::primitive primitive;
  std::vector<Arg> args;
  Desc scratchpad;
  std::vector<dnnl::memory> constants;  // by argument, for all steps: a memory takes a kilobyte
  std::vector<Packing> packings;
};

/// A primitive's arguments for calls of C.
using RawArgs = std::vector<dnnl_exec_arg_t>;

void execute(const dnnl::primitive& primitive, const dnnl::stream& stream, const RawArgs& args) {
  const auto status =
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(args.size()), args.data());
  LAMINA_CHECK(status == dnnl_success, "oneDNN failed with status {}", static_cast<int>(status));
}

/// A packing of one step.
class PackingStep {
 public:
  PackingStep(const Packing& packing, const Arg& arg, const dnnl::memory& to)
      : packing_(packing),
        input_(arg.index),
        from_(arg.given, engine(), nullptr),
        raw_{{DNNL_ARG_FROM, from_.get()}, {DNNL_ARG_TO, to.get()}} {
    if (packing.scratchpad.get_size() == 0) return;
    scratch_ = dnnl::memory(packing.scratchpad, engine(), nullptr);
    raw_.push_back({DNNL_ARG_SCRATCHPAD, scratch_.get()});
  }

  void bind(const RunArgs& args) {
    from_.set_data_handle(const_cast<void*>(args.in[input_]));
    if (scratch_) scratch_.set_data_handle(args.scratch);  // the primitive has it when it begins
  }
  void run(const dnnl::stream& stream) const { execute(packing_.primitive, stream, raw_); }

 private:
  const Packing& packing_;
  std::size_t input_;
  dnnl::memory from_, scratch_;
  RawArgs raw_;
};

class PrimitiveStep final : public Step {
 public:
  explicit PrimitiveStep(const Bound& bound) : bound_(bound), stream_(engine()), numbers_(bound.args.size()) {
    for (std::size_t i = 0; i < bound.args.size(); ++i) {
      const auto& constant = bound.constants[i];
      memories_.push_back(constant ? constant : dnnl::memory(bound.args[i].desc, engine(), &numbers_[i]));
      raw_.push_back({bound.args[i].id, memories_.back().get()});
    }
    for (const auto& p : bound.packings) packings_.emplace_back(p, bound.args[p.arg], memories_[p.arg]);
    if (bound.scratchpad.get_size() != 0) {
      memories_.emplace_back(bound.scratchpad, engine(), nullptr);
      raw_.push_back({DNNL_ARG_SCRATCHPAD, memories_.back().get()});
    }
  }

  void bind(const RunArgs& args) override {
    bytes_.clear();
    for (std::size_t i = 0; i < bound_.args.size(); ++i) {
      const auto& arg = bound_.args[i];
      if (arg.from == Arg::From::unsigned_number || arg.from == Arg::From::signed_number)
        bytes_.push_back({i, args.in[arg.index]});
      if (arg.from == Arg::From::input) memories_[i].set_data_handle(const_cast<void*>(args.in[arg.index]));
      if (arg.from == Arg::From::output) memories_[i].set_data_handle(args.out[arg.index]);
      if (arg.from == Arg::From::reordered)
        memories_[i].set_data_handle(static_cast<std::byte*>(args.scratch) + arg.scratch_at);
    }
    for (auto& p : packings_) p.bind(args);
    if (memories_.size() > bound_.args.size()) memories_.back().set_data_handle(args.scratch);
  }

  void run() override {
    for (const auto& [i, byte] : bytes_)
      numbers_[i] = bound_.args[i].from == Arg::From::signed_number
                        ? std::int32_t{*static_cast<const std::int8_t*>(byte)}
                        : *static_cast<const std::uint8_t*>(byte);
    for (const auto& p : packings_) p.run(stream_);
    execute(bound_.primitive, stream_, raw_);
    if (std::exchange(ran_, true)) return;
    static std::atomic<int> left{64};  // its matrix products make their code when they run first
    stop_before_tables_go(left);
  }

 private:
  const Bound& bound_;
  bool ran_ = false;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<PackingStep> packings_;
  RawArgs raw_;
  std::vector<std::int32_t> numbers_;                            // by argument
  std::vector<std::pair<std::size_t, const void*>> bytes_ = {};  // arguments that are numbers of 8 bits
};

class PrimitiveExecutable final : public Executable {
 public:
  explicit PrimitiveExecutable(Bound bound) : bound_(std::move(bound)) {
    for (const auto& arg : bound_.args)
      bound_.constants.push_back(
          arg.from == Arg::From::constant
              ? dnnl::memory(arg.desc, engine(), const_cast<std::byte*>(arg.constant.raw()))
              : dnnl::memory());
  }
  std::unique_ptr<Step> step() const override { return std::make_unique<PrimitiveStep>(bound_); }

 private:
  Bound bound_;
};

class PairStep final : public Step {
 public:
  PairStep(const Executable& first, const Executable& second)
      : first_(first.step()), second_(second.step()) {}
  void bind(const RunArgs& args) override {
    first_->bind(args);
    second_->bind(args);
  }
  void run() override {
    first_->run();
    second_->run();
  }

 private:
  std::unique_ptr<Step> first_, second_;
};

class PairExecutable final : public Executable {
 public:
  PairExecutable(std::unique_ptr<Executable> first, std::unique_ptr<Executable> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  std::unique_ptr<Step> step() const override { return std::make_unique<PairStep>(*first_, *second_); }

 private:
  std::unique_ptr<Executable> first_, second_;
};

}  // namespace

std::unique_ptr<Executable> one_after_the_other(std::unique_ptr<Executable> first,
                                                std::unique_ptr<Executable> second) {
  return std::make_unique<PairExecutable>(std::move(first), std::move(second));
}

dnnl::primitive_attr user_scratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

void stop_before_tables_go(std::atomic<int>& left) {
  if (left.load(std::memory_order_relaxed) > 0 && left.fetch_sub(1) > 0) Quiescence::stop_at_exit();
}

std::unique_ptr<Executable> make_primitive(dnnl::primitive primitive, std::vector<Arg> args,
                                           Desc scratchpad) {
  std::vector<Packing> packings;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (args[i].from == Arg::From::reordered) {
      const auto pd = reorder_of(args[i].given, args[i].desc);
      packings.push_back({i, dnnl::reorder(pd), pd.scratchpad_desc()});
    }
  static std::atomic<int> left{32};
  stop_before_tables_go(left);
  return std::make_unique<PrimitiveExecutable>(
      Bound{std::move(primitive), std::move(args), std::move(scratchpad), {}, std::move(packings)});
}

std::optional<PackedAtRun> packed_at_run(const Desc& scratchpad, const Desc& from, const Desc& to) {
  constexpr std::size_t kLine = 64;
  try {
    const auto own = reorder_of(from, to).scratchpad_desc().get_size();
    const auto at = round_up(std::max(scratchpad.get_size(), own), kLine);
    return PackedAtRun{at, at + to.get_size()};
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
}

std::vector<Arg> aligned(std::vector<Arg> args, MakeContext& context) {
  for (auto& arg : args) {
    if (arg.from != Arg::From::constant) continue;
    if (arg.constant_lies != Layout::plain)
      arg.constant = context.weights.moved(arg.constant, fmt::format("as {}", name_of(arg.constant_lies)),
                                           size_laid_out(arg.constant, arg.constant_lies),
                                           [&](const Tensor& t) { return laid_out(t, arg.constant_lies); });
    else if (!arg.constant.aligned())
      arg.constant = context.weights.moved(arg.constant, "aligned", PackedSize::like(arg.constant),
                                           [](const Tensor& t) { return t.to_aligned(); });
  }
  return args;
}

Tensor pack(MakeContext& context, const Tensor& source, const Desc& from, const Desc& to,
            const std::string& key, const WeightStore::Make& prepare) {
  if (from == to && source.aligned() && !prepare)
    return context.weights.packed(source, "as it lies", PackedSize::like(source), std::identity());
  // Equal descriptors share a packing; the source's count, too: a matrix may be read transposed and as it is.
  const std::string full =
      fmt::format("{} {} {}", key, fmt::join(from.get_dims(), ","), fmt::join(from.get_strides(), ",")) +
      fmt::format(" {} {} {} {}", fmt::join(to.get_strides(), ","), to.get_size(),
                  fmt::join(to.get_inner_blks(), ","), fmt::join(to.get_inner_idxs(), ","));
  const auto bytes = static_cast<std::int64_t>(to.get_size());
  return context.weights.packed(source, full, {ElementType::u8, bytes}, [&](const Tensor& clean) {
    const auto aligned = prepare ? prepare(clean) : aligned_once(clean);
    Tensor packed(ElementType::u8, {bytes});
    dnnl::memory in(from, engine(), const_cast<std::byte*>(aligned.raw())), out(to, engine(), packed.raw());
    dnnl::stream stream(engine());
    dnnl::reorder(in, out).execute(stream, in, out);
    stream.wait();
    static std::atomic<int> left{16};
    stop_before_tables_go(left);
    return packed;
  });
}

}  // namespace onednn

namespace {

template <class... T>
bool is_any(const Op& op) {
  return (op.is<T>() || ...);
}

}  // namespace

void add_onednn_kernels(std::vector<Kernel>& list) {
  using namespace onednn;
  const auto first = list.size();
  list.push_back(
      {"onednn.convolution", [](const Op& op) { return op.is<Convolution>(); }, offer_convolution});
  list.push_back({"onednn.deconvolution", [](const Op& op) { return op.is<ConvolutionBackpropData>(); },
                  offer_deconvolution});
  list.push_back({"onednn.matmul", [](const Op& op) { return op.is<MatMul>(); }, offer_matmul});
  list.push_back(
      {"onednn.pooling", [](const Op& op) { return is_any<MaxPool, AvgPool>(op); }, offer_pooling});
  list.push_back({"onednn.eltwise",
                  [](const Op& op) { return op.has(Trait::unary_elementwise | Trait::binary_elementwise); },
                  offer_eltwise});
  list.push_back({"onednn.convert", [](const Op& op) { return op.is<Convert>(); }, offer_convert});
  list.push_back({"onednn.normalization", [](const Op& op) { return is_any<LayerNormalization, LRN>(op); },
                  offer_normalization});
  list.push_back({"onednn.mean", [](const Op& op) { return op.is<ReduceMean>(); }, offer_mean});
  list.push_back({"onednn.resampling", [](const Op& op) { return op.is<Interpolate>(); }, offer_resampling});
  for (auto i = first; i < list.size(); ++i)
    list[i].offer = [offer = list[i].offer, left = std::make_shared<std::atomic<int>>(8)](
                        const NodeView& view, Answers& answers) {
      offer(view, answers);
      stop_before_tables_go(*left);
    };
}

}  // namespace lamina
