#include "tests/sweep/run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "plan/weight_store.h"

namespace lamina::sweep {
namespace {

constexpr unsigned char kUnwritten = 0xff;  // all bytes of a NaN
constexpr std::size_t kBefore = 256;        // bytes before the memory that must stay so

/// Memory that ends, but for some bytes, where no more is.
class Fenced {
 public:
  Fenced(std::size_t bytes, std::size_t alignment, std::size_t behind) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    size_ = (bytes + behind + kBefore + alignment + page - 1) / page * page + page;
    auto* const start = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    LAMINA_CHECK(start != MAP_FAILED, "no memory for the sweep");
    start_ = static_cast<std::byte*>(start);
    std::memset(start_, kUnwritten, size_ - page);
    ::mprotect(start_ + size_ - page, page, PROT_NONE);
    data_ = start_ + (size_ - page - behind - bytes) / alignment * alignment;
    end_ = data_ + bytes;
    fence_ = start_ + size_ - page;
  }
  Fenced(Fenced&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)),
        data_(other.data_),
        end_(other.end_),
        fence_(other.fence_),
        size_(other.size_) {}
  Fenced& operator=(Fenced&&) = delete;
  ~Fenced() {
    if (start_) ::munmap(start_, size_);
  }

  std::byte* data() const { return data_; }
  bool intact() const {
    const auto unwritten = [](std::byte b) { return b == std::byte{kUnwritten}; };
    return std::all_of(data_ - kBefore, data_, unwritten) && std::all_of(end_, fence_, unwritten);
  }

 private:
  std::byte *start_, *data_, *end_, *fence_;
  std::size_t size_;
};

std::size_t element_bytes(ElementType type) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(bits_of(type)) / 8);
}

}  // namespace

std::vector<Tensor> run_offer(const Graph& graph, NodeId id, const Offer& offer,
                              const std::vector<Tensor>& inputs, const Place& place) {
  const Node& node = graph.node(id);
  ModelWeights weights;
  MakeContext context{weights};
  const auto code = offer.make(context);
  std::vector<Fenced> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  const auto fenced = [&](std::size_t bytes, ElementType type) {
    memory.emplace_back(bytes, place.tight ? element_bytes(type) : 64, place.behind);
    return memory.back().data();
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool consumed = std::find(offer.consumed.begin(), offer.consumed.end(), i) != offer.consumed.end();
    in.push_back(nullptr);
    if (!node.inputs[i].valid() || consumed) continue;
    const Tensor lying = laid_out(inputs.at(i), offer.inputs[i]);
    auto* const to = fenced(lying.bytes(), inputs[i].element_type());
    std::memcpy(to, lying.raw(), lying.bytes());
    in.back() = to;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto& type = graph.type(node.outputs[i]);
    out.push_back(fenced(memory_bytes(type.element, type.shape.sizes(), offer.outputs[i]), type.element));
  }
  memory.emplace_back(offer.scratch, 64, place.behind);
  const auto step = code->step();
  step->bind({in.data(), out.data(), memory.back().data()});
  step->run();
  for (const auto& m : memory) LAMINA_CHECK(m.intact(), "{} writes beyond its memory", offer.label);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto& type = graph.type(node.outputs[i]);
    const auto dims = type.shape.sizes();
    const auto bytes = memory_bytes(type.element, dims, offer.outputs[i]);
    const bool packed = packing_of(offer.outputs[i]) != nullptr;
    Tensor lying =
        packed ? Tensor(ElementType::u8, {static_cast<std::int64_t>(bytes)}) : Tensor(type.element, dims);
    std::memcpy(lying.raw(), out[i], bytes);
    results.push_back(plain_of(lying, type.element, dims, offer.outputs[i]));
  }
  return results;
}

namespace {

char running[4096];

void say_which(int signal) {
  const auto said = ::write(2, running, std::strlen(running));
  static_cast<void>(said);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void set_running(const std::string& what) {
  const auto text = "\nwas running: " + what + "\n";
  const auto size = std::min(text.size(), sizeof(running) - 1);
  std::memcpy(running, text.data(), size);
  running[size] = 0;
}

void watch(unsigned seconds) {
  for (const int s : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) ::signal(s, say_which);
  ::alarm(seconds);
}

}  // namespace lamina::sweep
