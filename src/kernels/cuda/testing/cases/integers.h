// Random integer weights, on the host and in the kernels' layout.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/integer_matrix.h"
#include "kernels/cuda/testing/device_memory.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {

struct IntegerForm {
  int bits = 8, out = 0;
  int group = 32;
  Dtype scales = Dtype::kFloat;
  bool zeros = false, minimums = false;
};
std::string describe(const IntegerForm& form);

struct Integers {
  IntegerForm form;
  int in = 0;
  IntegerMatrix matrix;         // data is null
  std::vector<uint8_t> values;  // [out, in]
  std::vector<float> scales, minimums;
  std::vector<uint8_t> zeros;

  double value(int out, int input) const;
  double least(int out, int input) const;  // the minimum; 0 if there are none
};

Integers random_integers(const IntegerForm& form, int in, Random& random);
DeviceMemory upload(const Integers& w);

}  // namespace valora::kernels::cuda
