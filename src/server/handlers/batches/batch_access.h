// What the handlers of files, batches and streams share: whose they are, and lists of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "server/handlers/service.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"

namespace valora::server {

// The response without --batches-dir.
std::optional<HttpResponse> refuse_without_batches(const Service& service);
// The handler of a route that needs --batches-dir.
template <ServiceHandler handle>
void with_batches(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  if (auto refused = refuse_without_batches(*service))
    return exchange->respond(std::move(*refused));
  handle(service, std::move(request), std::move(exchange));
}

// The name of the request's user; empty without one.
std::string owner_of(const Service& service, const HttpRequest& request);
// Users see what is theirs; whoever has no user sees all.
bool sees_records_of(const Service& service, const HttpRequest& request, const std::string& owner);

// The headers of requests in an owner's name; nullopt: there is no such user any more.
std::optional<Headers> headers_of_owner(const Service& service, const std::string& owner);

// The part of the path behind `prefix` and '/', up to the next '/'.
std::string id_in_path(std::string_view path, std::string_view prefix);

struct ListLimits {
  int64_t by_default, most;
};
// A page of a list: {"object": "list", "data", "first_id", "last_id", "has_more"}, by the query's
// limit, after and order. `ids`: the oldest first; `object`: that of the id at this place.
Result<OrderedJson> list_page(const std::vector<std::string>& ids, std::string_view query,
                              ListLimits limits, const std::function<OrderedJson(size_t)>& object);

// Answers with a page of the records (the oldest first) that the request's sender sees.
template <typename Record>
void respond_page(const Service& service, const HttpRequest& request, Exchange& exchange,
                  std::vector<Record> records, ListLimits limits,
                  OrderedJson (*object)(const Record&)) {
  std::erase_if(records, [&](const Record& record) {
    return !sees_records_of(service, request, record.owner);
  });
  std::vector<std::string> ids;
  for (const Record& record : records) ids.push_back(record.id);
  const auto page =
      list_page(ids, request.query, limits, [&](size_t index) { return object(records[index]); });
  if (!page.ok()) return exchange.respond(error_response(page.error()));
  exchange.respond({.body = to_text(*page)});
}

}  // namespace valora::server
