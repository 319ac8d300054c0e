#include "serving/sampling/request_seeds.h"

#include <random>

#include "base/digest.h"

namespace valora::serving {
namespace {

uint64_t random_seed() {
  static thread_local std::mt19937_64 rng{std::random_device{}()};
  return rng();
}

}  // namespace

// Choices of a request draw with the seeds that follow its own, so the seeds of two requests lie
// far apart.
uint64_t RequestSeeds::next() {
  if (!server_) return random_seed();
  return DigestBuilder().add(*server_).add(requests_++).finish().low;
}

}  // namespace valora::serving
