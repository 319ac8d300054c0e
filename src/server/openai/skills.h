// One conversation for several models ("skills"): the field of a chat, and the bodies of
// /v1/analyze (docs/skills.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/openai/requests.h"

namespace valora::server {

struct Skill {
  std::string name;                     // of its answer
  GenerationBody body;                  // whole, with the conversation and without its question
  std::optional<std::string> question;  // that of the request; nullopt: the model's own
};

struct SkillsBody {
  std::vector<Skill> skills;  // their names differ
  std::string model;          // as sent; empty: none
  bool stream = false;
};

// True if a chat's body may have skills; false only if it has none.
inline bool mentions_skills(std::string_view text) { return text.find("\"skills\"") != text.npos; }

// The skills of a chat; nullopt if it has none.
Result<std::optional<SkillsBody>> parse_skills(std::string_view text, const RequestLimits& limits);
Result<SkillsBody> parse_analyze(std::string_view text, const RequestLimits& limits);

// Asks the question at the end of the conversation's last message, after its media. A null
// question leaves it as it is. Errors: there is none, and the message has no text either.
Status ask_question(ChatPrompt& conversation, const std::optional<std::string>& question);
// True if the last message has text.
bool has_question(const ChatPrompt& conversation);

}  // namespace valora::server
