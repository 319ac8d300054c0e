// Reads one call written as JSON: {"name": …, "arguments": {…}}, or with "parameters".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace valora::server {

class CallReader {
 public:
  // Consumes characters up to the end of the object and returns how many. The first must be "{".
  size_t feed(std::string_view text);
  bool done() const { return state_ == State::kDone; }
  bool failed() const { return state_ == State::kFailed; }
  const std::string& text() const { return text_; }  // the text consumed so far

  // Set once the whole name has been read.
  const std::optional<std::string>& name() const { return name_; }
  // Returns the arguments read since the last call; "" before they begin.
  std::string take_arguments();
  bool has_arguments() const { return has_arguments_; }

 private:
  enum class State { kStart, kKey, kColon, kValue, kInValue, kNext, kDone, kFailed };

  void take(char c);
  void begin_value(char c);
  void in_value(char c);
  void end_value();
  void in_string(char c);

  State state_ = State::kStart;
  std::string text_;
  std::string key_;
  size_t token_ = 0;  // where the current key or value begins
  int depth_ = 0;     // bracket depth within the value
  bool string_ = false, escape_ = false;
  bool arguments_value_ = false;  // the value is the arguments, an object
  bool has_arguments_ = false;
  std::optional<std::string> name_;
  std::string arguments_;
};

}  // namespace valora::server
