// A random step of a layer with a gated delta rule, its sequences' states in a pool, and what
// double precision makes of them.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/delta.h"
#include "kernels/cuda/testing/report.h"

namespace valora::kernels::cuda {

struct DeltaSizes {
  Dtype dtype = Dtype::kFloat;
  int taps = 4, key_heads = 1, value_heads = 1, key_dim = 8, value_dim = 8;
  enum class From { kNone, kOwn, kOther };  // the state before a span: in place, or another one
  struct Span {
    int rows = 1;
    From from = From::kNone;
    std::vector<int> kept = {};  // rows that kept states include
  };
  std::vector<Span> spans;
  bool shifted = false;  // nothing but the pool is 16-byte aligned

  StateShape shape() const;
  double work() const;  // multiply-adds
};

// The pool has the states of two layers, of which the second is used, in blocks in random order;
// everything unused is NaN. A token before the first span, and one between the second and the
// third, belong to no span.
struct DeltaStep {
  DeltaSizes sizes;
  StateShape shape;
  size_t block_bytes = 0;
  int32_t state_blocks = 0;        // of a state
  std::vector<StatePlace> places;  // of the layer
  std::string name;
  int64_t tokens = 0;
  int64_t x_stride = 0, z_stride = 0, rate_stride = 0;  // of x, of z, of a and b
  std::vector<QuerySpan> spans;
  std::vector<StateSpan> states;
  std::vector<std::vector<int32_t>> lists;  // all states' blocks
  std::vector<float> x, z, a, b, weights, rate, bias, norm;
  std::vector<std::byte> pool;

  size_t shift() const { return sizes.shifted ? size_of(sizes.dtype) : 0; }
  // Byte offset in the pool of a row of a window, of a matrix.
  size_t window_at(const int32_t* list, int64_t row) const;
  size_t matrix_at(const int32_t* list, int64_t head) const;
};

DeltaStep make_delta_step(const DeltaSizes& sizes);

struct ExpectedDelta {
  std::vector<Expected> convolved;  // [tokens, channels]; NaN outside all spans
  std::vector<float> qkv;           // the same, rounded
  std::vector<Expected> out;        // [tokens, value_heads · value_dim]
  // A state after the step.
  struct State {
    const int32_t* list = nullptr;
    std::vector<std::vector<Expected>> matrices;  // one per head
    std::vector<std::vector<std::byte>> window;   // one per row
  };
  std::vector<State> states;
};
ExpectedDelta expected_delta(const DeltaStep& step);

}  // namespace valora::kernels::cuda
