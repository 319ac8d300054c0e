#include "server/handlers/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "api/find_adapter.h"
#include "base/input_folder.h"
#include "server/base_names.h"
#include "server/openai/errors.h"
#include "server/openai/fields.h"

namespace valora::server {
namespace {

constexpr std::string_view kInvalidUserInput = "InvalidUserInput";

bool allowed(const Service& service, Exchange& exchange) {
  if (service.options.allow_runtime_lora_updating) return true;
  exchange.respond(error_response(403,
                                  "loading and unloading adapters at run time is off; start the "
                                  "server with --allow-runtime-lora-updating"));
  return false;
}

bool may_load(const Service& service, const HttpRequest& request, Exchange& exchange,
              const std::string& name) {
  const ServedUser* user = service.user_of(request);
  if (user == nullptr || user->may_load(name)) return true;
  exchange.respond(error_response(
      403, fmt::format("the user `{}` may not load or unload this adapter", user->settings.name),
      "lora_name"));
  return false;
}

HttpResponse success(std::string_view name, std::string_view what) {
  return {.content_type = "text/plain; charset=utf-8",
          .body = fmt::format("Success: LoRA adapter '{}' {} successfully.", name, what)};
}

// A full table is the engine's kUnavailable and is found before the folder is looked at. It does
// not end by itself, so a retry is of no use.
Error load_error(const Error& error, const FolderPath& folder) {
  if (error.code != ErrorCode::kUnavailable) return error;
  if (!InputFolder::open(folder).ok())
    return not_found(fmt::format("the adapter folder {} does not exist", folder.path), "lora_path");
  return invalid(error.message, error.param);
}

// vLLM reports "already loaded" as 400. A conflict is 409 only if the request had
// "expected_generation".
HttpResponse failure(const Error& error, bool conditional) {
  if (error.code == ErrorCode::kConflict && !conditional)
    return error_response(400, error.message, error.param, kInvalidUserInput);
  return error_response(error);
}

Result<std::optional<uint64_t>> parse_generation(const Json& body) {
  VALORA_TRY(value, optional_field<int64_t>(body, "expected_generation"));
  if (!value) return std::optional<uint64_t>{};
  if (*value < 0)
    return invalid("\"expected_generation\" must be at least 0", "expected_generation");
  return std::optional<uint64_t>(static_cast<uint64_t>(*value));
}

Result<LoadAdapter> parse_load(std::string_view text) {
  VALORA_TRY(body, parse_body(text));
  LoadAdapter load;
  VALORA_TRY(name, field_or<std::string>(body, "lora_name", ""));
  VALORA_TRY(path, field_or<std::string>(body, "lora_path", ""));
  if (path.find('\0') != path.npos)
    return invalid("\"lora_path\" has a zero byte, at which it would end", "lora_path");
  VALORA_TRY(replace, flag(body, "load_inplace", false));
  VALORA_TRY(pinned, flag(body, "pinned", false));
  VALORA_TRY(lazy, flag(body, "lazy", false));
  VALORA_TRY(generation, parse_generation(body));
  load.name = std::move(name);
  load.path = std::move(path);
  load.replace = replace;
  load.pinned = pinned;
  load.lazy = lazy;
  load.expected_generation = generation;
  return load;
}

// Bounds a load to the allowed folder that its path is in. All that is outside gets the same
// answer, whether it exists or not. Whoever reads the folder looks again: it may be swapped until
// then.
Status keep_inside(const Service& service, LoadAdapter& load) {
  namespace fs = std::filesystem;
  const auto& roots = service.options.allowed_lora_paths;
  if (roots.empty()) return {};
  std::error_code failed;
  const fs::path real = fs::weakly_canonical(load.path, failed);
  const auto holds = [&](const std::string& root) {
    std::error_code missing;
    const fs::path top = fs::canonical(root, missing);
    return !missing &&
           std::mismatch(top.begin(), top.end(), real.begin(), real.end()).first == top.end();
  };
  const auto root = std::ranges::find_if(roots, holds);
  if (failed || root == roots.end())
    return invalid("\"lora_path\" is not in a folder of --allowed-lora-path", "lora_path");
  load.path = real;
  load.root = *root;
  return {};
}

// The error that vLLM reports as InvalidUserInput; empty if the request is valid.
std::string objection(const Service& service, const LoadAdapter& load) {
  if (load.name.empty() || load.path.empty())
    return "Both 'lora_name' and 'lora_path' must be provided.";
  if (const Status free = check_not_base_name(service.base_names, load.name); !free.ok())
    return free.error().message;
  if (load.replace || load.expected_generation) return {};
  if (find_adapter(service.engine, load.name))
    return fmt::format(
        "The lora adapter '{}' has already been loaded. Set 'load_inplace' to true to replace it.",
        load.name);
  return {};
}

}  // namespace

void handle_load_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                      std::shared_ptr<Exchange> exchange) {
  if (!allowed(*service, *exchange)) return;
  auto load = parse_load(request.body);
  if (!load.ok()) return exchange->respond(error_response(load.error()));
  if (!may_load(*service, request, *exchange, load->name)) return;
  if (const std::string message = objection(*service, *load); !message.empty())
    return exchange->respond(error_response(400, message, {}, kInvalidUserInput));
  if (const Status inside = keep_inside(*service, *load); !inside.ok())
    return exchange->respond(error_response(inside.error()));
  const std::string name = load->name;
  const FolderPath folder(load->path, load->root);
  const bool conditional = load->expected_generation.has_value();
  service->engine.load_adapter(
      std::move(*load), [exchange, name, folder, conditional](const Result<AdapterCard>& card) {
        exchange->respond(card.ok() ? success(name, "added")
                                    : failure(load_error(card.error(), folder), conditional));
      });
}

void handle_unload_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange) {
  if (!allowed(*service, *exchange)) return;
  auto body = parse_body(request.body);
  if (!body.ok()) return exchange->respond(error_response(body.error()));
  auto name = field_or<std::string>(*body, "lora_name", "");
  if (!name.ok()) return exchange->respond(error_response(name.error()));
  auto generation = parse_generation(*body);
  if (!generation.ok()) return exchange->respond(error_response(generation.error()));
  if (name->empty())
    return exchange->respond(
        error_response(400, "'lora_name' must be provided.", "lora_name", kInvalidUserInput));
  if (!may_load(*service, request, *exchange, *name)) return;
  service->engine.unload_adapter(
      *name, *generation,
      [exchange, name = *name, conditional = generation->has_value()](const Status& status) {
        exchange->respond(status.ok() ? success(name, "removed")
                                      : failure(status.error(), conditional));
      });
}

}  // namespace valora::server
