// Where an adapter's panels are placed in the blocks of a memory pool shared with the KV cache
// (S-LoRA §4, unified paging). Kernels read them in place (kernels/types/lora.h). In the plain
// form, for GPUs, a panel is kPlainPanelRows rows, row-major.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/tensors/safetensors.h"
#include "kernels/types/forms.h"

namespace valora::ops {

using kernels::WeightForm;

inline constexpr int64_t kPlainPanelRows = 16;

// An adapter's A, [rank, in], and B, [out, rank], on one module of the model.
struct LoraShape {
  int module = 0;
  int64_t rank = 0, in = 0, out = 0;
  float scale = 1;  // e.g. alpha / rank
};

// Each factor (A or B) is one piece, a run of adjacent panels within one block, in the first block
// with room. A factor larger than a block is divided into pieces of equally many panels; the last
// one may be shorter. A panel of A larger than a block is itself cut into runs of inputs, except in
// the plain form. Pieces begin 64-byte aligned if the blocks do, and do not overlap. Any two blocks
// together hold more bytes than fit into one.
class PanelLayout {
 public:
  struct Piece {
    int32_t block = 0;  // 0 … blocks() - 1
    size_t offset = 0;  // in bytes, from the start of the block
  };
  // An [n, k] matrix: piece i of pieces(factor) holds panels [i * panels_per_piece, (i + 1) *
  // panels_per_piece). If panels are cut, see inputs_per_piece in kernels/types/lora.h.
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
  // dtype: of the panels: float, bf16, or in the plain form also fp16. block_bytes: a multiple of
  // 64. kUnprocessable, with the bytes in the message, if a panel that cannot be cut is larger than
  // a block, or a block is smaller than least_cut_block_bytes(). Throws c10::Error if a size is not
  // positive.
  static Result<PanelLayout> make(std::span<const LoraShape> shapes, at::ScalarType dtype,
                                  size_t block_bytes, WeightForm form = WeightForm::kPanels);

  // The layout of a single [n, k] matrix rather than an adapter. Errors: those of make().
  static Result<PanelLayout> of_matrix(int64_t n, int64_t k, at::ScalarType dtype,
                                       size_t block_bytes, WeightForm form);

  at::ScalarType dtype() const { return dtype_; }
  WeightForm form() const { return form_; }
  int32_t blocks() const { return blocks_; }
  size_t block_bytes() const { return block_bytes_; }
  // Bytes of all panels, excluding unused ends of blocks.
  size_t bytes() const { return bytes_; }
  // In the order of the shapes given to make().
  std::span<const Module> modules() const { return modules_; }
  // The factor of of_matrix().
  const Factor& matrix() const { return matrix_; }
  // The pieces of all factors. Each factor's pieces are consecutive.
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const Piece> pieces(const Factor& factor) const {
    return pieces().subspan(factor.first_piece, factor.piece_count);
  }

  // Packs the values of modules()[index] into the blocks, rounded to dtype() as ATen rounds. a:
  // [rank, in], b: [out, rank], in F32, F16 or BF16, aligned or not. blocks: the addresses of the
  // blocks(), in host memory, 64-byte aligned. Runs on the calling thread, which may be any thread,
  // and needs memory for a few panels. Throws c10::Error if shapes, dtypes or the number of blocks
  // do not match.
  void write(size_t index, const TensorView& a, const TensorView& b,
             std::span<std::byte* const> blocks) const;
  // The same for rows of matrix() starting at `first`, a multiple of kPlainPanelRows. rows: [m, k],
  // where m is also such a multiple, or all remaining rows.
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

// The form in which kernels read adapters in pool blocks; nullopt if they do not.
std::optional<WeightForm> paged_form(at::ScalarType dtype, at::Device device);

// The smallest block size for which panels may be cut.
size_t least_cut_block_bytes(at::ScalarType dtype);

// Bytes of the largest panel that any adapter of a model can have; blocks of this size need no
// cutting. widest_input: most inputs of a linear that can have adapters.
size_t largest_panel_bytes(int64_t widest_input, int64_t max_rank, at::ScalarType dtype,
                           WeightForm form = WeightForm::kPanels);

}  // namespace valora::ops
