#include "server/handlers/service.h"

#include <algorithm>

#include "server/base_names.h"
#include "server/handlers/adapters/adapter_resolver.h"
#include "server/handlers/status/stats_ticker.h"

namespace valora::server {
namespace {

std::vector<std::string> names_of(const ServerOptions& options, const Engine& engine) {
  if (!options.served_model_names.empty()) return options.served_model_names;
  return {engine.model().name};
}

// KEY of "Authorization: Bearer KEY"; empty without the header.
std::string_view bearer_key(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = request.header("authorization");
  if (given.size() < kBearer.size() || !same_header_name(given.substr(0, kBearer.size()), kBearer))
    return {};
  return given.substr(kBearer.size());
}

}  // namespace

Service::Service(ServerOptions server_options, Engine& served_engine, const Clock& clock)
    : options(std::move(server_options)),
      engine(served_engine),
      base_names(names_of(options, engine)),
      metrics(engine, base_names.front(), options.max_loras),
      applications(options.applications, metrics, clock),
      users(options.users),
      resolver(std::make_shared<AdapterResolver>(options.lora_resolver_dir, base_names, engine)),
      waiting(options.max_waiting),
      answers(options.max_unsent_answer_bytes),
      ticker(std::make_unique<StatsTicker>(*this)),
      uploads(options.adapter_upload_dir, options.uploads, clock) {}

Service::~Service() = default;

bool Service::is_base(std::string_view model) const {
  return model.empty() || is_base_name(base_names, model);
}

// An adapter whose own name begins with "base:" is found by its full name.
std::string_view Service::adapter_of(std::string_view model) const {
  if (is_base(model)) return {};
  const std::string_view suffix = without_base_prefix(base_names, model);
  return suffix.size() < model.size() && engine.adapter(std::string(model)) ? model : suffix;
}

std::vector<AdapterUse> Service::adapters_of(const Target& target) const {
  if (!target.default_adapter.empty()) return {{target.default_adapter, 1}};
  std::vector<AdapterUse> uses;
  const std::string_view adapter = adapter_of(target.model);
  if (!adapter.empty()) uses.push_back({std::string(adapter), 1});
  for (const AdapterUse& listed : target.lora) {
    if (listed.name == adapter)
      uses.front().scale = listed.scale;
    else
      uses.push_back(listed);
  }
  return uses;
}

bool Service::authorized(const HttpRequest& request) const {
  if (options.api_keys.empty() && users.empty()) return true;
  const std::string_view given = bearer_key(request);
  return user_of(request) != nullptr ||
         std::ranges::any_of(options.api_keys,
                             [&](const std::string& key) { return same_secret(given, key); });
}

ServedUser* Service::user_of(const HttpRequest& request) const {
  return users.empty() ? nullptr : users.find(bearer_key(request));
}

std::string Service::client_of(const HttpRequest& request) const {
  std::string client = request.peer.substr(0, request.peer.rfind(':'));
  // If no keys are checked, clients may put anything in the header.
  if (!options.api_keys.empty() || !users.empty()) (client += ' ') += bearer_key(request);
  return client;
}

RequestLimits Service::request_limits(const HttpRequest& request) const {
  RequestLimits limits(engine.model().media_limits);
  limits.max_logprobs = engine.model().max_logprobs;
  limits.chat_templates = options.trust_request_chat_template;
  const ServedUser* user = user_of(request);
  limits.plain_texts = !(user ? user->settings.special_tokens_in_content : std::nullopt)
                            .value_or(options.special_tokens_in_content);
  return limits;
}

std::string Service::model_name_of(const Target& target) const {
  return target.model.empty() || is_base(target.model) ? base_name() : target.model;
}

}  // namespace valora::server
