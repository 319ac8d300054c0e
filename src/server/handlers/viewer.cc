#include "server/handlers/viewer.h"

namespace valora::server {

bool Viewer::may_ask(std::string_view model) const {
  return !stranger_ && (user_ == nullptr || user_->may_ask(model));
}

bool Viewer::knows(const std::string& model) const {
  if (service_.is_base(model)) return may_ask(service_.base_name());
  const auto adapter = service_.engine.adapter(std::string(service_.adapter_of(model)));
  return adapter && may_ask(adapter->name);
}

bool Viewer::sees_adapter(std::string_view adapter) const {
  return may_ask(adapter) || (user_ != nullptr && user_->may_load(adapter));
}

bool Viewer::sees_application(std::string_view application) const {
  return !stranger_ && (user_ == nullptr || user_->may_name(application));
}

std::string Viewer::folder_of(const AdapterCard& adapter) const {
  if (stranger_ || (user_ != nullptr && !user_->may_load(adapter.name))) return {};
  const std::string uploads = service_.options.adapter_upload_dir + "/";
  const bool uploaded = uploads.size() > 1 && adapter.path.starts_with(uploads);
  return uploaded ? adapter.path.substr(uploads.size()) : adapter.path;
}

VisibleNames Viewer::names() const {
  return {
      // Requests may name an adapter as "base:adapter".
      .adapter = [this](std::string_view name) { return sees_adapter(service_.adapter_of(name)); },
      // Requests without an application are counted under their user.
      .tenant =
          [this](std::string_view name) {
            return sees_application(name) && (user_ == nullptr || !name.starts_with("user ") ||
                                              name.substr(5) == user_->settings.name);
          }};
}

}  // namespace valora::server
