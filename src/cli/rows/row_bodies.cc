#include "cli/rows/row_bodies.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <variant>

#include "base/json/json.h"
#include "base/text/percent.h"
#include "server/batches/batch_lines.h"
#include "server/openai/json_text.h"

namespace valora::cli {
namespace {

OrderedJson media_part(const char* type, const std::string& path) {
  return {{"type", type}, {type, {{"url", file_url_of(path)}}}};
}

server::Row post(std::string name, std::string path, std::string body) {
  return {std::move(name),
          {.method = "POST", .path = std::move(path), .body = std::move(body), .peer = "run:0"}};
}

}  // namespace

std::string file_url_of(const std::string& path) {
  return "file://" + percent_encoded(std::filesystem::absolute(path).string(), "/");
}

server::Row media_row(const MediaRow& row, const RowQuestion& question) {
  OrderedJson content = OrderedJson::array();
  if (!row.image.empty()) content.push_back(media_part("image_url", row.image));
  if (!row.video.empty()) content.push_back(media_part("video_url", row.video));
  const std::string& prompt = row.prompt.empty() ? question.prompt : row.prompt;
  if (!prompt.empty()) content.push_back({{"type", "text"}, {"text", prompt}});
  OrderedJson body = OrderedJson::object();
  if (!question.model.empty()) body["model"] = question.model;
  body["messages"] = {{{"role", "user"}, {"content", std::move(content)}}};
  body["temperature"] = question.temperature;
  if (question.max_tokens) body["max_tokens"] = *question.max_tokens;
  if (question.seed) body["seed"] = *question.seed;
  if (question.answers != AnswerKind::kText)
    body["response_format"] = {
        {"type", question.answers == AnswerKind::kLabels ? "labels" : "boxes"}};
  return post(row.name, "/v1/chat/completions", server::to_text(body));
}

Result<server::Row> openai_row(const std::string& line, const RowQuestion& question) {
  auto parsed = server::parse_batch_line(line, {});
  if (const auto* fault = std::get_if<server::LineFault>(&parsed)) return invalid(fault->message);
  auto& [name, url, body] = std::get<server::BatchLine>(parsed);
  if (!question.model.empty() && !Json::parse(body).contains("model")) {
    const bool others = body.find('"') != body.npos;
    body.insert(1, fmt::format("\"model\":{}{}", server::to_text(OrderedJson(question.model)),
                               others ? "," : ""));
  }
  return post(std::move(name), std::move(url), std::move(body));
}

}  // namespace valora::cli
