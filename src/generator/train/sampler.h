// Selects the samples of each step. They depend only on the seed and the step, so a resumed
// training sees the same samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace valora::generator {

// A source of samples [0, size), mixed with other sources in proportion to its share.
struct SampleSource {
  int64_t size = 0;
  double share = 1;  // of each step's samples, relative to the other sources
};

struct SamplePlace {
  int source = 0;
  int64_t index = 0;
};

class StepSampler {
 public:
  // batch: samples per step. shuffle: if false, each source's samples come in order.
  StepSampler(const std::vector<SampleSource>& sources, int64_t batch, uint64_t seed,
              bool shuffle = true);
  // The samples of a step. A source repeats no sample until all have been used; each epoch has its
  // own order.
  std::vector<SamplePlace> step(int64_t step);

 private:
  struct Turn {
    SampleSource source;
    int64_t taken = 0;
    int64_t round = -1;  // epoch of `order`
    std::vector<int64_t> order;
  };
  void restart();
  size_t next_source();
  int64_t index(size_t source, int64_t place);

  std::vector<Turn> turns_;
  int64_t batch_, at_ = 0;  // at_: the next step
  uint64_t seed_;
  bool shuffle_;
};

}  // namespace valora::generator
