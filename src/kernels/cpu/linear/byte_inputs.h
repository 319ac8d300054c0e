// The rows of x rounded to 8 bits for the products of one launch (product/byte_product.h), prepared
// once for all slices and threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cpu/linear/launch_memory.h"
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
    const RoundedRows rows = made.rows.from(row, form);
    return {rows.values, form.row_bytes(), rows.scales, rows.sums,
            rows.starts, form.spans(),     form.span,   form.block_spans()};
  }

 private:
  struct Made {
    Made(const ByteForm& f, int64_t m)
        : form(f), memory(m * (f.row_bytes() + f.spans() * kBytesPerSpan)) {
      auto* scales = reinterpret_cast<float*>(memory.data() + m * f.row_bytes());
      float* sums = scales + m * f.spans();
      rows = {memory.data(), scales, sums, reinterpret_cast<int32_t*>(sums + m * f.spans())};
    }
    static constexpr int64_t kBytesPerSpan = 2 * sizeof(float) + sizeof(int32_t);
    ByteForm form;
    LaunchMemory memory;
    RoundedRows rows;
  };

  static std::shared_ptr<const Made> make(const T* x, int64_t m, int64_t ldx, const float* largest,
                                          const ByteForm& form, const ParallelFor& parallel) {
    auto made = std::make_shared<const Made>(form, m);
    const RoundedRows& rows = made->rows;
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
