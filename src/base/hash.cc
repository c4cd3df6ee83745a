#include "base/hash.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxh_x86dispatch.h>

#include "base/error.h"

namespace lamina {
namespace {
Hash128 of(const XXH128_hash_t& h) { return {h.high64, h.low64}; }
}  // namespace

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

std::string to_string(const Hash128& h) { return fmt::format("{:016x}{:016x}", h.high, h.low); }

Hash128 hash_of(std::span<const std::byte> bytes) { return of(XXH3_128bits(bytes.data(), bytes.size())); }

Hasher::Hasher() : state_(std::make_unique<State>()) {
  if (!state_->xxh) fail(ErrorCode::out_of_memory, "no memory for a hash");
  XXH3_128bits_reset(state_->xxh);
}
Hasher::~Hasher() = default;

void Hasher::bytes(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

void Hasher::number(std::uint64_t value) { bytes(std::as_bytes(std::span(&value, 1))); }

void Hasher::text(std::string_view text) {
  number(text.size());
  bytes(std::as_bytes(std::span(text.data(), text.size())));
}

Hash128 Hasher::result() const { return of(XXH3_128bits_digest(state_->xxh)); }

}  // namespace lamina
