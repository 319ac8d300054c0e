#include "server/http/client_stream.h"

namespace valora::server {

void ClientStream::close(bool writing) noexcept {
  boost::system::error_code ignored;
  if (tls_ && !writing && !finishing_) {
    socket().cancel(ignored);  // a pending read has the buffer that shutdown() reads into
    socket().non_blocking(true, ignored);
    tls_->shutdown(ignored);
  }
  socket().close(ignored);
}

}  // namespace valora::server
