#include "cli/tokenizer_info.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "text/chat/chat_template.h"

namespace valora::cli {
namespace {

Result<Json> chat_template(const EngineOptions& options) {
  if (!options.chat_template.empty()) {
    VALORA_TRY(source, text::read_chat_template(options.chat_template));
    return Json(std::move(source.text));
  }
  VALORA_TRY(source, text::find_chat_template(options.model_path));
  return source ? Json(std::move(source->text)) : Json();
}

}  // namespace

Result<std::string> tokenizer_info(const EngineOptions& options) {
  const std::string file = options.model_path + "/tokenizer_config.json";
  Json info = Json::object();
  if (file_exists(file)) {
    VALORA_TRY(config, read_json_file(file));
    if (!config.is_object()) return invalid(file + " must be an object", file);
    info = std::move(config);
  }
  VALORA_TRY(source, chat_template(options));
  info["chat_template"] = std::move(source);
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace valora::cli
