#include "server/openai/retrieval_prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "api/media_limits.h"
#include "server/openai/fields.h"
#include "server/openai/messages.h"

namespace valora::server {
namespace {

constexpr std::initializer_list<const char*> kRendering = {"mm_processor_kwargs",
                                                           "media_io_kwargs"};

// The wording of Qwen's rerankers, of texts and of pictures.
constexpr const char* kJudge =
    "Judge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".";
constexpr const char* kOfTexts =
    "Given a web search query, retrieve relevant passages that answer the query";
constexpr const char* kOfPictures =
    "Given a search query, retrieve relevant candidates that answer the query.";

ChatMessage message(const char* role, std::vector<ContentPart> parts) {
  return {.role = role, .parts = std::move(parts)};
}

Result<Prompt> finished(ChatPrompt chat, const ItemFields& fields, const RequestLimits& limits) {
  chat.add_generation_prompt = true;
  chat.plain_texts = limits.plain_texts;
  VALORA_CHECK(check_media(chat, limits.media));
  VALORA_CHECK(parse_rendering(fields.rendering, limits, chat));
  return Prompt(std::move(chat));
}

// The text of the prompt that the request or the folder names; empty: none.
Result<std::string> prompt_text(const ItemFields& fields, const EmbeddingRecipe& recipe) {
  const std::string name = fields.prompt_name.value_or(recipe.default_prompt);
  if (name.empty()) return std::string();
  const auto found = std::ranges::find(recipe.prompts, name, [](const auto& p) { return p.first; });
  if (found != recipe.prompts.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, _] : recipe.prompts) names.push_back(known);
  return invalid(recipe.prompts.empty()
                     ? "\"prompt_name\" names a prompt of the model's "
                       "config_sentence_transformers.json, which has none"
                     : fmt::format("\"prompt_name\" must be one of {}", fmt::join(names, ", ")),
                 "prompt_name");
}

Result<Prompt> embedding_prompt(const ContentItem& item, const std::string& prefix,
                                const ItemFields& fields, const EmbeddingRecipe& recipe,
                                const RequestLimits& limits) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&item)) return Prompt(*ids);
  const std::string* text = text_of(item);
  if (text && !fields.instruction) return Prompt(prefix + *text);
  ChatPrompt chat;
  chat.add_special_tokens = fields.add_special_tokens.value_or(recipe.described);
  const std::string system = fields.instruction.value_or(prefix);
  if (!system.empty()) chat.messages.push_back(message("system", {system}));
  chat.messages.push_back(message("user", parts_of(item)));
  return finished(std::move(chat), fields, limits);
}

void append(std::vector<ContentPart>& parts, const ContentItem& item) {
  std::vector<ContentPart> more = parts_of(item);
  std::ranges::move(more, std::back_inserter(parts));
}

std::vector<ContentPart> judged_parts(const std::string& instruction, const ContentItem& query,
                                      const ContentItem& document, bool images) {
  const char *line = images ? "" : "\n", *space = images ? "" : " ";
  std::vector<ContentPart> parts = {
      fmt::format("<Instruct>: {}{}<Query>:{}", instruction, line, space)};
  append(parts, query);
  parts.emplace_back(fmt::format("\n<Document>:{}", space));
  append(parts, document);
  return parts;
}

}  // namespace

Result<ItemFields> parse_item_fields(const Json& body) {
  ItemFields fields;
  VALORA_TRY(instruction, optional_field<std::string>(body, "instruction"));
  VALORA_TRY(prompt_name, optional_field<std::string>(body, "prompt_name"));
  VALORA_TRY(special, optional_field<bool>(body, "add_special_tokens"));
  if (instruction && prompt_name)
    return invalid("give \"instruction\" or \"prompt_name\", not both", "instruction");
  fields.instruction = std::move(instruction);
  fields.prompt_name = std::move(prompt_name);
  fields.add_special_tokens = special;
  fields.rendering = Json::object();
  for (const char* key : kRendering)
    if (!member(body, key).is_null()) fields.rendering[key] = member(body, key);
  return fields;
}

Status check_rendering(const ItemFields& fields, std::initializer_list<ItemList> lists) {
  const auto has_parts = [](const ContentItem& item) {
    return std::holds_alternative<std::vector<ContentPart>>(item);
  };
  for (const ItemList& items : lists)
    if (std::ranges::any_of(items, has_parts)) return {};
  if (fields.rendering.empty()) return {};
  const std::string& field = fields.rendering.begin().key();
  return invalid(fmt::format("\"{}\" needs pictures", field), field);
}

Result<std::vector<Prompt>> embedding_prompts(const std::vector<ContentItem>& items,
                                              const ItemFields& fields,
                                              const EmbeddingRecipe& recipe,
                                              const RequestLimits& limits) {
  VALORA_TRY(prefix, prompt_text(fields, recipe));
  std::vector<Prompt> prompts;
  for (const ContentItem& item : items) {
    VALORA_TRY(prompt, embedding_prompt(item, prefix, fields, recipe, limits));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<Prompt> judge_prompt(const ContentItem& query, const ContentItem& document,
                            const ItemFields& fields, const JudgeRecipe& recipe, bool images,
                            const RequestLimits& limits) {
  if (fields.prompt_name)
    return invalid("\"prompt_name\" is for embeddings; a reranker takes an \"instruction\"",
                   "prompt_name");
  ChatPrompt chat;
  chat.add_special_tokens = fields.add_special_tokens.value_or(false);
  chat.template_hints = {{"enable_thinking", false}};
  const std::string instruction = fields.instruction.value_or(recipe.instruction);
  if (recipe.own_roles) {
    chat.chat_template = recipe.chat_template;
    if (!instruction.empty()) chat.messages.push_back(message("system", {instruction}));
    chat.messages.push_back(message("query", parts_of(query)));
    chat.messages.push_back(message("document", parts_of(document)));
  } else {
    const std::string& asked =
        instruction.empty() ? (images ? kOfPictures : kOfTexts) : instruction;
    chat.messages.push_back(message("system", {std::string(kJudge)}));
    chat.messages.push_back(message("user", judged_parts(asked, query, document, images)));
  }
  return finished(std::move(chat), fields, limits);
}

}  // namespace valora::server
