#include "server/handlers/handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/files/file.h"
#include "base/text/strings.h"
#include "base/text/unicode.h"
#include "base/text/visible_text.h"
#include "server/batches/batch_runner.h"
#include "server/handlers/batches/batch_access.h"
#include "server/openai/json_text.h"
#include "server/uploads/multipart.h"

namespace valora::server {
namespace {

constexpr ListLimits kFileLists{10'000, 10'000};
constexpr size_t kMostContentBytes = size_t{256} << 20;  // of one response
constexpr size_t kMostFilenameBytes = 255;

struct UploadedFile {
  std::string filename;
  std::string_view bytes;
};

// The form's file, for a batch.
Result<UploadedFile> read_file_form(const HttpRequest& request) {
  VALORA_TRY(parts, parse_form(request.body, boundary_of(request.header("content-type"))));
  const FormPart *purpose = nullptr, *file = nullptr;
  for (const FormPart& part : parts) {
    if (part.name == "purpose")
      purpose = &part;
    else if (part.name == "file")
      file = &part;
    else
      return invalid(fmt::format("the form has the field \"{}\"; files have \"purpose\" and "
                                 "\"file\", and are kept until they are deleted",
                                 shortened(visible(part.name), 60)),
                     part.name);
  }
  if (purpose == nullptr || purpose->contents != "batch")
    return invalid("\"purpose\" must be batch", "purpose");
  if (file == nullptr) return invalid("the form lacks the field \"file\"", "file");
  const std::string& name = file->filename;
  const bool is_name = !name.empty() && name.size() <= kMostFilenameBytes && is_valid_utf8(name);
  return UploadedFile{is_name ? name : "input.jsonl", file->contents};
}

// A file that the request's sender sees.
std::optional<FileRecord> visible_file(const Service& service, const HttpRequest& request) {
  auto file = service.batches->store().file(id_in_path(request.path, kFilesPath));
  if (file && !sees_records_of(service, request, file->owner)) file.reset();
  return file;
}

HttpResponse no_such_file(const HttpRequest& request) {
  return error_response(404,
                        fmt::format("No such File object: {}",
                                    shortened(visible(id_in_path(request.path, kFilesPath)), 60)),
                        "id");
}

struct ByteRange {
  uint64_t begin = 0, end = 0;
};

// "bytes=A-B" or "bytes=A-"; nullopt for other headers, which ask for the whole file.
std::optional<ByteRange> range_of(std::string_view header, uint64_t size) {
  constexpr std::string_view kBytes = "bytes=";
  if (!header.starts_with(kBytes)) return std::nullopt;
  const std::string text(header.substr(kBytes.size()));
  ByteRange range{0, size};
  const char* const last = text.data() + text.size();
  auto [at, fault] = std::from_chars(text.data(), last, range.begin);
  if (fault != std::errc() || at == last || *at != '-') return std::nullopt;
  if (++at == last) return range;
  uint64_t final = 0;
  const auto [rest, other] = std::from_chars(at, last, final);
  if (other != std::errc() || rest != last || final < range.begin) return std::nullopt;
  range.end = std::min(size, final + 1);
  return range;
}

HttpResponse content_of(const std::string& path, std::string_view range_header) {
  const auto file = InputFile::open(path);
  if (!file.ok()) return error_response(404, "the file was deleted");
  const auto range = range_of(range_header, file->size());
  const ByteRange asked = range.value_or(ByteRange{0, file->size()});
  if (asked.begin > asked.end || (range && asked.begin == file->size()))
    return error_response(416, fmt::format("the file has {} bytes", file->size()));
  if (asked.end - asked.begin > kMostContentBytes)
    return error_response(
        413, fmt::format("the file has {} bytes; ask for parts of at most {} with the header Range",
                         file->size(), kMostContentBytes));
  HttpResponse response{.status = range ? 206 : 200, .content_type = "application/octet-stream"};
  response.body.resize(asked.end - asked.begin);
  const auto read = file->read(asked.begin, response.body);
  if (!read.ok() || *read < response.body.size())
    return error_response(500, "the file cannot be read");
  response.headers.emplace_back("Accept-Ranges", "bytes");
  if (range)
    response.headers.emplace_back(
        "Content-Range", fmt::format("bytes {}-{}/{}", asked.begin, asked.end - 1, file->size()));
  return response;
}

}  // namespace

std::optional<HttpResponse> check_file_header(const Service& service, const HttpRequest& head) {
  if (auto refused = refuse_without_batches(service)) return refused;
  if (boundary_of(head.header("content-type")).empty())
    return error_response(415, "the content type must be multipart/form-data with a boundary");
  return std::nullopt;
}

void handle_upload_file(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange) {
  const auto upload = read_file_form(request);
  if (!upload.ok()) return exchange->respond(error_response(upload.error()));
  BatchStore& store = service->batches->store();
  if (upload->bytes.size() > store.limits().file_bytes)
    return exchange->respond(error_response(
        413, fmt::format("the file is larger than {} bytes", store.limits().file_bytes), "file"));
  const auto file = store.add_file(owner_of(*service, request), upload->filename, upload->bytes);
  if (!file.ok()) return exchange->respond(error_response(507, file.error().message));
  exchange->respond({.body = to_text(file_json(*file))});
}

void handle_files(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  const auto purpose = query_value(request.query, "purpose");
  std::vector<FileRecord> files = service->batches->store().files();
  if (purpose) std::erase_if(files, [&](const FileRecord& f) { return f.purpose != *purpose; });
  respond_page(*service, request, *exchange, std::move(files), kFileLists, file_json);
}

void handle_file(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange) {
  const auto file = visible_file(*service, request);
  if (!file) return exchange->respond(no_such_file(request));
  exchange->respond({.body = to_text(file_json(*file))});
}

void handle_file_content(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange) {
  const auto file = visible_file(*service, request);
  if (!file) return exchange->respond(no_such_file(request));
  exchange->respond(
      content_of(service->batches->store().content_path(file->id), request.header("range")));
}

void handle_delete_file(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange) {
  const auto file = visible_file(*service, request);
  if (!file) return exchange->respond(no_such_file(request));
  if (const Status removed = service->batches->store().remove_file(file->id); !removed.ok())
    return exchange->respond(error_response(removed.error()));
  exchange->respond({.body = to_text({{"id", file->id}, {"object", "file"}, {"deleted", true}})});
}

}  // namespace valora::server
