// The low-rank products of whole rival systems inside this engine's steps (VaLoRA §6.2): what
// S-LoRA, Punica and dLoRA launch after each dense product, on this CPU. Like the contenders in
// atmm_rivals.h, but for the adapters of a running engine. bf16 only.
//
// Each converts an adapter's weights to its own layout on first use and keeps them: adapters must
// not change or be unloaded while one of these is in use.
#pragma once

#include <memory>

#include "ops/lora/low_rank_products.h"

namespace valora::bench {

// S-LoRA §5. For runs of fewer than 16 tokens, as in decode, each token computes fp32 dot products
// with its adapter's rank rows (MBGMV). Longer runs use one static tile of 16 outputs (MBGMM).
std::unique_ptr<ops::LowRankProducts> slora_products();

// Punica's SGMV: one static tile of 64 outputs × 16 rows, reduced to fit the registers. Ranks are
// padded to multiples of 64.
std::unique_ptr<ops::LowRankProducts> punica_products();

// dLoRA: an einsum over the batch's stacked adapters, with ranks padded to the largest one and each
// adapter's tokens padded to the longest run.
std::unique_ptr<ops::LowRankProducts> dlora_products();

}  // namespace valora::bench
