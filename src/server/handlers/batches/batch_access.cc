#include "server/handlers/batches/batch_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/text/strings.h"

namespace valora::server {
namespace {

Result<int64_t> page_size(std::string_view query, ListLimits limits) {
  const auto text = query_value(query, "limit");
  if (!text) return limits.by_default;
  int64_t number = 0;
  const auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (fault != std::errc() || end != text->data() + text->size() || number < 1 ||
      number > limits.most)
    return invalid(fmt::format("\"limit\" must be a number from 1 to {}", limits.most), "limit");
  return number;
}

}  // namespace

std::optional<HttpResponse> refuse_without_batches(const Service& service) {
  if (service.batches != nullptr) return std::nullopt;
  return error_response(403,
                        "this server takes no files and batches; start it with --batches-dir DIR");
}

std::string owner_of(const Service& service, const HttpRequest& request) {
  const ServedUser* user = service.user_of(request);
  return user == nullptr ? std::string() : user->settings.name;
}

bool sees_records_of(const Service& service, const HttpRequest& request, const std::string& owner) {
  const ServedUser* user = service.user_of(request);
  return user == nullptr || user->settings.name == owner;
}

std::optional<Headers> headers_of_owner(const Service& service, const std::string& owner) {
  if (owner.empty()) return Headers();
  const ServedUser* user = service.users.named(owner);
  if (user == nullptr) return std::nullopt;
  return Headers{{"Authorization", "Bearer " + user->settings.key}};
}

std::string id_in_path(std::string_view path, std::string_view prefix) {
  path.remove_prefix(std::min(path.size(), prefix.size() + 1));
  return std::string(path.substr(0, path.find('/')));
}

Result<OrderedJson> list_page(const std::vector<std::string>& ids, std::string_view query,
                              ListLimits limits, const std::function<OrderedJson(size_t)>& object) {
  VALORA_TRY(limit, page_size(query, limits));
  const std::string order = query_value(query, "order").value_or("desc");
  if (order != "asc" && order != "desc") return invalid("\"order\" must be asc or desc", "order");
  std::vector<size_t> ordered(ids.size());
  std::iota(ordered.begin(), ordered.end(), size_t{0});
  if (order == "desc") std::ranges::reverse(ordered);
  auto begin = ordered.begin();
  if (const auto after = query_value(query, "after")) {
    const auto found = std::ranges::find(ordered, *after, [&](size_t index) { return ids[index]; });
    if (found == ordered.end())
      return invalid(
          fmt::format("\"after\" is {}, which is not in the list", shortened(*after, 60)), "after");
    begin = found + 1;
  }
  const auto end = begin + std::min<int64_t>(limit, ordered.end() - begin);
  OrderedJson data = OrderedJson::array();
  for (auto it = begin; it != end; ++it) data.push_back(object(*it));
  OrderedJson out = {{"object", "list"}, {"data", std::move(data)}};
  out["first_id"] = begin == end ? OrderedJson() : OrderedJson(ids[*begin]);
  out["last_id"] = begin == end ? OrderedJson() : OrderedJson(ids[*(end - 1)]);
  out["has_more"] = end != ordered.end();
  return out;
}

}  // namespace valora::server
