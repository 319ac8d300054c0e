// For builds without CUDA kernels: ops/device/dispatch.h never selects these functions.
#include "ops/attention/attention_targets.h"
#include "ops/delta/gated_delta_targets.h"
#include "ops/device/dispatch.h"
#include "ops/device/gpu.h"
#include "ops/elementwise/elementwise_targets.h"
#include "ops/linear/linear_targets.h"
#include "ops/lora/lora_profiler.h"
#include "ops/merge/merge_targets.h"
#include "ops/step/step_tables.h"
#include "ops/vocabulary/logit_candidates.h"
#include "ops/vocabulary/vocabulary_targets.h"
#include "ops/weights/weight_cuda.h"

namespace valora::ops {
namespace {

[[noreturn]] void absent() { TORCH_CHECK(false, "this build has no CUDA kernels"); }

}  // namespace

bool has_cuda_kernels() { return false; }
void prepare_gpu() {}
Gpu this_gpu() { return {}; }
std::unique_ptr<LoraProfiler> LoraProfiler::make(at::Device, const Clock&) { return nullptr; }

std::pair<at::Tensor, std::shared_ptr<const kernels::cuda::IntegerMatrix>> pack_integers_cuda(
    const QuantisedTensor&, at::Device) {
  absent();
}
at::Tensor unpack_cuda(const Weight&) { absent(); }

at::Tensor rms_norm_cuda(const at::Tensor&, const at::Tensor&, double, double) { absent(); }
at::Tensor add_rms_norm_cuda(at::Tensor&, const at::Tensor&, const at::Tensor&, double, double) {
  absent();
}
at::Tensor gated_delta_cuda(const DeltaTokens&, const DeltaWeights&, const StateArena&, int64_t,
                            std::span<const kernels::QuerySpan>, std::span<const StateSpan>,
                            StateSpanTables&) {
  absent();
}
at::Tensor quick_gelu_cuda(const at::Tensor&) { absent(); }
void rotate_half_cuda(at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
at::Tensor paged_attention_cuda(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                const RotaryOfStep*, const KvArena&, int64_t,
                                std::span<const QuerySpan>, const AttentionRule&, SpanTables&) {
  absent();
}
std::vector<at::Tensor> project_cuda(const at::Tensor&, const at::Tensor&,
                                     std::span<const ModuleWeight>, const LoraBatch&) {
  absent();
}
at::Tensor gated_cuda(const at::Tensor&, const at::Tensor&, const ModuleWeight&,
                      const ModuleWeight&, const LoraBatch&, Gate) {
  absent();
}
at::Tensor linear_float_cuda(const at::Tensor&, const at::Tensor&, const ModuleWeight&,
                             const LoraBatch&) {
  absent();
}
void merge_cuda(std::span<const Merge>) { absent(); }
at::Tensor gather_rows_cuda(const PlacedMatrix&, const at::Tensor&) { absent(); }
void row_product_cuda(const at::Tensor&, const PlacedMatrix&, int64_t, int64_t, bool,
                      const at::Tensor&) {
  absent();
}

bool LogitCandidates::serves(at::Device) { return false; }
struct LogitCandidates::State {};
LogitCandidates::LogitCandidates() = default;
LogitCandidates::~LogitCandidates() = default;
void LogitCandidates::find(const at::Tensor&, std::span<const kernels::CandidateQuery* const>) {
  absent();
}
kernels::Candidates LogitCandidates::found(size_t) const { absent(); }

bool steps_can_be_captured(const KvArena&, int64_t) { return false; }
std::optional<StepBounds> step_bounds(const KvArena&, int64_t, std::span<const QuerySpan>,
                                      const LoraBatch&, bool) {
  return std::nullopt;
}
struct StepTables::Tables {};
StepTables::StepTables(const KvArena&, const StateArena*, int64_t, int, const StepBounds&,
                       std::shared_ptr<DeviceTables>) {
  absent();
}
StepTables::~StepTables() = default;
void StepTables::set(const at::Tensor&, const at::Tensor&, std::span<const QuerySpan>,
                     std::span<const StateSpan>, const LoraBatch&) {
  absent();
}
const at::Tensor& StepTables::tokens() const { absent(); }
const at::Tensor& StepTables::positions() const { absent(); }
const SpanTables& StepTables::spans() const { absent(); }
const StateSpanTables& StepTables::states() const { absent(); }
std::shared_ptr<const DeviceLoraTables> StepTables::lora() const { absent(); }

}  // namespace valora::ops
