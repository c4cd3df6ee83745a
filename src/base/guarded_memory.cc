#include "base/guarded_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/memory_left.h"
#include "base/work_partition.h"

namespace lamina {
namespace {

constexpr std::size_t kPage = 4096, kGuardPages = 16;

std::vector<const GuardedMemory*>& blocks_of_thread() {
  static thread_local std::vector<const GuardedMemory*> all;
  return all;
}

std::byte next_canary() {
  static thread_local unsigned count = 0;
  return static_cast<std::byte>(0xA5 + 0x35 * count++);
}

}  // namespace

GuardedMemory::GuardedMemory(std::string name, std::size_t bytes)
    : name_(std::move(name)), canary_(next_canary()), bytes_(bytes) {
  if (!has_memory(bytes))
    fail(ErrorCode::out_of_memory, "{} of {} bytes is more than this machine's memory", name_, bytes);
  const auto inner = round_up(bytes, kPage) + kPage;  // a page of canaries before, and what is left behind
  mapped_ = inner + 2 * kGuardPages * kPage;
  void* const memory =
      ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  begin_ = static_cast<std::byte*>(memory);
  auto* const first = begin_ + kGuardPages * kPage;
  if (::mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(memory, mapped_);
    throw std::bad_alloc();
  }
  data_ = first + inner - round_up(bytes, std::size_t{64});
  std::fill(first, data_, canary_);
  std::fill(data_ + bytes_, first + inner, canary_);
  blocks_of_thread().push_back(this);
}

GuardedMemory::~GuardedMemory() {
  std::erase(blocks_of_thread(), this);
  ::munmap(begin_, mapped_);
}

std::string GuardedMemory::fault() const {
  const auto* const first = begin_ + kGuardPages * kPage;
  const auto* const end = begin_ + mapped_ - kGuardPages * kPage;
  const auto spoiled = [this](std::byte b) { return b != canary_; };
  if (std::any_of(static_cast<const std::byte*>(data_ + bytes_), end, spoiled))
    return "writes behind the end of " + name_;
  if (std::any_of(first, static_cast<const std::byte*>(data_), spoiled))
    return "writes before the beginning of " + name_;
  return {};
}

void describe_touch(const void* address, std::span<char> text) {
  const auto note = [&]<class... A>(fmt::format_string<A...> words, A&&... args) {
    *fmt::format_to_n(text.data(), text.size() - 1, words, std::forward<A>(args)...).out = 0;
  };
  const auto* at = static_cast<const std::byte*>(address);
  for (const auto* m : blocks_of_thread()) {
    if (at < m->begin_ || at >= m->begin_ + m->mapped_) continue;
    const auto behind = at - (m->data_ + m->bytes_);
    if (at < m->data_)
      note("touches memory {} bytes before the beginning of {}", m->data_ - at, m->name_);
    else if (behind <= 0)
      note("touches memory right behind the end of {}", m->name_);
    else
      note("touches memory {} bytes behind the end of {}", behind, m->name_);
    return;
  }
  note("touches memory that was not allocated");
}

std::size_t heap_in_use() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace lamina
