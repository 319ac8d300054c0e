// The kinds of tensors in an adapter file, by name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::adapters {

enum class TensorRole {
  kLoraA,
  kLoraB,
  kLoraBias,    // lora_B's
  kMagnitude,   // DoRA's, [out]
  kEmbeddingA,  // [rank, vocabulary]
  kEmbeddingB,  // [hidden, rank]
  kTokenRows,   // trainable_token_indices
  kWeight,
  kBias,
  kOriginal  // a fully trained module's old weight, which PEFT saves with resized vocabularies
};

constexpr bool is_low_rank(TensorRole role) { return role <= TensorRole::kEmbeddingB; }

struct TensorName {
  TensorRole role;
  std::string module;       // as in the file, without "base_model.model." and wrappers
  bool below_rows = false;  // a weight whose rows trainable_token_indices overrides
};

// Accepts "base_model.model.M.lora_A[.ADAPTER].weight", the same with lora_B,
// "….lora_B[.ADAPTER].bias", "….lora_embedding_A[.ADAPTER]" and _B,
// "….lora_magnitude_vector[.ADAPTER][.weight]", "….token_adapter.trainable_tokens_delta[.ADAPTER]",
// and "base_model.model.M.weight" / ".bias" of a fully saved module, where M may be followed by
// ".base_layer", ".token_adapter.base_layer", ".modules_to_save[.ADAPTER]" or ".original_module";
// "v_head.summary" is the head "v_head". Components added by training wrappers (module., _orig_mod,
// _fsdp_wrapped_module, _checkpoint_wrapped_module) are skipped. kUnprocessable, naming the tensor,
// for every other name.
Result<TensorName> parse_tensor_name(std::string_view name);

}  // namespace valora::adapters
