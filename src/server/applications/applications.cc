#include "server/applications/applications.h"

namespace valora::server {
namespace {

template <typename Index>
ServedApplication* look_up(const Index& index, std::string_view key) {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace

Applications::Applications(const std::vector<Application>& applications, Metrics& metrics,
                           const Clock& clock) {
  for (const Application& application : applications) {
    ServedApplication* served =
        all_.emplace_back(std::make_unique<ServedApplication>(application, metrics, clock)).get();
    by_name_.emplace(application.name, served);
    for (const std::string& model : application.models) by_model_.emplace(model, served);
  }
}

ServedApplication* Applications::find(std::string_view name) const {
  return look_up(by_name_, name);
}

ServedApplication* Applications::of_model(std::string_view model) const {
  return look_up(by_model_, model);
}

}  // namespace valora::server
