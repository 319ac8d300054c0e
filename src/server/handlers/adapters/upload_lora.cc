#include "server/handlers/handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text/strings.h"
#include "base/text/unicode.h"
#include "base/text/visible_text.h"
#include "server/handlers/adapters/lora_requests.h"
#include "server/openai/errors.h"
#include "server/uploads/multipart.h"

namespace valora::server {
namespace {

// An uploaded file. The form field has the file's name.
struct UploadFile {
  std::string_view name;
  bool required;
  size_t most_bytes;
};
constexpr std::array kUploadFiles = {
    UploadFile{"adapter_config.json", true, size_t{1} << 20},
    UploadFile{"adapter_model.safetensors", true, SIZE_MAX},
    UploadFile{"valora.json", false, size_t{1} << 20},
};

struct Upload {
  Json fields = Json::object();
  std::vector<UploadStore::File> files;
};

Result<Json> value_of(const FormPart& part) {
  const std::string_view text = part.contents;
  if (part.name == "lora_name") {
    if (!is_valid_utf8(text)) return invalid("\"lora_name\" is not UTF-8", "lora_name");
    return Json(std::string(text));
  }
  if (part.name == "expected_generation") {
    int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || end != text.data() + text.size())
      return invalid("\"expected_generation\" must be a whole number", "expected_generation");
    return Json(number);
  }
  if (part.name == "load_inplace" || part.name == "pinned" || part.name == "lazy") {
    if (text != "true" && text != "false")
      return invalid(fmt::format("\"{}\" must be true or false", part.name), part.name);
    return Json(text == "true");
  }
  return invalid(
      fmt::format("the form has an unknown field \"{}\"; files are sent in fields of "
                  "their names: adapter_config.json, adapter_model.safetensors, "
                  "valora.json",
                  shortened(visible(part.name), 60)));
}

Status add_part(Upload& upload, const FormPart& part) {
  const auto known =
      std::ranges::find(kUploadFiles, std::string_view(part.name), &UploadFile::name);
  if (known == kUploadFiles.end()) {
    VALORA_TRY(value, value_of(part));
    if (!upload.fields.emplace(part.name, std::move(value)).second)
      return invalid(fmt::format("the form has the field \"{}\" twice", part.name), part.name);
    return {};
  }
  if (std::ranges::find(upload.files, known->name, &UploadStore::File::name) != upload.files.end())
    return invalid(fmt::format("the form has the file {} twice", known->name), part.name);
  if (part.contents.size() > known->most_bytes)
    return Error{ErrorCode::kPayloadTooLarge,
                 fmt::format("{} is larger than {} bytes", known->name, known->most_bytes),
                 part.name};
  upload.files.push_back({known->name, part.contents});
  return {};
}

Result<Upload> read_upload(const HttpRequest& request) {
  VALORA_TRY(parts, parse_form(request.body, boundary_of(request.header("content-type"))));
  Upload upload;
  for (const FormPart& part : parts) VALORA_CHECK(add_part(upload, part));
  for (const UploadFile& file : kUploadFiles)
    if (file.required &&
        std::ranges::find(upload.files, file.name, &UploadStore::File::name) == upload.files.end())
      return invalid(fmt::format("the form lacks the file {}", file.name), std::string(file.name));
  return upload;
}

std::set<std::string> paths_in_use(const Engine& engine) {
  std::set<std::string> paths;
  for (const AdapterCard& adapter : engine.adapters()) paths.insert(adapter.path);
  return paths;
}

// Clients must not learn where the server stores uploads.
Error without_path(Error error, const std::string& path) {
  constexpr std::string_view kInstead = "the upload";
  for (size_t at = 0; (at = error.message.find(path, at)) != error.message.npos;
       at += kInstead.size())
    error.message.replace(at, path.size(), kInstead);
  if (error.param.starts_with(path)) error.param.clear();
  return error;
}

void load_kept(const std::shared_ptr<Service>& service, LoadAdapter load,
               const std::shared_ptr<Exchange>& exchange) {
  const std::string name = load.name, path = load.path;
  const bool conditional = load.expected_generation.has_value();
  service->engine.load_adapter(std::move(load), [service, exchange, name, path,
                                                 conditional](const Result<AdapterCard>& card) {
    if (card.ok()) {
      service->uploads.loaded(path);
      return exchange->respond(lora_added(name, *card));
    }
    const Error error = without_path(lora_load_error(card.error(), {path}), path);
    // Posted to the exchange's executor, so that no file is removed on an engine thread.
    exchange->post([service, exchange, path, response = lora_failure(error, conditional)] {
      service->uploads.discard(path);
      exchange->respond(response);
    });
  });
}

}  // namespace

std::optional<HttpResponse> check_upload_header(const Service& service, const HttpRequest& head) {
  if (!service.uploads.on())
    return error_response(403,
                          "adapters cannot be uploaded; start the server with "
                          "--allow-runtime-lora-updating and --adapter-upload-dir");
  if (const ServedUser* user = service.user_of(head); user && user->settings.loads.empty())
    return error_response(
        403, fmt::format("the user `{}` may not load or unload adapters", user->settings.name));
  if (boundary_of(head.header("content-type")).empty())
    return error_response(415, "the content type must be multipart/form-data with a boundary");
  return std::nullopt;
}

void handle_upload_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange) {
  auto upload = read_upload(request);
  if (!upload.ok()) return exchange->respond(error_response(upload.error()));
  auto load = load_of_body(upload->fields);
  if (!load.ok()) return exchange->respond(error_response(load.error()));
  if (!may_change_lora(*service, request, *exchange, load->name)) return;
  load->path = "upload";  // placeholder until the path is known
  if (const std::string message = lora_rejection_reason(*service, *load); !message.empty())
    return exchange->respond(error_response(400, message, {}, kInvalidUserInput));
  const auto kept = service->uploads.keep(upload->files, paths_in_use(service->engine));
  if (!kept.ok()) return exchange->respond(error_response(507, kept.error().message));
  load->path = load->root = *kept;
  std::string().swap(request.body);
  exchange->release_body();
  load_kept(service, std::move(*load), exchange);
}

}  // namespace valora::server
