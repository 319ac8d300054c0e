// Renders chat templates for comparison with jinja2. One JSON object per line on stdin, one answer
// per line on stdout:
//   {"template", "variables": {…}}    → {"rendered"}: the template with any variables
//   {"template", "messages": […], "special_tokens": {…}, "add_generation_prompt",
//    "chat_template_kwargs": {…}, "image_placeholder", "video_placeholder", "tools": "JSON",
//    "continue_final_message"}
//                                     → {"rendered"}: as a chat format, with OpenAI's content parts
//   {"template", "content_use": true} → {"list", "string"}: the forms of content that it accepts
//   {"folder"}                        → {"template", "special_tokens"} of a model folder Errors:
//   {"error"} if rendering fails, {"refused"} if the template is invalid. The clock is fixed at
//   2024-07-26 13:05:09.
#include <ctime>
#include <iostream>

#include "chat_parts.h"
#include "jinja/interpreter.h"
#include "jinja/values/value_json.h"
#include "text/chat/chat_template.h"
#include "text/chat/template_use.h"

namespace valora::text {
namespace {

std::chrono::system_clock::time_point fixed_time() {
  std::tm local{};
  local.tm_year = 124, local.tm_mon = 6, local.tm_mday = 26, local.tm_hour = 13, local.tm_min = 5,
  local.tm_sec = 9;
  local.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(std::mktime(&local));
}

template <typename T>
Json answer_of(const Result<T>& rendered) {
  return rendered.ok() ? Json{{"rendered", *rendered}} : Json{{"error", rendered.error().message}};
}

Json render_alone(const jinja::Template& source, const Json& request) {
  jinja::Runtime runtime;
  runtime.now = fixed_time;
  jinja::Variables variables;
  for (const auto& [name, json] : request.at("variables").items()) {
    auto value = jinja::from_json(runtime.budget, json);
    if (!value.ok()) return {{"error", value.error().message}};
    variables[name] = std::move(*value);
  }
  return answer_of(jinja::render(source, runtime, variables));
}

Json render_chat(const Json& request) {
  ChatTemplateSettings settings;
  settings.special_tokens = request.value("special_tokens", Json::object());
  settings.image_placeholder = request.value("image_placeholder", "");
  settings.video_placeholder = request.value("video_placeholder", "");
  settings.now = fixed_time;
  const auto format =
      make_chat_template(request.at("template").get<std::string>(), "the request", settings);
  if (!format.ok()) return {{"refused", format.error().message}};
  std::vector<ChatMessage> messages;
  for (const Json& message : request.at("messages")) {
    ChatMessage read{message.at("role").get<std::string>(), read_parts(message.at("content"))};
    for (const Json& call : message.value("tool_calls", Json::array()))
      read.tool_calls.push_back(
          {call.at("id"), call.at("function").at("name"),
           OrderedJson::parse(call.at("function").at("arguments").get<std::string>())});
    read.tool_call_id = message.value("tool_call_id", "");
    messages.push_back(std::move(read));
  }
  const std::string tools = request.value("tools", "");
  const Json variables = request.value("chat_template_kwargs", Json());
  const OrderedJson parsed_tools = tools.empty() ? OrderedJson() : OrderedJson::parse(tools);
  if (request.value("continue_final_message", false))
    return answer_of(render_continued(**format, messages, variables, parsed_tools));
  return answer_of((*format)->render(messages, request.value("add_generation_prompt", false),
                                     variables, parsed_tools));
}

Json read_folder(const std::string& dir) {
  const auto found = find_chat_template(dir);
  if (!found.ok()) return {{"error", found.error().message}};
  const auto tokens = read_special_tokens(dir);
  if (!tokens.ok()) return {{"error", tokens.error().message}};
  return {{"template", *found ? Json((*found)->text) : Json()}, {"special_tokens", *tokens}};
}

Json answer(const Json& request) {
  if (request.contains("folder")) return read_folder(request.at("folder"));
  if (request.contains("messages")) return render_chat(request);
  const auto source = jinja::parse(request.at("template").get<std::string>());
  if (!source.ok()) return {{"refused", source.error().message}};
  if (!request.contains("content_use")) return render_alone(*source, request);
  const ContentUse use = find_content_use(*source);
  return {{"list", use.as_list}, {"string", use.as_string}};
}

}  // namespace
}  // namespace valora::text

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << valora::text::answer(valora::Json::parse(line)) << "\n";
    } catch (const std::exception& e) {
      std::cerr << "chat_template_probe: " << e.what() << "\n";
      return 1;
    }
  }
  return 0;
}
