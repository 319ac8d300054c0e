// Where the panels of an adapter lie in the blocks of a memory pool that it shares with the KV
// cache (S-LoRA §4, unified paging). Kernels read them there (kernels/types/lora.h). In the plain
// form, which GPUs read, a panel is kPlainPanelRows rows, row-major.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/safetensors.h"
#include "kernels/types/weight_form.h"

namespace valora::ops {

using kernels::WeightForm;

inline constexpr int64_t kPlainPanelRows = 16;

// An adapter's A, [rank, in], and B, [out, rank], on one module of the model.
struct LoraShape {
  int module = 0;
  int64_t rank = 0, in = 0, out = 0;
  float scale = 1;  // e.g. alpha / rank
};

// Each factor (A or B) is one piece: adjacent panels within one block, in the first block that has
// room. A factor that is larger than a block is cut into pieces of equally many panels; the last
// one may be shorter. A panel of A that is larger than a block is cut itself, into runs of its
// inputs, not in the plain form. Pieces begin 64-byte aligned if the blocks do, and do not overlap.
// Any two blocks together hold more than the bytes of one.
class PanelLayout {
 public:
  struct Piece {
    int32_t block = 0;  // 0 to blocks() - 1
    size_t offset = 0;  // bytes from the block's begin
  };
  // An [n, k] matrix: panels [i * panels_per_piece, (i + 1) * panels_per_piece) are piece i of
  // pieces(factor). If panels are cut, inputs_per_piece says how (kernels/types/lora.h).
  struct Factor {
    int64_t n = 0, k = 0;
    int64_t panels_per_piece = 0;
    int64_t inputs_per_piece = 0;
    size_t first_piece = 0, piece_count = 0;
  };
  struct Module {
    LoraShape shape;
    Factor a, b;
  };

  PanelLayout() = default;
  // dtype: of the panels, float or bf16, in the plain form also fp16. block_bytes: a multiple of
  // 64. kUnprocessable if a panel that cannot be cut is larger than a block, or a block is smaller
  // than least_cut_block_bytes(); the message has the bytes. Throws
  // c10::Error if a size is not positive.
  static Result<PanelLayout> make(std::span<const LoraShape> shapes, at::ScalarType dtype,
                                  size_t block_bytes, WeightForm form = WeightForm::kPanels);

  // One [n, k] matrix without adapters, in this form. Errors as make().
  static Result<PanelLayout> of_matrix(int64_t n, int64_t k, at::ScalarType dtype,
                                       size_t block_bytes, WeightForm form);

  at::ScalarType dtype() const { return dtype_; }
  WeightForm form() const { return form_; }
  int32_t blocks() const { return blocks_; }
  size_t block_bytes() const { return block_bytes_; }
  // Bytes of all panels, without the unused ends of blocks.
  size_t bytes() const { return bytes_; }
  // In the order of make().
  std::span<const Module> modules() const { return modules_; }
  // Of of_matrix().
  const Factor& matrix() const { return matrix_; }
  // Of all factors. Each factor's pieces are adjacent.
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const Piece> pieces(const Factor& factor) const {
    return pieces().subspan(factor.first_piece, factor.piece_count);
  }

  // Packs the values of modules()[index] into the blocks, rounded to dtype() as ATen rounds. a:
  // [rank, in], b: [out, rank], of F32, F16 or BF16, aligned or not. blocks: the addresses of the
  // blocks(), in host memory, 64-byte aligned. Runs on the calling thread alone, on any thread, and
  // needs memory for a few panels. Throws c10::Error if shapes, dtypes or the number of blocks
  // differ.
  void write(size_t index, const TensorView& a, const TensorView& b,
             std::span<std::byte* const> blocks) const;
  // The same for rows of matrix() from `first` on, a multiple of kPlainPanelRows. rows: [m, k],
  // where m is such a multiple, too, or the rest.
  void write_rows(int64_t first, const TensorView& rows, std::span<std::byte* const> blocks) const;

 private:
  class BlockFiller;
  Factor add(int64_t n, int64_t k, BlockFiller& filler);
  Factor add_cut(Factor factor, BlockFiller& filler);

  at::ScalarType dtype_ = at::kFloat;
  WeightForm form_ = WeightForm::kPanels;
  int32_t blocks_ = 0;
  size_t block_bytes_ = 0, bytes_ = 0;
  std::vector<Module> modules_;
  std::vector<Piece> pieces_;
  Factor matrix_;
};

// The form in which kernels read adapters in the blocks of a pool; absent: they read none there.
std::optional<WeightForm> paged_form(at::ScalarType dtype, at::Device device);

// The least size of a block in which panels are cut.
size_t least_cut_block_bytes(at::ScalarType dtype);

// Bytes of the largest panel of any adapter of a model: in blocks of this size none is cut.
// widest_input: most inputs of a linear that can have adapters.
size_t largest_panel_bytes(int64_t widest_input, int64_t max_rank, at::ScalarType dtype,
                           WeightForm form = WeightForm::kPanels);

}  // namespace valora::ops
