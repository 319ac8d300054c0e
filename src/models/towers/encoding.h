// A pass of a vision tower over images and videos, split into pieces so that the engine can run
// steps in between.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/batch.h"

namespace valora::models {

// How a pass is split. A piece has about `products` multiply-adds, but at least `rows` rows, or it
// would read the weights too often, and at most `most_rows`, to bound the memory of its
// activations. Default: for CPUs, about 10 ms on two cores.
struct PieceSize {
  double products = 1 << 29;
  int64_t rows = 128;
  int64_t most_rows = INT64_MAX;
};
// On a GPU a stage is one piece except for very large images: a few milliseconds, and 250 MB with
// Qwen2.5-VL's tower in bf16.
constexpr PieceSize kGpuPieces{.products = 1e12, .rows = 4096, .most_rows = 8192};
inline PieceSize piece_size(at::Device device) {
  return device.is_cpu() ? PieceSize{} : kGpuPieces;
}

// Pieces depend on the shapes alone, so the result is bit-identical whatever runs between them.
// Errors throw c10::Error or std::bad_alloc and make the encoding unusable. The model, the items'
// inputs and their adapters must stay in place until it is destroyed. It reads no weights that a
// scheduling mode changes (Model::decoder_linears).
class Encoding {
 public:
  // Work on rows, which may be split anywhere and is done in ascending order.
  struct Stage {
    int64_t rows = 0;
    double products = 0;  // multiply-adds per row
    std::function<void(int64_t begin, int64_t end)> run;
  };

  explicit Encoding(PieceSize pieces = {}) : pieces_(pieces) {}
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  void add(Stage stage) {
    left_ += stage.products * static_cast<double>(stage.rows);
    stages_.push_back(std::move(stage));
  }
  // Sets the last step, which returns the embeddings.
  void finish_with(std::function<std::vector<at::Tensor>()> result) { result_ = std::move(result); }

  // Runs the next piece. Call only while !done().
  void advance();
  bool done() const { return stage_ == stages_.size(); }
  // Remaining multiply-adds.
  double left() const { return left_; }
  // Call once, after done(). Returns one [input.tokens, hidden] tensor per item.
  std::vector<at::Tensor> take() { return result_(); }

 private:
  PieceSize pieces_;
  std::vector<Stage> stages_;
  size_t stage_ = 0;
  int64_t part_ = 0;  // next part of the stage
  double left_ = 0;
  std::function<std::vector<at::Tensor>()> result_;
};

// The part of a model that sees: a vision tower with its projector.
class VisionEncoder {
 public:
  virtual ~VisionEncoder() = default;
  // Encodes images and videos together, piece by piece. The items' inputs must outlive the
  // encoding. Throws c10::Error if an item does not fit the tower.
  virtual std::unique_ptr<Encoding> begin(std::vector<VisualItem> items,
                                          PieceSize pieces) const = 0;
};

}  // namespace valora::models
