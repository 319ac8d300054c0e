#include "server/handlers/handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files/input_folder.h"
#include "server/handlers/adapters/lora_requests.h"
#include "server/openai/errors.h"
#include "server/openai/fields.h"

namespace valora::server {
namespace {

// Requires the load's path to be inside an allowed folder. Everything outside gets the same answer,
// whether it exists or not. The loader checks again when it reads, because the folder may be
// swapped in between.
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

Result<LoadAdapter> load_of_text(std::string_view text) {
  VALORA_TRY(body, parse_body(text));
  return load_of_body(body);
}

struct NamedAdapter {
  std::string name;
  std::optional<uint64_t> generation;
};

// The adapter named in the body if the caller may change it; otherwise the exchange has been
// answered.
std::optional<NamedAdapter> named_adapter(const Service& service, const HttpRequest& request,
                                          Exchange& exchange) {
  if (!lora_changes_allowed(service, exchange)) return std::nullopt;
  const auto read = [&]() -> Result<NamedAdapter> {
    VALORA_TRY(body, parse_body(request.body));
    VALORA_TRY(name, field_or<std::string>(body, "lora_name", ""));
    VALORA_TRY(generation, expected_generation_of(body));
    return NamedAdapter{std::move(name), generation};
  };
  auto named = read();
  if (!named.ok())
    exchange.respond(error_response(named.error()));
  else if (named->name.empty())
    exchange.respond(
        error_response(400, "'lora_name' must be provided.", "lora_name", kInvalidUserInput));
  else if (may_change_lora(service, request, exchange, named->name))
    return std::move(*named);
  return std::nullopt;
}

// Pinned adapters never free memory on their own, so retrying does not help.
HttpResponse pin_failure(const Error& error, bool conditional) {
  return error.code == ErrorCode::kUnavailable ? error_response(invalid(error.message, error.param))
                                               : lora_failure(error, conditional);
}

void change_pin(const Service& service, const HttpRequest& request,
                std::shared_ptr<Exchange> exchange, bool pinned) {
  const auto named = named_adapter(service, request, *exchange);
  if (!named) return;
  const auto& [name, generation] = *named;
  service.engine.pin_adapter(
      name, pinned, generation,
      [exchange = std::move(exchange), name, pinned,
       conditional = generation.has_value()](const Status& status) {
        exchange->respond(status.ok() ? lora_success(name, pinned ? "pinned" : "unpinned")
                                      : pin_failure(status.error(), conditional));
      });
}

}  // namespace

void handle_load_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                      std::shared_ptr<Exchange> exchange) {
  if (!lora_changes_allowed(*service, *exchange)) return;
  auto load = load_of_text(request.body);
  if (!load.ok()) return exchange->respond(error_response(load.error()));
  if (!may_change_lora(*service, request, *exchange, load->name)) return;
  if (const std::string message = lora_rejection_reason(*service, *load); !message.empty())
    return exchange->respond(error_response(400, message, {}, kInvalidUserInput));
  if (const Status inside = keep_inside(*service, *load); !inside.ok())
    return exchange->respond(error_response(inside.error()));
  const std::string name = load->name;
  const FolderPath folder(load->path, load->root);
  const bool conditional = load->expected_generation.has_value();
  service->engine.load_adapter(std::move(*load), [exchange, name, folder,
                                                  conditional](const Result<AdapterCard>& card) {
    exchange->respond(card.ok() ? lora_added(name, *card)
                                : lora_failure(lora_load_error(card.error(), folder), conditional));
  });
}

void handle_unload_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange) {
  const auto named = named_adapter(*service, request, *exchange);
  if (!named) return;
  const auto& [name, generation] = *named;
  service->engine.unload_adapter(
      name, generation,
      [exchange, name, conditional = generation.has_value()](const Status& status) {
        exchange->respond(status.ok() ? lora_success(name, "removed")
                                      : lora_failure(status.error(), conditional));
      });
}

void handle_pin_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange) {
  change_pin(*service, request, std::move(exchange), true);
}

void handle_unpin_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange) {
  change_pin(*service, request, std::move(exchange), false);
}

}  // namespace valora::server
