// How a model's states become embeddings, and its judgements scores of pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace valora {

// Embeddings, as the folder of the model describes them (sentence-transformers' modules).
struct EmbeddingRecipe {
  enum class Pooling { kLastToken, kMean };
  Pooling pooling = Pooling::kLastToken;
  // Sizes to which an embedding may be cut (Matryoshka), ascending. With `any_size`, all up to the
  // model's own.
  std::vector<int64_t> sizes;
  bool any_size = false;
  // Texts that are put before an input, by their names.
  std::vector<std::pair<std::string, std::string>> prompts;
  std::string default_prompt;  // the name of one of them; empty: none
  // The folder says that the model is for embeddings: scores of pairs are cosines, and
  // conversations get the tokenizer's special tokens.
  bool described = false;
  std::string refusal = {};  // why the folder's embeddings cannot be computed; empty: they can
};

// Scores of pairs by a model that answers with one of two tokens.
struct JudgeRecipe {
  int32_t yes = 0, no = 0;  // token ids
  // A Jinja template over messages of the roles system (the instruction), query and document.
  // Empty: the model's own template, with the roles if `own_roles`, else in the wording of Qwen's
  // rerankers.
  std::string chat_template;
  bool own_roles = false;
  std::string instruction;  // where requests give none; empty: the template's
  bool described = false;   // the folder says that the model is a reranker
};

struct RetrievalCard {
  EmbeddingRecipe embedding;
  std::optional<JudgeRecipe> judge;  // absent: "yes" and "no" are not tokens
};

}  // namespace valora
