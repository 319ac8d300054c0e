// Loads files into the cache's blobs: several at a time, the large ones over several connections.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "hub/cache/blob_lock.h"
#include "hub/cache/hub_cache.h"
#include "hub/client/file_download.h"
#include "hub/client/listing.h"
#include "hub/client/retries.h"
#include "hub/client/transfer.h"
#include "hub/names/hub_name.h"
#include "hub/settings.h"

namespace valora::hub {

struct DownloadProgress {
  uint64_t done = 0, total = 0;  // bytes
  std::string note;              // the current activity
};

class Downloader {
 public:
  using Tell = std::function<void(const DownloadProgress&)>;
  // tell: called several times a second.
  Downloader(const HubSettings& settings, const HubName& name, std::string commit,
             const CachedRepository& repository, Tell tell);
  ~Downloader();

  // Makes all blobs complete. Files that another process loads are waited for. After an error,
  // what has come is kept, and a later call goes on from it.
  Status run(const std::vector<RemoteFile>& files);

 private:
  // A file under way, with its lock.
  struct Active {
    FileDownload download;
    BlobLock lock;
    bool tried_again = false;  // after a wrong hash
  };
  // A connection.
  struct Slot {
    explicit Slot(const HubSettings& settings) : transfer(settings) {}
    Transfer transfer;
    Active* file = nullptr;  // null: free
    Piece* piece = nullptr;
    Retries retries;
    Status fault;  // why the bytes of the piece could not be taken
    int hops = 0;
    uint64_t received_before = 0;  // by the piece, when its request was sent
    bool running = false;
    TimePoint not_before;
  };

  Result<bool> open(const RemoteFile& file);
  Status load_active();
  Status wait_for_others(std::vector<RemoteFile> files);
  void give_out_pieces();
  void send(Slot& slot, const std::string& url);
  bool take(Slot& slot, std::string_view bytes);
  void stop(Slot& slot);
  void stop_all_of(const Active& file);
  Status collect();
  Status ended(Slot& slot, const Reply& reply);
  Status failed(Slot& slot, Reply reply);
  Status end_files();
  Status start_over(Active& file, bool ranged);
  void tell(const std::string& note);

  const HubSettings& settings_;
  const HubName& name_;
  const std::string commit_;
  const CachedRepository& repository_;
  const Tell tell_;
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Active>> active_;
  uint64_t total_ = 0, finished_ = 0;  // bytes of this run
  TimePoint told_;
};

}  // namespace valora::hub
