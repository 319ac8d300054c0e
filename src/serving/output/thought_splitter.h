// Separates the thought of an answer from the rest, in text that arrives in pieces. How it is cut
// does not change the parts.
#pragma once

#include <string>
#include <string_view>

#include "text/chat/thought_marks.h"

namespace valora::serving {

// Line breaks that separate the thought from its marks, and the answer from the end mark, belong to
// neither. An answer without a thought is unchanged.
class ThoughtSplitter {
 public:
  // marks: outlives this object. start: where the answer begins.
  ThoughtSplitter(const text::ThoughtMarks& marks, text::ThoughtPlace start)
      : marks_(&marks), place_(start) {}

  struct Parts {
    std::string thought, answer;
  };
  // The parts that are final. The thought comes first.
  Parts feed(std::string_view text);
  // Ends the answer: the rest.
  Parts finish();

  // The place of the next character.
  text::ThoughtPlace place() const { return place_; }
  // Within the thought: how many bytes of its end mark are at the end of the text so far.
  size_t end_begun() const;

 private:
  bool step(Parts& parts);
  bool begin();
  bool open();
  bool close(Parts& parts);

  const text::ThoughtMarks* marks_;
  text::ThoughtPlace place_;
  std::string held_;          // undecided text
  bool opened_ = false;       // the thought's first character, or a begin mark, is decided
  bool skips_lines_ = false;  // line breaks after the end mark
};

}  // namespace valora::serving
