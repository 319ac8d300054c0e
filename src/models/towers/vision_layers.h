// Layers shared by the vision towers.
#pragma once

#include <c10/core/GradMode.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "models/decoder/layers.h"
#include "models/decoder/rotary.h"
#include "models/spec/config_reader.h"
#include "ops/attention/run_attention.h"

namespace valora::models {

// Upper bounds far above any real tower; their products do not overflow.
inline constexpr int64_t kMaxVisionWidth = 1 << 20, kMaxVisionSide = 1 << 10;

// The patch embedding: a convolution whose kernel equals its stride, as a linear over flattened
// patches. kernel: its shape without the output channels.
Linear patch_embedding(Weights& weights, const std::string& name, int64_t width,
                       const std::vector<int64_t>& kernel);

enum class Activation { kQuickGelu, kGelu, kGeluTanh, kSilu };
// Reads an activation by its name in transformers. For others, throws a LoadError that names `key`.
Activation read_activation(const ConfigReader& config, const std::string& key,
                           const std::string& fallback);
at::Tensor activate(const at::Tensor& x, Activation activation);
// activation(gate(x)) · up(x)
at::Tensor gated_by(const at::Tensor& x, const Linear& gate, const Linear& up,
                    Activation activation, const Adaptation& adaptation);
// Multiply-adds per row of these linears together.
double products_of(std::initializer_list<const Linear*> linears);

// Throws LoadError unless width / heads is a multiple of 4, as 2-D rotary positions require.
void check_rotary_heads(const ConfigReader& vision, int64_t width, int64_t heads);

// Rows to be read and then modified in place: a copy while gradients are recorded, because the
// backward pass needs the values read.
inline at::Tensor as_read(const at::Tensor& rows) {
  return c10::GradMode::is_enabled() ? rows.clone() : rows;
}

// The attention of a tower's layers, in two phases: first the queries, keys and values of all rows
// are stored, then rows attend.
class TowerAttention {
 public:
  // Row r attends to the rows of its range [ends[i-1], ends[i]).
  TowerAttention(const std::vector<int64_t>& ends, int64_t heads, int64_t width,
                 at::ScalarType dtype, at::Device device);

  // Stores the next rows, from `begin` on; begin == 0 starts a layer. q, k, v: [rows, heads, dim]
  void keep(int64_t begin, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
  // qkv: [rows, 3 * width], q, k and v concatenated; q and k are rotated in place. rotary: the
  // angles of all rows.
  void store_rotated(int64_t begin, const at::Tensor& qkv, const CosSin& rotary);
  // → [end - begin, width]
  at::Tensor attend(int64_t begin, int64_t end) const {
    return attention_.attend(begin, queries_.slice(0, begin, end));
  }
  double products() const { return products_; }  // multiply-adds per row, mean

 private:
  ops::RunAttention attention_;
  at::Tensor queries_;  // [rows, heads, dim]
  double products_ = 0;
};

// The last stage of the Qwen towers: merges merge² adjacent patches into one token (transformers:
// PatchMerger.mlp).
class PatchMerger {
 public:
  PatchMerger(Weights& weights, const adapters::ModuleTable& modules, const std::string& name);
  // x: [patches, width], after the norm. adaptation: segments counted in merged patches. Returns
  // [patches / merge², out].
  at::Tensor operator()(const at::Tensor& x, const Adaptation& adaptation) const;
  double products() const;  // multiply-adds per merged patch

 private:
  Linear mlp0_, mlp2_;
};
// Appends the two modules of a PatchMerger.
void add_patch_merger_modules(const std::string& name, int64_t width, int64_t merge, int64_t out,
                              std::vector<adapters::Module>& modules);

}  // namespace valora::models
