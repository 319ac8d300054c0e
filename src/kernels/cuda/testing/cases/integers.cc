#include "kernels/cuda/testing/cases/integers.h"

#include <algorithm>

namespace valora::kernels::cuda {

std::string describe(const IntegerForm& form) {
  return std::to_string(form.out) + " of " + std::to_string(form.bits) + " bits in groups of " +
         std::to_string(form.group) + " with " + name_of(form.scales) +
         (form.zeros      ? " and zeros"
          : form.minimums ? " and minimums"
                          : "");
}

double Integers::value(int out, int input) const {
  const size_t at = static_cast<size_t>(out) * matrix.groups + input / matrix.group;
  const int zero = form.minimums ? 0 : form.zeros ? zeros[at] : 1 << (form.bits - 1);
  const int value = values[static_cast<size_t>(out) * in + input];
  return static_cast<double>(value - zero) * scales[at] + least(out, input);
}

double Integers::least(int out, int input) const {
  const size_t at = static_cast<size_t>(out) * matrix.groups + input / matrix.group;
  return form.minimums ? minimums[at] : 0;
}

Integers random_integers(const IntegerForm& form, int in, Random& random) {
  Integers w{.form = form,
             .in = in,
             .matrix = {},
             .values = {},
             .scales = {},
             .minimums = {},
             .zeros = {}};
  w.matrix = integer_matrix(form.out, in, form.bits, std::min(form.group, in), form.scales,
                            form.zeros, form.minimums);
  const size_t groups = static_cast<size_t>(form.out) * w.matrix.groups;
  const int64_t most = int64_t{1} << form.bits;
  for (size_t i = 0; i < static_cast<size_t>(form.out) * in; ++i)
    w.values.push_back(static_cast<uint8_t>(random.below(most)));
  for (size_t i = 0; i < groups; ++i) w.zeros.push_back(static_cast<uint8_t>(random.below(most)));
  w.scales = random.values(groups, form.scales, 0.02f);
  w.minimums = random.values(groups, Dtype::kFloat, 0.3f);
  return w;
}

DeviceMemory upload(const Integers& w) {
  std::vector<std::byte> bytes(static_cast<size_t>(w.matrix.bytes), std::byte{0xff});
  pack_matrix(w.matrix, w.values.data(),
              {w.scales.data(), w.form.zeros ? w.zeros.data() : nullptr,
               w.form.minimums ? w.minimums.data() : nullptr},
              bytes.data(), serial_for);
  DeviceMemory memory(bytes.size());
  memory.upload(bytes.data(), bytes.size());
  return memory;
}

}  // namespace valora::kernels::cuda
