// The implementations of ops/delta/gated_delta.h. The caller has checked the arguments.
#pragma once

#include "ops/delta/gated_delta.h"

namespace valora::ops {

at::Tensor gated_delta_cpu(const DeltaTokens& tokens, const DeltaWeights& weights,
                           const StateArena& states, int64_t layer,
                           std::span<const kernels::QuerySpan> spans,
                           std::span<const StateSpan> state_spans);
at::Tensor gated_delta_cuda(const DeltaTokens& tokens, const DeltaWeights& weights,
                            const StateArena& states, int64_t layer,
                            std::span<const kernels::QuerySpan> spans,
                            std::span<const StateSpan> state_spans, StateSpanTables& tables);

}  // namespace valora::ops
