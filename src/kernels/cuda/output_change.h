// What adapters change in the outputs of linears besides adding low-rank products:
// y = gain · (y - bias) + bias + coefficient · shift, for magnitudes (DoRA) and biases. Computed in
// fp32 and rounded once, even if several segments cover a token.
#pragma once

#include "kernels/cuda/lora.h"

namespace valora::kernels::cuda {

// An adapter's change of one linear. Null: none.
struct DeviceOutputChange {
  const float* shift = nullptr;  // [out]
  const float* gain = nullptr;   // [out]
};

struct DeviceOutputSegment {
  const DeviceOutputChange* modules = nullptr;  // one entry per module of the model
  float coefficient = 1;
};

// The device copies of a step's tables. tiles and covers: made by plan_lora() for the segments'
// tokens; covers are indices into segments.
struct OutputTables {
  const DeviceOutputSegment* segments = nullptr;
  const LoraExpandTile* tiles = nullptr;
  const int32_t* covers = nullptr;
};

// One linear with result y[tokens, out]. Strides are in elements.
struct OutputSlice {
  void* y = nullptr;
  int64_t y_stride = 0;
  const void* bias = nullptr;  // [out], part of y; null: none
  int32_t out = 0;
  int32_t module = -1;  // -1: cannot have adapters
};

// Up to kMaxLoraSlices linears of the same tokens.
struct OutputCall {
  Dtype dtype = Dtype::kBf16;  // of y and of the biases
  OutputSlice slices[kMaxLoraSlices];
  int32_t slice_count = 0;
  int32_t tiles = 0;
  OutputTables tables;
};
Status change_outputs(const OutputCall& call, Stream stream);

}  // namespace valora::kernels::cuda
