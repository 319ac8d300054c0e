// The low-rank products of whole rival systems, in this engine's steps (VaLoRA §6.2): what S-LoRA,
// Punica and dLoRA launch after each dense product, on this CPU. Like the contenders of
// atmm_rivals.h, but for the adapters of a running engine. bf16 only.
//
// Each converts an adapter's weights to its own layout when it first sees it, and keeps them: the
// adapters must not change or be unloaded while it is in use.
#pragma once

#include <memory>

#include "ops/low_rank_products.h"

namespace valora::bench {

// S-LoRA §5. Runs of fewer than 16 tokens, as in decode: each token computes fp32 dot products with
// the rank rows of its adapter (MBGMV). Longer ones: one static tile of 16 outputs (MBGMM).
std::unique_ptr<ops::LowRankProducts> slora_products();

// Punica's SGMV: one static tile of 64 outputs × 16 rows, reduced to fit the registers. Ranks are
// padded to multiples of 64.
std::unique_ptr<ops::LowRankProducts> punica_products();

// dLoRA: einsum over the stacked adapters of the batch, the ranks padded to the largest one, and
// the tokens of each adapter to the longest run.
std::unique_ptr<ops::LowRankProducts> dlora_products();

}  // namespace valora::bench
