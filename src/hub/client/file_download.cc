#include "hub/client/file_download.h"

#include <algorithm>

namespace valora::hub {

FileDownload::FileDownload(RemoteFile file, BlobWriter writer)
    : file_(std::move(file)),
      writer_(std::move(writer)),
      ranged_(*file_.size > kPieceBytes || writer_.written() > 0),
      next_(writer_.written()) {}

uint64_t FileDownload::loaded() const {
  uint64_t bytes = writer_.written();
  for (const auto& piece : pieces_) bytes += piece->waiting.size();
  return bytes;
}

Piece* FileDownload::next_piece() {
  if (next_ == *file_.size) return nullptr;
  const uint64_t end = ranged_ ? std::min(next_ + kPieceBytes, *file_.size) : *file_.size;
  pieces_.push_back(std::make_unique<Piece>(Piece{{next_, end}}));
  next_ = end;
  return pieces_.back().get();
}

Status FileDownload::take(Piece& piece, std::string_view bytes) {
  if (bytes.size() > piece.range.end - piece.at())
    return invalid(file_.name + " is longer than the list of files says");
  if (&piece == pieces_.front().get())
    VALORA_CHECK(writer_.append(bytes));
  else
    piece.waiting += bytes;
  piece.received += bytes.size();
  return {};
}

Status FileDownload::end_of(Piece& piece) {
  piece.ended = true;
  while (!pieces_.empty() && pieces_.front()->ended) {
    pieces_.pop_front();
    if (pieces_.empty()) break;
    VALORA_CHECK(writer_.append(pieces_.front()->waiting));
    pieces_.front()->waiting = {};
  }
  return {};
}

Status FileDownload::start_over(bool ranged) {
  pieces_.clear();
  next_ = 0;
  ranged_ = ranged;
  return writer_.restart();
}

}  // namespace valora::hub
