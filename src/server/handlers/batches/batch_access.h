// What the handlers of files, batches and streams share: whose they are, and lists of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "server/handlers/service.h"
#include "server/openai/errors.h"

namespace valora::server {

// The response without --batches-dir.
std::optional<HttpResponse> refuse_without_batches(const Service& service);

// The name of the request's user; empty without one.
std::string owner_of(const Service& service, const HttpRequest& request);
// Users see what is theirs; whoever has no user sees all.
bool sees_records_of(const Service& service, const HttpRequest& request, const std::string& owner);

// The headers of requests in an owner's name; nullopt: there is no such user any more.
std::optional<Headers> headers_of_owner(const Service& service, const std::string& owner);

// The part of the path behind `prefix` and '/', up to the next '/'.
std::string id_in_path(std::string_view path, std::string_view prefix);

// A page of a list: {"object": "list", "data", "first_id", "last_id", "has_more"}, by the query's
// limit, after and order. `ids`: the oldest first.
struct ListLimits {
  int64_t by_default, most;
};
Result<OrderedJson> list_page(const std::vector<std::string>& ids, std::string_view query,
                              ListLimits limits,
                              const std::function<OrderedJson(const std::string& id)>& object);

}  // namespace valora::server
