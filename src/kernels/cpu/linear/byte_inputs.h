// The rows of x rounded to 8 bits for the products of one launch (product/byte_product.h), prepared
// once for all slices and threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cpu/linear/partition.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/cpu/product/byte_product.h"

namespace valora::kernels {

template <typename T>
class ByteInputs {
 public:
  // Does nothing if no slice uses 8-bit inputs. x: [m, in] with a row stride of ldx elements.
  // largest: as in project().
  void prepare(const T* x, int64_t m, int64_t ldx, const float* largest,
               std::span<const Slice<T>> slices, const ParallelFor& parallel) {
    for (size_t s = 0; s < slices.size(); ++s) {
      const IntegerPanels* w = slices[s].integers;
      if (!w || w->input_block == 0) continue;
      const ByteForm form = byte_form(*w, byte_kernels());
      size_t same = 0;
      while (same < s && !(made_[same] && made_[same]->form == form)) ++same;
      made_[s] = same < s ? made_[same] : make(x, m, ldx, largest, form, parallel);
    }
  }

  // The rows starting at `row`, for a slice that uses 8-bit inputs.
  ByteRows rows(int64_t slice, int64_t row) const {
    const Made& made = *made_[slice];
    const ByteForm& form = made.form;
    return {made.values.get() + row * form.row_bytes(),
            form.row_bytes(),
            made.scales.get() + row * form.spans(),
            made.sums.get() + row * form.spans(),
            made.starts.get() + row * form.spans(),
            form.spans(),
            form.span,
            form.block_spans()};
  }

 private:
  struct Made {
    ByteForm form;
    std::unique_ptr<uint8_t[]> values;
    std::unique_ptr<float[]> scales, sums;
    std::unique_ptr<int32_t[]> starts;
  };

  static std::shared_ptr<const Made> make(const T* x, int64_t m, int64_t ldx, const float* largest,
                                          const ByteForm& form, const ParallelFor& parallel) {
    auto made = std::make_shared<Made>();
    made->form = form;
    made->values.reset(new uint8_t[m * form.row_bytes()]);
    made->scales.reset(new float[m * form.spans()]);
    made->sums.reset(new float[m * form.spans()]);
    made->starts.reset(new int32_t[m * form.spans()]);
    const RoundedRows rows{made->values.get(), made->scales.get(), made->sums.get(),
                           made->starts.get()};
    const auto round_rows = [&](int64_t begin, int64_t end) {
      round_rows_to_bytes(x + begin * ldx, end - begin, ldx, form, rows.from(begin, form),
                          largest ? largest + begin : nullptr);
    };
    if (m * form.k < kSerialInputs)
      round_rows(0, m);
    else
      parallel(0, m, 1, round_rows);
    return made;
  }

  std::array<std::shared_ptr<const Made>, kMaxSlices> made_;
};

}  // namespace valora::kernels
