// Adapters in the form that projections read: a module table per adapter, built when it is loaded,
// and a segment table per step, which every layer reads.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/types/lora.h"
#include "ops/panel_layout.h"
#include "ops/weight.h"

namespace valora::ops {

struct DeviceAdapter;     // ops/lora_cuda.cc
struct DeviceLoraTables;  // ops/lora_cuda.cc

// One adapter on one linear.
struct LoraWeight {
  Weight a;  // [rank, in]
  Weight b;  // [out, rank]
};

// What an adapter makes of a linear's output beside its low-rank product:
// gain · (y - bias) + bias + shift, where y includes that product. CPUs only.
struct OutputChange {
  at::Tensor shift;  // float [out]; undefined: none
  at::Tensor gain;   // float [out]; undefined: 1
};

// The weights of one adapter by module index of the model, in one of two forms. The owning form
// holds tensors. The paged form reads panels in blocks of a memory pool while it is resident there.
class AdapterWeights {
 public:
  AdapterWeights() = default;
  // modules: number of modules of the model. Initially the adapter touches none.
  explicit AdapterWeights(size_t modules)
      : weights_(modules), table_(modules), touched_((modules + 63) / 64) {}
  // The paged form, on the modules of the layout. Not resident before place().
  AdapterWeights(size_t modules, PanelLayout layout);
  // The table may point into the object.
  AdapterWeights(AdapterWeights&&) = default;
  AdapterWeights& operator=(AdapterWeights&&) = default;

  // scale: e.g. alpha / rank. All weights of an adapter must have the same layout and dtype.
  // Owning form only.
  void set(int module, LoraWeight weight, float scale);
  // Either form. The memory is the adapter's own.
  void set_output(int module, OutputChange change);
  // Moves the panels into one allocation (ops/pack_contiguous.h). Call it before the adapter is
  // used.
  void pack_contiguous();

  // Paged form only: the panels lie in these blocks from now on. blocks: the addresses of the
  // layout's blocks, 64-byte aligned. Neither place() nor unplace() may be called while a
  // LoraBatch or a merge reads the table.
  void place(std::span<std::byte* const> blocks);
  // The panels are in no memory from now on.
  void unplace();
  // Whether the panels can be read. Always true in the owning form, and if no module is touched.
  bool resident() const { return !layout_ || placed_ || layout_->blocks() == 0; }
  // Null in the owning form.
  const PanelLayout* layout() const { return layout_ ? &*layout_ : nullptr; }

  bool touches(int module) const { return table_[module].rank > 0; }
  // The tensors of the owning form; null if the adapter does not touch the module, or is paged.
  const LoraWeight* find(int module) const {
    return !layout_ && weights_[module] ? &*weights_[module] : nullptr;
  }
  float scale(int module) const { return table_[module].scale; }
  // The table for the kernels, one entry per module. It has no panels if the weights are plain or
  // not resident.
  std::span<const kernels::LoraModule> table() const { return table_; }
  // One bit per module: whether the adapter touches it.
  std::span<const uint64_t> touched() const { return touched_; }
  // Null if there is none.
  const OutputChange* output(int module) const {
    const auto it = outputs_.find(module);
    return it == outputs_.end() ? nullptr : &it->second;
  }
  const std::map<int, OutputChange>& outputs() const { return outputs_; }
  // Of all weights; absent if no module is touched.
  std::optional<WeightFormat> format() const { return format_; }
  int64_t max_rank() const { return max_rank_; }  // of its modules; 0 if none is touched
  // The addresses of layout()->pieces() while the adapter is placed.
  std::span<const void* const> pieces() const { return pieces_; }
  // The table that the kernels of a GPU read. They make it when it is first needed.
  std::shared_ptr<const DeviceAdapter>& on_device() const { return on_device_; }

 private:
  kernels::LoraModule& touch(int module);

  std::vector<std::optional<LoraWeight>> weights_;  // empty in the paged form
  std::vector<kernels::LoraModule> table_;
  std::vector<uint64_t> touched_;
  std::map<int, OutputChange> outputs_;
  std::optional<WeightFormat> format_;
  std::optional<PanelLayout> layout_;
  std::vector<const void*> pieces_;  // the addresses of layout_->pieces(), for the table
  bool placed_ = false;
  int64_t max_rank_ = 0;
  mutable std::shared_ptr<const DeviceAdapter> on_device_;
};

// An adapter with a coefficient that multiplies its scales.
struct ScaledAdapter {
  const AdapterWeights* adapter = nullptr;
  float coefficient = 1;
};

// Dropout on the inputs of low-rank products, for training only. Kept values are multiplied by
// 1 / (1 - probability). The mask depends only on the seed, so recomputation drops the same values.
// Each product derives its own seed.
struct Dropout {
  double probability = 0;
  uint64_t seed = 0;
};

// The changes of outputs of an adapter, on tokens [token_begin, token_end). The coefficient
// multiplies the shift.
struct OutputSegment {
  int64_t token_begin = 0;
  int64_t token_end = 0;
  const AdapterWeights* adapter = nullptr;
  float coefficient = 1;
};

// The adapters of the tokens of one flat batch. The adapters must outlive it and not change.
class LoraBatch {
 public:
  // Applies `adapter` to tokens [token_begin, token_end). If several segments cover a token, their
  // products are summed. A segment of the same adapter and coefficient that ends at token_begin is
  // extended. Throws c10::Error if the range is invalid, if the adapter's model, layout or dtype
  // differs from the others', or if the adapter is not resident.
  void add(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
           float coefficient);
  // The adapter's changes of outputs, which no segment has: they stay outside the weights when the
  // adapter is merged into them. Nothing if it has none.
  void add_outputs(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
                   float coefficient);
  void set_dropout(const Dropout& dropout) { dropout_ = dropout; }
  // The adapters of tokens [begin, end), which become tokens [0, end - begin). Without dropout.
  // Throws c10::Error if one of them is not resident any more.
  LoraBatch part(int64_t begin, int64_t end) const;

  std::span<const kernels::LoraSegment> segments() const { return segments_; }
  const AdapterWeights& adapter(size_t segment) const { return *adapters_[segment]; }
  std::span<const OutputSegment> outputs() const { return outputs_; }
  // Whether an adapter changes the outputs of the module. False for -1.
  bool changes_output(int module) const {
    for (const OutputSegment& segment : outputs_)
      if (segment.adapter->output(module)) return true;
    return false;
  }
  const Dropout& dropout() const { return dropout_; }
  // Whether any adapter touches the module. False for -1.
  bool touches(int module) const {
    return module >= 0 && static_cast<size_t>(module) < 64 * touched_.size() &&
           (touched_[module / 64] >> (module % 64) & 1) != 0;
  }
  // One bit per module that any adapter touches; empty without adapters.
  std::span<const uint64_t> touched() const { return touched_; }
  // Counts these modules as touched as well. It changes no result, but which launches a GPU runs.
  void also_touch(std::span<const uint64_t> modules);
  // The largest token_end of all segments.
  int64_t token_end() const { return token_end_; }
  // Of all adapters' weights; absent if no module is touched.
  std::optional<WeightFormat> format() const { return format_; }
  // The tables that the kernels of a GPU read. They make them when they are first needed.
  std::shared_ptr<const DeviceLoraTables>& on_device() const { return on_device_; }

 private:
  std::vector<kernels::LoraSegment> segments_;
  std::vector<const AdapterWeights*> adapters_;  // per segment
  std::vector<OutputSegment> outputs_;
  std::vector<uint64_t> touched_;  // one bit per module: touched by any adapter
  std::optional<WeightFormat> format_;
  int64_t token_end_ = 0;
  Dropout dropout_;
  mutable std::shared_ptr<const DeviceLoraTables> on_device_;
};

}  // namespace valora::ops
