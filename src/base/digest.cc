#include "base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace valora {
namespace {

Digest from_xxh(XXH128_hash_t h) { return {h.high64, h.low64}; }
XXH3_state_t* xxh(void* state) { return static_cast<XXH3_state_t*>(state); }

}  // namespace

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Digest digest_of(std::span<const uint8_t> bytes) {
  return from_xxh(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digest_of(std::string_view text) { return from_xxh(XXH3_128bits(text.data(), text.size())); }

DigestBuilder::DigestBuilder() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(xxh(state_));
}
DigestBuilder::~DigestBuilder() { XXH3_freeState(xxh(state_)); }

DigestBuilder& DigestBuilder::add(std::span<const uint8_t> bytes) {
  const uint64_t size = bytes.size();
  XXH3_128bits_update(xxh(state_), &size, sizeof size);
  XXH3_128bits_update(xxh(state_), bytes.data(), bytes.size());
  return *this;
}

DigestBuilder& DigestBuilder::add(std::string_view text) {
  return add(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

DigestBuilder& DigestBuilder::add(const Digest& digest) {
  add(digest.high);
  return add(digest.low);
}

Digest DigestBuilder::finish() const { return from_xxh(XXH3_128bits_digest(xxh(state_))); }

}  // namespace valora
