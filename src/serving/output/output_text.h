// The text of one sequence, detokenized incrementally, its thought apart. Text that may be the
// start of a stop string is held back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/output/thought_splitter.h"
#include "serving/prompts/thoughts.h"
#include "text/detokenizer.h"

namespace valora::serving {

// Shared by the sequences of a request. No stop string is empty.
using StopStrings = std::shared_ptr<const std::vector<std::string>>;
StopStrings make_stop_strings(std::vector<std::string> stop);

// How thoughts are written, and where the answer begins. syntax: outlives the text.
struct ThoughtsApart {
  const ThoughtSyntax* syntax;
  text::ThoughtPlace start;
};

class OutputText {
 public:
  // thoughts: absent: thoughts are text.
  OutputText(std::shared_ptr<const text::Tokenizer> tokenizer, bool skip_special_tokens,
             StopStrings stop, bool include_stop, std::optional<ThoughtsApart> thoughts = {});

  // Lets the text begin as in the middle of another one, where decoders keep a first space.
  void begin_inside_a_text();

  struct Piece {
    std::string thought;              // of the sequence; precedes all text
    int thought_tokens = 0;           // how many tokens of it are known; marks are none
    std::string text;                 // final text
    std::optional<std::string> stop;  // the stop string that ends the sequence here
  };
  // scan: whether stop strings end the sequence; false before min_tokens.
  Piece push(int32_t token, bool scan);
  // Ends the sequence. Returns all text held back.
  Piece finish(bool scan);
  // Whether the next token belongs to the thought. Stop strings do not apply to it.
  bool in_thought() const;

 private:
  std::string text_of(int32_t token);
  int thought_tokens(bool was_open, size_t begun_before, size_t bytes);
  Piece release(std::string_view fresh, bool scan, bool last);

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  text::Detokenizer detokenizer_;  // of all tokens that it gets
  const ThoughtSyntax* syntax_ = nullptr;
  std::optional<ThoughtSplitter> splitter_;
  int begun_tokens_ = 0;  // tokens that may turn out to be the thought's end mark
  StopStrings stop_;
  bool include_stop_;
  std::string held_;
};

}  // namespace valora::serving
