// The text of one sequence, detokenized incrementally. Text that may be the start of a stop string
// is held back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/detokenizer.h"

namespace valora::serving {

// Shared by the sequences of a request. No stop string is empty.
using StopStrings = std::shared_ptr<const std::vector<std::string>>;
StopStrings make_stop_strings(std::vector<std::string> stop);

class OutputText {
 public:
  OutputText(std::shared_ptr<const text::Tokenizer> tokenizer, bool skip_special_tokens,
             StopStrings stop, bool include_stop);

  struct Piece {
    std::string text;                 // final text
    std::optional<std::string> stop;  // the stop string that ends the sequence here
  };
  // scan: whether stop strings end the sequence; false before min_tokens.
  Piece push(int32_t token, bool scan);
  // Ends the sequence. Returns all text held back.
  Piece finish(bool scan);

 private:
  Piece release(std::string_view fresh, bool scan, bool last);

  text::Detokenizer detokenizer_;
  StopStrings stop_;
  bool include_stop_;
  std::string held_;
};

}  // namespace valora::serving
