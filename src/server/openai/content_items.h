// Inputs of endpoints that compare them: texts, token ids, pictures, or several of these together,
// in the forms of OpenAI, vLLM, Jina and Cohere.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/request.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::server {

// A text, token ids, or parts of a message.
using ContentItem = std::variant<std::string, std::vector<int32_t>, std::vector<ContentPart>>;

// A string, which is a picture if it is a data: URL of one; {"text": …}, {"image": URL} or both;
// {"content": [part, …]}; a part of a message. Errors name `path`. Moves strings out of `value`.
Result<ContentItem> parse_item(Json& value, const std::string& path);
// One item or a list of them; for `ids`, also a list of token ids, or of such lists.
Result<std::vector<ContentItem>> parse_items(Json& body, const std::string& key, bool ids);

// The item's text if it is nothing else.
const std::string* text_of(const ContentItem& item);
// As parts of a message; token ids have none.
std::vector<ContentPart> parts_of(const ContentItem& item);

}  // namespace valora::server
