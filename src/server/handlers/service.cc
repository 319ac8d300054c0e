#include "server/handlers/service.h"

#include <algorithm>

#include "server/handlers/adapter_resolver.h"

namespace valora::server {
namespace {

std::vector<std::string> names_of(const ServerOptions& options, const Engine& engine) {
  if (!options.served_model_names.empty()) return options.served_model_names;
  return {engine.model().name};
}

}  // namespace

Service::Service(ServerOptions server_options, Engine& served_engine)
    : options(std::move(server_options)),
      engine(served_engine),
      base_names(names_of(options, engine)),
      metrics(engine, base_names.front(), options.max_loras),
      resolver(std::make_shared<AdapterResolver>(options.lora_resolver_dir, engine)) {}

Service::~Service() = default;

bool Service::is_base(std::string_view model) const {
  return model.empty() ||
         std::find(base_names.begin(), base_names.end(), model) != base_names.end();
}

std::string_view Service::adapter_of(std::string_view model) const {
  if (is_base(model)) return {};
  for (const std::string& base : base_names)
    if (model.size() > base.size() + 1 && model.starts_with(base) && model[base.size()] == ':')
      return model.substr(base.size() + 1);
  return model;
}

std::vector<AdapterUse> Service::adapters_of(const Target& target) const {
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

std::string Service::model_name_of(const Target& target) const {
  return target.model.empty() ? base_name() : target.model;
}

}  // namespace valora::server
