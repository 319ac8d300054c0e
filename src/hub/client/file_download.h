// One file while it is loaded in pieces, several at a time. Only the first piece that is not
// complete goes to disk as its bytes come; later ones wait in memory. So what is on disk is always
// the beginning of the file, from which any process can go on.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/cache/blob_writer.h"
#include "hub/client/listing.h"
#include "hub/client/transfer.h"

namespace valora::hub {

inline constexpr uint64_t kPieceBytes = uint64_t{8} << 20;

struct Piece {
  ByteRange range;
  uint64_t received = 0;
  std::string waiting;  // received, but not at its turn
  bool ended = false;   // no connection refers to it any longer

  uint64_t at() const { return range.begin + received; }
  bool complete() const { return at() == range.end; }
};

class FileDownload {
 public:
  // writer: with what is there from before.
  FileDownload(RemoteFile file, BlobWriter writer);

  const RemoteFile& file() const { return file_; }
  // False if the server sends the file as a whole only, in one piece that cannot be continued.
  bool ranged() const { return ranged_; }
  bool whole() const { return writer_.whole(); }
  bool continued() const { return writer_.continued(); }
  // On disk and in memory.
  uint64_t loaded() const;
  size_t pieces() const { return pieces_.size(); }

  // The next piece to ask for; null if all have been given out. It lives until end_of(), or until
  // start_over().
  Piece* next_piece();
  // The next bytes of a piece. kInvalidArgument if they are more than asked for; otherwise an error
  // of the disk.
  Status take(Piece& piece, std::string_view bytes);
  // Call it once a complete piece is no longer used.
  Status end_of(Piece& piece);
  // Drops all pieces and what is on disk.
  Status start_over(bool ranged);
  Result<bool> finish(const std::string& blob) { return writer_.finish(blob); }

  // Where the endpoint's redirect leads; empty: not known yet, or no longer valid.
  std::string location;

 private:
  RemoteFile file_;
  BlobWriter writer_;
  bool ranged_;
  uint64_t next_ = 0;  // first byte that no piece has
  std::deque<std::unique_ptr<Piece>> pieces_;
};

}  // namespace valora::hub
