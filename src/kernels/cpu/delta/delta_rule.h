// The loop of the gated delta rule over a head's matrix (gated_delta.h).
#pragma once

#include <cstdint>

namespace valora::kernels {

// Keys, queries, values, decays and rates of some rows of a head, and memory for their outputs.
struct HeadRows {
  int64_t rows = 0, key_dim = 0, ld = 0;
  const float *keys = nullptr, *queries = nullptr;  // [rows, key_dim]
  const float *decays = nullptr, *rates = nullptr;  // [rows]
  const float* values = nullptr;                    // [rows, ld], padded to whole tiles
  float* outputs = nullptr;                         // [rows, ld]
};

// Runs one tile of the matrix, [key_dim, kStateTile] at `column`, in place over all rows.
void run_tile(const HeadRows& head, int64_t column, float* state);

}  // namespace valora::kernels
