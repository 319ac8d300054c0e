#include "server/handlers/adapters/lora_requests.h"

#include <fmt/format.h>

#include "base/files/input_folder.h"
#include "base/text/visible_text.h"
#include "server/base_names.h"
#include "server/openai/errors.h"
#include "server/openai/fields.h"

namespace valora::server {

bool lora_changes_allowed(const Service& service, Exchange& exchange) {
  if (service.options.allow_runtime_lora_updating) return true;
  exchange.respond(error_response(403,
                                  "loading and unloading adapters at run time is off; start the "
                                  "server with --allow-runtime-lora-updating"));
  return false;
}

bool may_change_lora(const Service& service, const HttpRequest& request, Exchange& exchange,
                     const std::string& name) {
  const ServedUser* user = service.user_of(request);
  if (user == nullptr || user->may_load(name)) return true;
  exchange.respond(error_response(
      403, fmt::format("the user `{}` may not load or unload this adapter", user->settings.name),
      "lora_name"));
  return false;
}

HttpResponse lora_success(std::string_view name, std::string_view what) {
  return {.content_type = "text/plain; charset=utf-8",
          .body = fmt::format("Success: LoRA adapter '{}' {} successfully.", name, what)};
}

HttpResponse lora_added(std::string_view name, const AdapterCard& card) {
  HttpResponse response = lora_success(name, "added");
  for (const std::string& warning : card.warnings)
    response.body += "\nWarning: " + visible(warning);
  if (std::string changes = text_of(card.changes); !changes.empty())
    response.headers.emplace_back("X-Valora-Changes", std::move(changes));
  return response;
}

// A full table is reported as kUnavailable by the engine, before the folder is looked at. It does
// not clear by itself, so retrying does not help.
Error lora_load_error(const Error& error, const FolderPath& folder) {
  if (error.code != ErrorCode::kUnavailable) return error;
  if (!InputFolder::open(folder).ok())
    return not_found(fmt::format("the adapter folder {} does not exist", folder.path), "lora_path");
  return invalid(error.message, error.param);
}

// vLLM answers 400 to "already loaded". A conflict gets 409 only if the request had
// "expected_generation".
HttpResponse lora_failure(const Error& error, bool conditional) {
  if (error.code == ErrorCode::kConflict && !conditional)
    return error_response(400, error.message, error.param, kInvalidUserInput);
  return error_response(error);
}

Result<std::optional<uint64_t>> expected_generation_of(const Json& body) {
  VALORA_TRY(value, optional_field<int64_t>(body, "expected_generation"));
  if (!value) return std::optional<uint64_t>{};
  if (*value < 0)
    return invalid("\"expected_generation\" must be at least 0", "expected_generation");
  return std::optional<uint64_t>(static_cast<uint64_t>(*value));
}

Result<LoadAdapter> load_of_body(const Json& body) {
  LoadAdapter load;
  VALORA_TRY(name, field_or<std::string>(body, "lora_name", ""));
  VALORA_TRY(path, field_or<std::string>(body, "lora_path", ""));
  if (path.find('\0') != path.npos)
    return invalid("\"lora_path\" has a zero byte, at which it would end", "lora_path");
  VALORA_TRY(replace, flag(body, "load_inplace", false));
  VALORA_TRY(pinned, flag(body, "pinned", false));
  VALORA_TRY(lazy, flag(body, "lazy", false));
  VALORA_TRY(generation, expected_generation_of(body));
  load.name = std::move(name);
  load.path = std::move(path);
  load.replace = replace;
  load.pinned = pinned;
  load.lazy = lazy;
  load.expected_generation = generation;
  return load;
}

// Message of the error that vLLM reports as InvalidUserInput; empty if the request is valid.
std::string lora_rejection_reason(const Service& service, const LoadAdapter& load) {
  if (load.name.empty() || load.path.empty())
    return "Both 'lora_name' and 'lora_path' must be provided.";
  if (const Status free = check_not_base_name(service.base_names, load.name); !free.ok())
    return free.error().message;
  if (load.replace || load.expected_generation) return {};
  if (service.engine.adapter(load.name))
    return fmt::format(
        "The lora adapter '{}' has already been loaded. Set 'load_inplace' to true to replace it.",
        load.name);
  return {};
}

}  // namespace valora::server
