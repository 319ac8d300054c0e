// Adapters in the form that projections read: per adapter the modules that it touches, found when
// it is loaded, and a segment table per step, read by every layer.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/types/lora.h"
#include "kernels/types/lora_module_map.h"
#include "ops/weights/panel_layout.h"
#include "ops/weights/weight.h"

namespace valora::ops {

struct DeviceAdapter;     // ops/lora/lora_cuda.cc
struct DeviceOutputs;     // ops/lora/outputs_cuda.cc
struct DeviceLoraTables;  // ops/lora/lora_cuda.cc

// One adapter on one linear.
struct LoraWeight {
  Weight a;  // [rank, in]
  Weight b;  // [out, rank]
};

// How an adapter changes a linear's output y, after its low-rank product has been added:
// gain · (y - bias) + bias + shift. In host memory.
struct OutputChange {
  at::Tensor shift;  // float [out]; undefined: none
  at::Tensor gain;   // float [out]; undefined: 1
};

// The weights of one adapter, indexed by the model's modules, in one of two forms. The owning form
// holds tensors. The paged form reads panels from blocks of a memory pool while the adapter is
// resident there.
class AdapterWeights {
 public:
  AdapterWeights() = default;
  // modules: the number of modules of the model. Initially the adapter touches none of them.
  explicit AdapterWeights(size_t modules) : modules_(modules) {}
  // The paged form, for the layout's modules. Not resident before place().
  AdapterWeights(size_t modules, PanelLayout layout);
  // Move-only: entries may point into the object's vectors.
  AdapterWeights(AdapterWeights&&) = default;
  AdapterWeights& operator=(AdapterWeights&&) = default;

  // Sets a module's weight. scale: e.g. alpha / rank. All weights of an adapter must have the same
  // layout and dtype. Owning form only.
  void set(int module, LoraWeight weight, float scale);
  // Sets a module's output change, in either form. The adapter owns that memory.
  void set_output(int module, OutputChange change);
  // Moves the panels into one allocation (ops/weights/pack_contiguous.h). Call before the adapter
  // is used.
  void pack_contiguous();

  // Paged form only: the panels are now in these blocks. blocks: the addresses of the layout's
  // blocks, 64-byte aligned. Neither place() nor unplace() may be called while a LoraBatch or a
  // merge reads the weights.
  void place(std::span<std::byte* const> blocks);
  // The panels are no longer in memory.
  void unplace();
  // True if the panels can be read. Always true in the owning form, and if no module is touched.
  bool resident() const { return !layout_ || placed_ || layout_->blocks() == 0; }
  // Null in the owning form.
  const PanelLayout* layout() const { return layout_ ? &*layout_ : nullptr; }

  bool touches(int module) const { return modules_.find(module) != nullptr; }
  // The tensors of the owning form; null if the adapter does not touch the module, or is paged.
  const LoraWeight* find(int module) const {
    const auto it = weights_.find(module);
    return it == weights_.end() ? nullptr : &it->second;
  }
  // The module as the kernels read it; null if the adapter does not touch it. Without panels if the
  // weights are plain or not resident.
  const kernels::LoraModule* module(int module) const { return modules_.find(module); }
  kernels::LoraModules modules() const { return modules_.view(); }
  size_t model_modules() const { return modules_.model_modules(); }
  // One bit per module: set if the adapter touches it.
  std::span<const uint64_t> touched() const { return modules_.touched(); }
  // One bit per module: set if the adapter changes its output. Empty if it changes none.
  std::span<const uint64_t> changed() const { return changed_; }
  // Null if there is none.
  const OutputChange* output(int module) const {
    const auto it = outputs_.find(module);
    return it == outputs_.end() ? nullptr : &it->second;
  }
  const std::map<int, OutputChange>& outputs() const { return outputs_; }
  // The format of all weights; absent if no module is touched.
  std::optional<WeightFormat> format() const { return format_; }
  int64_t max_rank() const { return max_rank_; }  // over its modules; 0 if none is touched
  // The addresses of layout()->pieces() while the adapter is placed.
  std::span<const void* const> pieces() const { return pieces_; }
  // The table read by GPU kernels, which build it on first use.
  std::shared_ptr<const DeviceAdapter>& on_device() const { return on_device_; }
  // The output changes on a GPU, copied on first use and kept until unplace().
  std::shared_ptr<const DeviceOutputs>& outputs_on_device() const { return outputs_on_device_; }

 private:
  void check_module(int module) const;
  kernels::LoraModule& touch(int module);

  std::map<int, LoraWeight> weights_;  // empty in the paged form
  kernels::LoraModuleMap modules_;
  std::vector<uint64_t> changed_;
  std::map<int, OutputChange> outputs_;
  std::optional<WeightFormat> format_;
  std::optional<PanelLayout> layout_;
  std::vector<const void*> pieces_;  // the addresses of layout_->pieces(), for the kernels
  bool placed_ = false;
  int64_t max_rank_ = 0;
  mutable std::shared_ptr<const DeviceAdapter> on_device_;
  mutable std::shared_ptr<const DeviceOutputs> outputs_on_device_;
};

// An adapter and a coefficient on its scales.
struct ScaledAdapter {
  const AdapterWeights* adapter = nullptr;
  float coefficient = 1;
};

// Dropout on the inputs of low-rank products, for training only. Kept values are multiplied by 1 /
// (1 - probability). The mask depends only on the seed, so recomputation drops the same values.
// Each product derives its own seed.
struct Dropout {
  double probability = 0;
  uint64_t seed = 0;
};

// An adapter's output changes for tokens [token_begin, token_end). The coefficient multiplies the
// shift.
struct OutputSegment {
  int64_t token_begin = 0;
  int64_t token_end = 0;
  const AdapterWeights* adapter = nullptr;
  float coefficient = 1;
};

// The adapters of a flat batch's tokens. The adapters must outlive it and not change.
class LoraBatch {
 public:
  // Applies `adapter` to tokens [token_begin, token_end). If several segments cover a token, their
  // products are summed. A preceding segment with the same adapter and coefficient that ends at
  // token_begin is extended. Throws c10::Error if the range is invalid, if the adapter's model,
  // layout or dtype differs from the others', or if the adapter is not resident.
  void add(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
           float coefficient);
  // Applies the adapter's output changes, if it has any. They are separate from segments because
  // they stay outside the weights when the adapter is merged.
  void add_outputs(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
                   float coefficient);
  void set_dropout(const Dropout& dropout) { dropout_ = dropout; }
  // The adapters of tokens [begin, end), renumbered to [0, end - begin). Without dropout. What this
  // batch touches and changes counts as touched and changed there. Throws c10::Error if one of them
  // is no longer resident.
  LoraBatch part(int64_t begin, int64_t end) const;
  // The adapters of these tokens, in ascending order, renumbered to [0, tokens.size()). Throws as
  // part().
  LoraBatch of_tokens(std::span<const int64_t> tokens) const;

  std::span<const kernels::LoraSegment> segments() const { return segments_; }
  const AdapterWeights& adapter(size_t segment) const { return *adapters_[segment]; }
  std::span<const OutputSegment> outputs() const { return outputs_; }
  // True if an adapter changes the outputs of the module. False for -1.
  bool changes_output(int module) const { return has(changed(), module); }
  const Dropout& dropout() const { return dropout_; }
  // True if any adapter touches the module. False for -1.
  bool touches(int module) const { return has(touched(), module); }
  // One bit per module that any adapter touches; empty without adapters.
  std::span<const uint64_t> touched() const { return words_of(touched_); }
  // One bit per module whose output any adapter changes.
  std::span<const uint64_t> changed() const { return words_of(changed_); }
  // Also counts these modules as touched, or changed. This changes no result, only which launches a
  // GPU runs.
  void also_touch(std::span<const uint64_t> modules) { include(touched_, modules); }
  void also_change(std::span<const uint64_t> modules) { include(changed_, modules); }
  // The largest token_end of any segment.
  int64_t token_end() const { return token_end_; }
  // The format of all adapters' weights; absent if no module is touched.
  std::optional<WeightFormat> format() const { return format_; }
  // The tables read by GPU kernels, which build them on first use.
  std::shared_ptr<const DeviceLoraTables>& on_device() const { return on_device_; }

 private:
  // One bit per module. Parts of a batch share it, so that they do not cost a word per 64 modules.
  using Bits = std::shared_ptr<std::vector<uint64_t>>;

  static std::span<const uint64_t> words_of(const Bits& bits) {
    return bits ? std::span<const uint64_t>(*bits) : std::span<const uint64_t>();
  }
  static void include(Bits& bits, std::span<const uint64_t> more);
  // As add() and add_outputs(), but count no modules.
  void add_segment(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
                   float coefficient);
  void add_output_segment(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
                          float coefficient);
  // The adapters of the tokens that place(token), which is monotonic, numbers from 0 on: those of
  // [begin, end) are [place(begin), place(end)).
  template <typename Place>
  LoraBatch renumbered(const Place& place) const;
  static bool has(std::span<const uint64_t> bits, int module) {
    return module >= 0 && static_cast<size_t>(module) < 64 * bits.size() &&
           (bits[module / 64] >> (module % 64) & 1) != 0;
  }

  std::vector<kernels::LoraSegment> segments_;
  std::vector<const AdapterWeights*> adapters_;  // per segment
  std::vector<OutputSegment> outputs_;
  // The modules that any adapter touches, or whose output it changes. Null: none.
  Bits touched_, changed_;
  std::optional<WeightFormat> format_;
  int64_t token_end_ = 0;
  Dropout dropout_;
  mutable std::shared_ptr<const DeviceLoraTables> on_device_;
};

}  // namespace valora::ops
