#include "generator/train/sampler.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace valora::generator {
namespace {

// A permutation of 0 … size - 1. Unlike std::shuffle, its result does not depend on the standard
// library.
std::vector<int64_t> shuffled(int64_t size, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  for (int64_t i = size - 1; i > 0; --i)
    std::swap(order[i], order[random() % static_cast<uint64_t>(i + 1)]);
  return order;
}

}  // namespace

StepSampler::StepSampler(const std::vector<SampleSource>& sources, int64_t batch, uint64_t seed,
                         bool shuffle)
    : batch_(batch), seed_(seed), shuffle_(shuffle) {
  for (const SampleSource& source : sources) turns_.push_back({source, 0, -1, {}});
}

void StepSampler::restart() {
  at_ = 0;
  for (Turn& turn : turns_) turn.taken = 0;
}

// Selects the source that is furthest behind its share.
size_t StepSampler::next_source() {
  const auto next = std::ranges::min_element(turns_, {}, [](const Turn& t) {
    return (static_cast<double>(t.taken) + 1) / t.source.share;
  });
  ++next->taken;
  return static_cast<size_t>(next - turns_.begin());
}

int64_t StepSampler::index(size_t source, int64_t place) {
  Turn& turn = turns_[source];
  const int64_t size = turn.source.size, round = place / size;
  if (!shuffle_) return place % size;
  if (round != turn.round) {
    std::seed_seq mix{static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32),
                      static_cast<uint32_t>(source), static_cast<uint32_t>(round)};
    uint32_t halves[2];
    mix.generate(halves, halves + 2);
    turn.order = shuffled(size, static_cast<uint64_t>(halves[0]) << 32 | halves[1]);
    turn.round = round;
  }
  return turn.order[place % size];
}

std::vector<SamplePlace> StepSampler::step(int64_t step) {
  if (step < at_) restart();
  for (; at_ < step; ++at_)
    for (int64_t i = 0; i < batch_; ++i) next_source();
  std::vector<SamplePlace> places;
  for (int64_t i = 0; i < batch_; ++i) {
    const size_t source = next_source();
    places.push_back({static_cast<int>(source), index(source, turns_[source].taken - 1)});
  }
  ++at_;
  return places;
}

}  // namespace valora::generator
