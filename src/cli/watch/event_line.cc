#include "cli/watch/event_line.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "base/text/percent.h"
#include "base/text/visible_text.h"

namespace valora::cli {
namespace {

namespace fs = std::filesystem;

std::string text_at(const OrderedJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return visible(found->is_string() ? found->get<std::string>() : found->dump());
}

std::string time_of(const OrderedJson& event) {
  const auto found = event.find("time");
  const double time = found != event.end() && found->is_number() ? found->get<double>() : 0;
  return fmt::format("{:%H:%M:%S}", fmt::localtime(static_cast<std::time_t>(time)));
}

std::string error_text(const OrderedJson& error) {
  return "error: " + (error.is_object() ? text_at(error, "message") : visible(error.dump()));
}

std::string answer_text(const OrderedJson& answer) {
  if (!answer.is_object()) return {};
  if (answer.contains("error")) return error_text(answer["error"]);
  const auto score = answer.find("score");
  return text_at(answer, "content") + (score != answer.end() && score->is_number()
                                           ? fmt::format(" ({:.2f})", score->get<double>())
                                           : "");
}

std::string answers_text(const OrderedJson& event) {
  if (event.contains("error")) return error_text(event["error"]);
  std::string out;
  const auto answers = event.find("answers");
  if (answers == event.end() || !answers->is_object()) return out;
  for (const auto& [skill, answer] : answers->items())
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", visible(skill), answer_text(answer));
  return out;
}

}  // namespace

std::string event_line(const OrderedJson& event) {
  const std::string type = text_at(event, "type"), begin = time_of(event) + " " + type;
  if (type == "answers")
    return fmt::format("{} frame {}: {}", begin, text_at(event, "frame"), answers_text(event));
  if (type == "start" || type == "end")
    return fmt::format("{} {}, frame {}: {}", begin, text_at(event, "skill"),
                       text_at(event, "frame"),
                       event.contains("answer") ? answer_text(event["answer"]) : "");
  const std::string reason = text_at(event, "reason");
  return fmt::format("{} {}{}{}", begin, text_at(event, "state"), reason.empty() ? "" : ": ",
                     reason);
}

std::string source_url(const std::string& source) {
  std::error_code fault;
  if (source.find("://") != source.npos || source == "push" || !fs::is_regular_file(source, fault))
    return source;
  return "file://" + percent_encoded(fs::absolute(source).lexically_normal().string(), "/");
}

}  // namespace valora::cli
