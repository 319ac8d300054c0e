// Which samples a step takes. They follow from the seed and the step alone, so that a training that
// goes on where it stopped sees what it would have seen.
#pragma once

#include <cstdint>
#include <vector>

namespace valora::generator {

// Samples [0, size) that take turns with others' by their share.
struct SampleSource {
  int64_t size = 0;
  double share = 1;  // of every step's samples, against the other sources' shares
};

struct SamplePlace {
  int source = 0;
  int64_t index = 0;
};

class StepSampler {
 public:
  // batch: samples a step. shuffle: false takes each source's samples in their order.
  StepSampler(std::vector<SampleSource> sources, int64_t batch, uint64_t seed, bool shuffle = true);
  // Each source goes through all its samples, in another order each time, before any comes again.
  std::vector<SamplePlace> step(int64_t step);

 private:
  struct Turn {
    SampleSource source;
    int64_t taken = 0;
    int64_t round = -1;  // that `order` is of
    std::vector<int64_t> order;
  };
  void restart();
  size_t next_source();
  int64_t index(size_t source, int64_t place);

  std::vector<Turn> turns_;
  int64_t batch_, at_ = 0;  // at_: the step that comes next
  uint64_t seed_;
  bool shuffle_;
};

}  // namespace valora::generator
