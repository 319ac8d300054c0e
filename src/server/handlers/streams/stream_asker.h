// Asks the chats of streams through the server's own handlers, in the name of each stream's owner.
#pragma once

#include <memory>

#include "server/batches/row_thread.h"
#include "server/handlers/service.h"
#include "streams/stream.h"

namespace valora::server {

class StreamAsker {
 public:
  explicit StreamAsker(std::shared_ptr<Service> service) : service_(std::move(service)) {}

  // What streams need. Their questions must end before this object does.
  streams::StreamParts parts(const MediaAccess& media);

 private:
  std::function<void()> ask(const std::string& owner, std::string body,
                            std::function<void(streams::ChatAnswer)> done);

  const std::shared_ptr<Service> service_;
  RowThread thread_;
};

// The rules of media as streams take them.
media::FetchPolicy fetch_policy(const MediaAccess& media);

}  // namespace valora::server
