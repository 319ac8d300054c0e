// Reads how a model's folder turns states into embeddings and judgements into scores:
// sentence-transformers' modules.json with the folders that it names, config_sentence_transformers.
// json, additional_chat_templates/reranker.jinja, and vLLM's "is_matryoshka" and
// "matryoshka_dimensions" of config.json.
#pragma once

#include <string>

#include "api/retrieval.h"
#include "base/files/input_folder.h"
#include "base/result.h"
#include "text/tokenizer.h"

namespace valora::serving {

struct TemplateInUse {
  std::string text;    // empty: the model has none
  bool given = false;  // by the options: goes before all of the folder's
};

// size: numbers of an embedding. A folder without these files gets the defaults. Errors name the
// file and the key.
Result<RetrievalCard> read_retrieval(const FolderPath& folder, const text::Tokenizer& tokenizer,
                                     const TemplateInUse& chat_template, int64_t size);

}  // namespace valora::serving
