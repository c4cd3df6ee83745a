#include "kernels/onednn/kept.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/no_destructor.h"
#include "base/parallel.h"
#include "kernels/generated_code.h"

namespace lamina {
namespace onednn {
namespace {

/// exit() destroys none of them: oneDNN's own tables go first.
struct Kept {
  std::mutex mutex;
  std::unordered_multimap<std::string, std::pair<std::vector<Desc>, dnnl::primitive>> all;

  dnnl::primitive find(const Description& d) const {
    const auto [begin, end] = all.equal_range(d.text);
    for (auto it = begin; it != end; ++it)
      if (it->second.first == d.descs) return it->second.second;
    return {};
  }
};
Kept& here() {
  static const ProcessLifetime one([] { return std::make_unique<Kept>(); });
  return **one;
}

std::atomic<std::size_t> count{0}, most{kMostKeptConvolutions};

/// A stage and its numbers.
std::string text_of(const dnnl::post_ops& ops, int i) {
  using Kind = dnnl::primitive::kind;
  const auto number = [](auto value) { return static_cast<int>(value); };
  dnnl::algorithm algorithm{};
  float a = 0, b = 0;
  switch (ops.kind(i)) {
    case Kind::eltwise:
      ops.get_params_eltwise(i, algorithm, a, b);
      return fmt::format(" eltwise {} {:a} {:a}", number(algorithm), a, b);
    case Kind::binary: {
      Desc operand;  // is among the arguments, too
      ops.get_params_binary(i, algorithm, operand);
      return fmt::format(" binary {}", number(algorithm));
    }
    case Kind::sum: {
      std::int32_t zero = 0;
      auto type = dnnl::memory::data_type::undef;
      ops.get_params_sum(i, a, zero, type);
      return fmt::format(" sum {:a} {} {}", a, zero, number(type));
    }
    case Kind::prelu: {
      int mask = 0;
      ops.get_params_prelu(i, mask);
      return fmt::format(" prelu {}", mask);
    }
    default:
      fail(ErrorCode::internal, "a stage of kind {} of oneDNN's, wanted those that lamina uses",
           number(ops.kind(i)));
  }
}

}  // namespace

bool code_stays(std::string_view implementation) {
  static const bool version = [] {
    const auto* const v = dnnl_version();
    return v->major == 3 && (v->minor == 2 || v->minor == 3);
  }();
  return version && implementation.find("brgconv") != std::string_view::npos;
}

std::string text_of(std::string_view implementation, const std::vector<dnnl::memory::dims>& sizes,
                    const dnnl::primitive_attr& attr) {
  std::string text = fmt::format("{} {}", implementation, threads_here());
  for (const auto& list : sizes) text += fmt::format(" {}", fmt::join(list, ","));
  const auto ops = attr.get_post_ops();
  for (int i = 0; i < ops.len(); ++i) text += text_of(ops, i);
  return text;
}

bool may_be_made(const Description& description) {
  if (!SparingMemory::is_here() || count < most) return true;
  auto& k = here();
  const std::lock_guard lock(k.mutex);
  if (k.find(description)) return true;
  SparingMemory::note();
  return false;
}

dnnl::primitive kept(const Description& description, const std::function<dnnl::primitive()>& make) {
  auto& k = here();
  {
    const std::lock_guard lock(k.mutex);
    if (auto there = k.find(description)) return there;
  }
  auto made = make();  // outside the lock: code may be generated in parallel
  const std::lock_guard lock(k.mutex);
  if (auto there = k.find(description)) return there;  // another was quicker
  k.all.emplace(description.text, std::pair(description.descs, made));
  ++count;
  return made;
}

}  // namespace onednn

namespace {
thread_local SparingMemory* sparing = nullptr;
}  // namespace

SparingMemory::SparingMemory() noexcept : outer_(std::exchange(sparing, this)) {}
SparingMemory::~SparingMemory() { sparing = outer_; }
bool SparingMemory::is_here() noexcept { return sparing != nullptr; }
void SparingMemory::note() noexcept {
  if (sparing != nullptr) sparing->spared_ = true;
}

std::size_t kept_convolutions() noexcept { return onednn::count; }
void keep_most_convolutions(std::size_t most) noexcept { onednn::most = most; }

}  // namespace lamina
