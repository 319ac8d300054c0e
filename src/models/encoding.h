// A run of a vision tower over images and videos, in pieces: the engine runs steps between them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "models/batch.h"

namespace valora::models {

// How a run is cut. A piece has so many multiply-adds, but not fewer rows, or it would read the
// weights too often, and not more than `most_rows`, which bounds the memory of its activations.
// Default: for CPUs, some 10 ms on two cores.
struct PieceSize {
  double products = 1 << 29;
  int64_t rows = 128;
  int64_t most_rows = INT64_MAX;
};
// On a GPU a stage is one piece, but for very large images: some milliseconds, and 250 MB with the
// tower of Qwen2.5-VL in bf16.
constexpr PieceSize kGpuPieces{.products = 1e12, .rows = 4096, .most_rows = 8192};
inline PieceSize piece_size(at::Device device) {
  return device.is_cpu() ? PieceSize{} : kGpuPieces;
}

// The pieces depend on the shapes alone, so the result is the same bit for bit, whatever runs
// between them. Errors throw c10::Error or std::bad_alloc and leave the run unusable. It reads the
// model, the items' inputs and their adapters, which must not move, until it is destroyed. It reads
// no weights that a scheduling mode changes (Model::decoder_linears).
class Encoding {
 public:
  // Work on rows that may be done in any parts, in ascending order.
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
  // The last stage: makes the embeddings.
  void finish_with(std::function<std::vector<at::Tensor>()> result) { result_ = std::move(result); }

  // Runs the next piece. Call it until done().
  void advance();
  bool done() const { return stage_ == stages_.size(); }
  // Multiply-adds that are left.
  double left() const { return left_; }
  // Once, after done(): one [input.tokens, hidden] tensor per item.
  std::vector<at::Tensor> take() { return result_(); }

 private:
  PieceSize pieces_;
  std::vector<Stage> stages_;
  size_t stage_ = 0;
  int64_t part_ = 0;  // of the stage
  double left_ = 0;
  std::function<std::vector<at::Tensor>()> result_;
};

}  // namespace valora::models
