// Which names and folders the sender of a request may see in lists, statistics and metrics.
#pragma once

#include <string>
#include <string_view>

#include "server/handlers/service.h"
#include "server/metrics/visible_names.h"

namespace valora::server {

class Viewer {
 public:
  // Both must outlive this object.
  Viewer(const Service& service, const HttpRequest& request)
      : service_(service),
        user_(service.user_of(request)),
        stranger_(!service.authorized(request)) {}

  // Null: the request has no key of a user.
  const ServedUser* user() const { return user_; }
  bool may_ask(std::string_view model) const;
  // True for the base model and adapters that are loaded, if it may ask them.
  bool knows(const std::string& model) const;
  // Adapters that it may ask or load.
  bool sees_adapter(std::string_view adapter) const;
  bool sees_application(std::string_view application) const;
  // The adapter's folder for whoever may load and unload it, of an uploaded adapter its name in the
  // folder of uploads; empty: not to be shown.
  std::string folder_of(const AdapterCard& adapter) const;
  // True if it may see the base model's folder: users may not.
  bool sees_model_folder() const { return !stranger_ && user_ == nullptr; }
  // For metrics. Not to outlive this object.
  VisibleNames names() const;

 private:
  const Service& service_;
  const ServedUser* const user_;
  const bool stranger_;  // without a key on a server that has keys
};

}  // namespace valora::server
