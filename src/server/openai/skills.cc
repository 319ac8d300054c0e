#include "server/openai/skills.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json/parse_ordered.h"
#include "server/openai/fields.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

constexpr size_t kMaxSkills = 64;
// Fields that a skill may have besides its names and its question, in the place of the request's.
constexpr std::array kOwnFields{"allowed_token_ids",
                                "bad_words",
                                "chat_template_kwargs",
                                "guided_choice",
                                "guided_json",
                                "head",
                                "logit_bias",
                                "logprobs",
                                "lora",
                                "max_tokens",
                                "max_completion_tokens",
                                "min_p",
                                "min_tokens",
                                "response_format",
                                "seed",
                                "stop",
                                "stop_token_ids",
                                "structured_outputs",
                                "temperature",
                                "top_k",
                                "top_logprobs",
                                "top_p"};
// Fields of the request that its skills do not take over.
constexpr std::array kOfTheWhole{"skills", "model", "messages", "stream",
                                 "image",  "video", "prompt",   "stream_options"};

// What a request says for all skills: the text of its fields, in their order, and what was parsed.
struct Shared {
  OrderedJson fields;
  ChatPrompt conversation;
};

Result<std::string> text_in(const OrderedJson& skill, const char* key, const std::string& path) {
  const auto value = skill.find(key);
  if (value == skill.end() || value->is_null()) return std::string();
  if (!value->is_string() || value->get_ref<const std::string&>().empty())
    return invalid(fmt::format("\"{}.{}\" must be a text", path, key), path + "." + key);
  return value->get<std::string>();
}

Status check_own_fields(const OrderedJson& skill, const std::string& path) {
  for (const auto& [key, value] : skill.items()) {
    if (key == "name" || key == "model" || key == "question" ||
        std::ranges::find(kOwnFields, key) != kOwnFields.end())
      continue;
    return invalid(fmt::format("\"{}.{}\": a skill cannot have this field; send it for the whole "
                               "request",
                               path, key),
                   path + "." + key);
  }
  return {};
}

// An error of the skill's body, with the path of the field if it is the skill's own.
Error in_skill(Error error, const OrderedJson& skill, const std::string& path) {
  if (!skill.is_object() || !skill.contains(error.param.substr(0, error.param.find('.'))))
    return error;
  error.message = fmt::format("{}: {}", path, error.message);
  error.param = path + "." + error.param;
  return error;
}

Result<Skill> parse_skill(const OrderedJson& skill, const std::string& path, const Shared& shared,
                          const RequestLimits& limits) {
  if (!skill.is_object() && (!skill.is_string() || skill.get_ref<const std::string&>().empty()))
    return invalid(
        fmt::format("\"{}\" must be the name of a model, or an object with \"model\"", path), path);
  Skill out;
  OrderedJson body = shared.fields;
  if (skill.is_string()) {
    out.name = skill.get<std::string>();
    body["model"] = out.name;
  } else {
    VALORA_CHECK(check_own_fields(skill, path));
    VALORA_TRY(model, text_in(skill, "model", path));
    VALORA_TRY(name, text_in(skill, "name", path));
    VALORA_TRY(question, text_in(skill, "question", path));
    if (model.empty())
      return invalid(fmt::format("\"{}.model\" is missing", path), path + ".model");
    out.name = name.empty() ? model : name;
    if (!question.empty()) out.question = std::move(question);
    body.update(skill);
    body.erase("name");
    body.erase("question");
  }
  const std::string text = to_text(body);
  auto parsed = parse_chat_body(Json::parse(text), text, limits, shared.conversation);
  if (!parsed.ok()) return in_skill(parsed.error(), skill, path);
  out.body = std::move(*parsed);
  return out;
}

Status check_distinct(const std::vector<Skill>& skills) {
  for (size_t i = 0; i < skills.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (skills[i].name == skills[k].name)
        return invalid(fmt::format("\"skills[{}]\" has the name of skills[{}]; give it a "
                                   "\"name\" of its own",
                                   i, k),
                       fmt::format("skills[{}]", i));
  return {};
}

// body, text: a chat with the field "skills", which is not null.
Result<SkillsBody> parse_body_of_skills(Json body, std::string_view text,
                                        const RequestLimits& limits) {
  SkillsBody out;
  OrderedJson ordered = parse_ordered(text);
  const OrderedJson skills = std::move(ordered["skills"]);
  if (!skills.is_array() || skills.empty() || skills.size() > kMaxSkills)
    return invalid(fmt::format("\"skills\" must be a list of 1 to {} models", kMaxSkills),
                   "skills");
  for (const char* field : kOfTheWhole) ordered.erase(field);
  body.erase("skills");
  // The request as a whole, so that its own errors are told once and without a skill.
  VALORA_TRY(whole, parse_chat_body(std::move(body), to_text(ordered), limits));
  out.model = whole.target.model;
  out.stream = whole.stream;
  const Shared shared{std::move(ordered), std::get<ChatPrompt>(std::move(whole.prompts[0]))};
  for (const OrderedJson& skill : skills) {
    const std::string path = fmt::format("skills[{}]", out.skills.size());
    VALORA_TRY(parsed, parse_skill(skill, path, shared, limits));
    out.skills.push_back(std::move(parsed));
  }
  VALORA_CHECK(check_distinct(out.skills));
  return out;
}

// Moves the media of `key`, a URL or a list of them, to a message's parts.
Status take_media(Json& body, const char* key, Json& parts) {
  const auto found = body.find(key);
  if (found == body.end() || found->is_null()) return {};
  Json urls = std::move(*found);
  body.erase(found);
  if (!urls.is_array()) urls = Json::array({std::move(urls)});
  const std::string type = std::string(key) + "_url";
  for (Json& url : urls) {
    if (!url.is_string())
      return invalid(fmt::format("\"{}\" must be a URL or a list of URLs", key), key);
    parts.push_back({{"type", type}, {type, {{"url", std::move(url)}}}});
  }
  return {};
}

const ChatMessage* last_message(const ChatPrompt& conversation) {
  return conversation.messages.empty() ? nullptr : &conversation.messages.back();
}

}  // namespace

Result<std::optional<SkillsBody>> parse_skills(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, parse_body(text));
  if (member(body, "skills").is_null()) return std::optional<SkillsBody>();
  VALORA_CHECK(check_integers_of(text, {"tools", "chat_template_kwargs"}));
  VALORA_TRY(out, parse_body_of_skills(std::move(body), text, limits));
  return std::optional(std::move(out));
}

Result<SkillsBody> parse_analyze(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, parse_body(text));
  if (!member(body, "messages").is_null())
    return invalid("\"messages\" belongs to /v1/chat/completions; send \"image\" or \"video\"",
                   "messages");
  if (member(body, "skills").is_null()) return invalid("\"skills\" is missing", "skills");
  Json parts = Json::array();
  VALORA_CHECK(take_media(body, "image", parts));
  VALORA_CHECK(take_media(body, "video", parts));
  if (parts.empty()) return invalid("\"image\" or \"video\" is missing", "image");
  const Json& prompt = member(body, "prompt");
  if (!prompt.is_null() && !prompt.is_string())
    return invalid("\"prompt\" must be a text", "prompt");
  if (prompt.is_string()) parts.push_back({{"type", "text"}, {"text", prompt}});
  body.erase("prompt");
  body["messages"] = Json::array({{{"role", "user"}, {"content", std::move(parts)}}});
  return parse_body_of_skills(std::move(body), text, limits);
}

bool has_question(const ChatPrompt& conversation) {
  const ChatMessage* last = last_message(conversation);
  return last && std::ranges::any_of(last->parts, [](const ContentPart& part) {
           const auto* text = std::get_if<std::string>(&part);
           return text && !text->empty();
         });
}

Status ask_question(ChatPrompt& conversation, const std::optional<std::string>& question) {
  if (!question) {
    if (has_question(conversation)) return {};
    return invalid("neither the request nor the model has a question; send \"question\"", "skills");
  }
  if (conversation.messages.empty() || conversation.messages.back().role != "user")
    return invalid("a skill's question needs a last message of the user", "messages");
  conversation.messages.back().parts.emplace_back(*question);
  return {};
}

}  // namespace valora::server
