#include "kernels/tiles/tile_key.h"

#include <algorithm>
#include <bit>

namespace valora::kernels {
namespace {

constexpr int64_t kEachAlone = 16;
constexpr uint64_t mask(int bits) { return (uint64_t{1} << bits) - 1; }

}  // namespace

int64_t token_bucket(int64_t tokens) {
  const int64_t t = std::clamp<int64_t>(tokens, 1, kMostTokens);
  if (t <= kEachAlone) return t;
  const int64_t power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(t)));
  // The boundaries are halfway between 2^i, 1.5 · 2^i and 2^(i + 1).
  if (4 * t < 5 * power) return power;
  return 4 * t < 7 * power ? power / 2 * 3 : 2 * power;
}

int64_t next_bucket(int64_t bucket) {
  if (bucket < kEachAlone) return bucket + 1;
  const int64_t power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bucket)));
  return bucket == power ? power / 2 * 3 : 2 * power;
}

TileKey TileKey::of(const ProductShape& s) {
  const auto size = [](int64_t value) {
    return static_cast<uint64_t>(std::clamp<int64_t>(value, 0, kMostSize));
  };
  const uint64_t family = (static_cast<uint64_t>(s.kind) & mask(4)) << 12 |
                          (static_cast<uint64_t>(s.processor.device()) & mask(4)) << 8 |
                          uint64_t{s.float32} << 7 | (s.processor.number() & mask(7));
  const uint64_t n = size(s.n), bucket = static_cast<uint64_t>(token_bucket(s.m));
  return {family << 48 | bucket << 24 | n >> 24, (n & mask(24)) << 40 | size(s.k)};
}

ProductShape TileKey::shape() const {
  ProductShape s;
  s.kind = static_cast<ProductKind>(high >> 60);
  s.float32 = (high >> 55 & 1) != 0;
  s.processor = {static_cast<Device>(high >> 56 & mask(4)),
                 static_cast<uint8_t>(high >> 48 & mask(7))};
  s.m = static_cast<int64_t>(high >> 24 & mask(24));
  s.n = static_cast<int64_t>((high & mask(24)) << 24 | low >> 40);
  s.k = static_cast<int64_t>(low & mask(40));
  return s;
}

uint64_t TileKey::hash() const {
  uint64_t h = high * 0x9E3779B97F4A7C15ull + low * 0xC2B2AE3D27D4EB4Full;
  h = (h ^ h >> 32) * 0xD6E8FEB86659FD93ull;
  h = (h ^ h >> 32) * 0xD6E8FEB86659FD93ull;
  return h ^ h >> 32;
}

}  // namespace valora::kernels
