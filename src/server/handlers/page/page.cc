#include "server/handlers/page/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/openai/errors.h"
#include "server/page/page_files.h"

namespace valora::server {
namespace {

// Scripts and styles load only from this server, and nothing is sent to any other.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'";

std::string_view content_type(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "image/svg+xml";
}

std::string_view file_of(std::string_view path) {
  if (path == "/") return "index.html";
  if (path == "/docs") return "docs.html";
  return path.substr(kPagePrefix.size());
}

// True if If-None-Match contains this tag.
bool has_tag(std::string_view header, std::string_view tag) {
  return header == "*" || header.find(tag) != header.npos;
}

}  // namespace

void handle_page(const std::shared_ptr<Service>&, HttpRequest request,
                 std::shared_ptr<Exchange> exchange) {
  const auto files = page_files();
  const auto file = std::ranges::find(files, file_of(request.path), &PageFile::name);
  if (file == files.end())
    return exchange->respond(
        error_response(404, fmt::format("the path {} does not exist", request.path)));
  HttpResponse response{.content_type = std::string(content_type(file->name))};
  response.headers = {{"ETag", std::string(file->tag)},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", kPolicy},
                      {"Permissions-Policy", "camera=(self), geolocation=(), microphone=()"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"}};
  if (has_tag(request.header("if-none-match"), file->tag))
    response.status = 304;
  else
    response.body = file->text;
  exchange->respond(std::move(response));
}

}  // namespace valora::server
