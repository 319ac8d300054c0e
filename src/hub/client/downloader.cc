#include "hub/client/downloader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <thread>

#include "hub/client/hub_client.h"
#include "hub/client/refusals.h"

namespace valora::hub {
namespace {

constexpr size_t kConnections = 8;
constexpr size_t kMostPieces = 12;  // under way or waiting in memory for their turn
constexpr int kPollMilliseconds = 100;
constexpr Duration kBetweenTells = std::chrono::milliseconds(100);

bool is_there(const std::string& blob, uint64_t size) {
  std::error_code error;
  return std::filesystem::is_regular_file(blob, error) &&
         std::filesystem::file_size(blob, error) == size && !error;
}

bool starts_at(const Reply& reply, uint64_t byte) {
  return reply.header("content-range").starts_with(fmt::format("bytes {}-", byte));
}

}  // namespace

Downloader::Downloader(const HubSettings& settings, const HubName& name, std::string commit,
                       const CachedRepository& repository, Tell tell)
    : settings_(settings),
      name_(name),
      commit_(std::move(commit)),
      repository_(repository),
      tell_(std::move(tell)) {
  for (size_t i = 0; i < kConnections; ++i) slots_.push_back(std::make_unique<Slot>(settings));
  multi_.reset(curl_multi_init());
  if (!multi_) throw std::bad_alloc();
}

Downloader::~Downloader() {
  for (const auto& slot : slots_) stop(*slot);
}

// Takes the file's lock; false: another process has it.
Result<bool> Downloader::open(const RemoteFile& file) {
  VALORA_TRY(lock, BlobLock::try_take(repository_.lock(file.digest)));
  if (!lock) return false;
  if (is_there(repository_.blob(file.digest), *file.size)) {
    finished_ += *file.size;
    return true;
  }
  VALORA_TRY(writer,
             BlobWriter::open(repository_.incomplete(file.digest), *file.size, file.digest));
  active_.push_back(
      std::make_unique<Active>(Active{FileDownload(file, std::move(writer)), std::move(*lock)}));
  return true;
}

Status Downloader::run(const std::vector<RemoteFile>& files) {
  VALORA_CHECK(repository_.make_folders());
  std::vector<RemoteFile> others;
  total_ = finished_ = 0;
  for (const RemoteFile& file : files) {
    if (is_there(repository_.blob(file.digest), *file.size)) continue;
    total_ += *file.size;
    VALORA_TRY(mine, open(file));
    if (!mine) others.push_back(file);
  }
  VALORA_CHECK(load_active());
  return wait_for_others(std::move(others));
}

// No lock is held meanwhile, so two processes that wait for each other both get on.
Status Downloader::wait_for_others(std::vector<RemoteFile> files) {
  while (!files.empty()) {
    VALORA_TRY(mine, open(files.front()));
    if (mine) {
      VALORA_CHECK(load_active());
      files.erase(files.begin());
      continue;
    }
    tell("waiting for another process that loads " + files.front().name);
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
  }
  return {};
}

Status Downloader::load_active() {
  VALORA_CHECK(end_files());  // those that were whole already
  while (!active_.empty()) {
    give_out_pieces();
    int running = 0;
    if (curl_multi_perform(multi_.get(), &running) != CURLM_OK ||
        curl_multi_poll(multi_.get(), nullptr, 0, kPollMilliseconds, nullptr) != CURLM_OK)
      return internal("libcurl does not go on");
    VALORA_CHECK(collect());
    VALORA_CHECK(end_files());
    if (!active_.empty()) tell(active_.front()->download.file().name);
  }
  return {};
}

void Downloader::give_out_pieces() {
  const TimePoint now = real_clock().now();
  size_t pieces = 0;
  for (const auto& file : active_) pieces += file->download.pieces();
  for (const auto& slot : slots_) {
    if (slot->file == nullptr && pieces < kMostPieces)
      for (const auto& file : active_)
        if (Piece* piece = file->download.next_piece()) {
          slot->file = file.get();
          slot->piece = piece;
          slot->retries = {};
          slot->not_before = {};
          ++pieces;
          break;
        }
    if (slot->file == nullptr || slot->running || slot->not_before > now) continue;
    const RemoteFile& file = slot->file->download.file();
    const std::string& location = slot->file->download.location;
    slot->hops = 0;
    send(*slot, location.empty() ? file_url(settings_, name_, commit_, file.name) : location);
  }
}

void Downloader::send(Slot& slot, const std::string& url) {
  Request request{.url = url};
  if (slot.file->download.ranged()) request.range = {slot.piece->at(), slot.piece->range.end};
  request.take = [this, &slot](std::string_view bytes) { return take(slot, bytes); };
  slot.received_before = slot.piece->received;
  slot.fault = {};
  slot.transfer.prepare(std::move(request));
  slot.running = curl_multi_add_handle(multi_.get(), slot.transfer.handle()) == CURLM_OK;
}

// False ends the request: the reply is not the range, or its bytes cannot be kept.
bool Downloader::take(Slot& slot, std::string_view bytes) {
  const bool first = slot.piece->received == slot.received_before;
  if (first && slot.file->download.ranged()) {
    const Reply reply = slot.transfer.reply(CURLE_OK);
    if (reply.status != 206 || !starts_at(reply, slot.piece->at())) return false;
  }
  slot.fault = slot.file->download.take(*slot.piece, bytes);
  return slot.fault.ok();
}

void Downloader::stop(Slot& slot) {
  if (slot.running) curl_multi_remove_handle(multi_.get(), slot.transfer.handle());
  slot.running = false;
  slot.file = nullptr;
  slot.piece = nullptr;
}

void Downloader::stop_all_of(const Active& file) {
  for (const auto& slot : slots_)
    if (slot->file == &file) stop(*slot);
}

Status Downloader::collect() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const handle = message->easy_handle;
    const CURLcode code = message->data.result;
    for (const auto& slot : slots_) {
      if (slot->file == nullptr || slot->transfer.handle() != handle) continue;
      const Reply reply = slot->transfer.reply(code);
      curl_multi_remove_handle(multi_.get(), handle);
      slot->running = false;
      VALORA_CHECK(ended(*slot, reply));
      break;
    }
  }
  return {};
}

Status Downloader::ended(Slot& slot, const Reply& reply) {
  VALORA_CHECK(slot.fault);
  FileDownload& download = slot.file->download;
  if (!reply.redirect.empty()) {
    Reply failure = reply;
    failure.code = CURLE_TOO_MANY_REDIRECTS;
    if (++slot.hops > kMaxRedirects)
      return refusal(failure, name_, download.file().name, settings_);
    if (!same_origin(reply.redirect, settings_.endpoint)) download.location = reply.redirect;
    send(slot, reply.redirect);
    return {};
  }
  if (slot.piece->complete()) {
    Piece& piece = *slot.piece;
    stop(slot);
    return download.end_of(piece);
  }
  const bool no_range = download.ranged() && (reply.status == 200 || reply.status == 416);
  if (no_range) return start_over(*slot.file, false);
  return failed(slot, reply);
}

// Sends the rest of the piece again, later, or gives up.
Status Downloader::failed(Slot& slot, Reply reply) {
  FileDownload& download = slot.file->download;
  const bool cut = reply.code == CURLE_OK && (reply.status == 200 || reply.status == 206);
  // Links to elsewhere expire; the endpoint gives a new one.
  const bool stale = reply.code == CURLE_OK && reply.status >= 400 &&
                     !same_origin(slot.transfer.request().url, settings_.endpoint);
  Reply seen = reply;
  if (cut || stale) seen.code = CURLE_PARTIAL_FILE;
  download.location.clear();
  const bool progress = download.ranged() && slot.piece->received > slot.received_before;
  const auto wait = slot.retries.after(seen, progress);
  if (!wait) {
    if (cut) reply.code = CURLE_PARTIAL_FILE;
    Error error = refusal(reply, name_, download.file().name, settings_);
    if (download.loaded() > 0)
      error.message += "; what is loaded is kept, and the same command goes on from it";
    return error;
  }
  slot.not_before = real_clock().now() + *wait;
  if (download.ranged()) return {};
  const Retries retries = slot.retries;
  const TimePoint not_before = slot.not_before;
  Active* const file = slot.file;
  VALORA_CHECK(start_over(*file, false));
  slot.file = file;
  slot.piece = file->download.next_piece();
  slot.retries = retries;
  slot.not_before = not_before;
  return {};
}

Status Downloader::start_over(Active& file, bool ranged) {
  stop_all_of(file);
  return file.download.start_over(ranged);
}

Status Downloader::end_files() {
  for (size_t i = 0; i < active_.size();) {
    Active& file = *active_[i];
    if (!file.download.whole()) {
      ++i;
      continue;
    }
    stop_all_of(file);  // a connection may not have said yet that it has ended
    const RemoteFile remote = file.download.file();
    const bool continued = file.download.continued();
    VALORA_TRY(right, file.download.finish(repository_.blob(remote.digest)));
    if (right) {
      finished_ += *remote.size;
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    // What was there from before may have been wrong.
    if (!continued || file.tried_again)
      return unprocessable(
          fmt::format("{} of {} does not have the hash that {} gives it, so nothing of it is kept",
                      remote.name, name_.id(), shown_url(settings_.endpoint)));
    VALORA_TRY(writer, BlobWriter::open(repository_.incomplete(remote.digest), *remote.size,
                                        remote.digest));
    active_[i] = std::make_unique<Active>(
        Active{FileDownload(remote, std::move(writer)), std::move(file.lock), true});
  }
  return {};
}

void Downloader::tell(const std::string& note) {
  const TimePoint now = real_clock().now();
  if (!tell_ || now - told_ < kBetweenTells) return;
  told_ = now;
  uint64_t done = finished_;
  for (const auto& file : active_) done += file->download.loaded();
  tell_({done, total_, note});
}

}  // namespace valora::hub
