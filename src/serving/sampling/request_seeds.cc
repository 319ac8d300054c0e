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

// The choices of a request use consecutive seeds, so the seeds of two requests must be far apart.
uint64_t RequestSeeds::next() {
  if (!server_) return random_seed();
  return DigestBuilder().add(*server_).add(requests_++).finish().low;
}

}  // namespace valora::serving
