// Prompts for embeddings and for judgements of pairs.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/request.h"
#include "api/retrieval.h"
#include "base/json/json.h"
#include "base/result.h"
#include "server/openai/content_items.h"
#include "server/openai/messages.h"

namespace valora::server {

// Fields that shape the prompt of an item.
struct ItemFields {
  std::optional<std::string> instruction;  // a system message before the item
  std::optional<std::string> prompt_name;  // of the folder's prompts
  std::optional<bool> add_special_tokens;
  Json rendering;  // the body's settings of media; an object
};
// "instruction", "prompt_name", "add_special_tokens" and the settings of media.
Result<ItemFields> parse_item_fields(const Json& body);

// Settings of media are refused where no item has any.
using ItemList = std::span<const ContentItem>;
Status check_rendering(const ItemFields& fields, std::initializer_list<ItemList> lists);

// A text is preceded by the folder's prompt, if there is one, and stays a text; with an
// instruction, and for pictures, the prompt is a conversation that opens the assistant's turn.
// Errors name the field.
Result<std::vector<Prompt>> embedding_prompts(const std::vector<ContentItem>& items,
                                              const ItemFields& fields,
                                              const EmbeddingRecipe& recipe,
                                              const RequestLimits& limits);

// Whether `document` answers `query`. images: the model takes pictures.
Result<Prompt> judge_prompt(const ContentItem& query, const ContentItem& document,
                            const ItemFields& fields, const JudgeRecipe& recipe, bool images,
                            const RequestLimits& limits);

}  // namespace valora::server
