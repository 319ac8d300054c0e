// "pre_tokenizer" of tokenizer.json: splits text into pieces that the model tokenizes separately.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

struct Span {
  size_t begin;
  size_t end;
};

// Piece i is text[spans[i].begin, spans[i].end). Pieces are in order and never empty. Text between
// them is dropped.
struct Pieces {
  std::string text;
  std::vector<Span> spans;
  // The number of leading bytes that come from the first character of the whole sequence.
  size_t head = 0;

  std::string_view operator[](size_t i) const {
    return std::string_view(text).substr(spans[i].begin, spans[i].end - spans[i].begin);
  }
  bool begins_sequence(size_t i) const { return spans[i].begin < head; }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
  virtual size_t max_growth() const { return 1; }  // the largest factor by which the text can grow
};

// Null JSON yields a null pointer: the text is one piece.
Result<std::unique_ptr<const PreTokenizer>> make_pretokenizer(const Json& json,
                                                              const std::string& where);

}  // namespace valora::text
