#include "server/tools/call_reader.h"

#include <utility>

#include "base/json/json.h"

namespace valora::server {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Nesting limit of a value: JSON trees are destroyed recursively (base/json/json.h).
constexpr int kMaxCallDepth = 64;

bool is_arguments(const std::string& key) { return key == "arguments" || key == "parameters"; }

}  // namespace

size_t CallReader::feed(std::string_view text) {
  size_t taken = 0;
  while (taken < text.size() && !done() && !failed()) {
    text_ += text[taken];
    take(text[taken++]);
  }
  return taken;
}

std::string CallReader::take_arguments() { return std::exchange(arguments_, {}); }

// Parses the tokens of the object itself; values are only scanned for their end.
void CallReader::take(char c) {
  if (state_ == State::kInValue) return in_value(c);
  if (state_ == State::kKey && string_) {
    in_string(c);
    if (string_) return;
    const Json key = Json::parse(std::string_view(text_).substr(token_), nullptr, false);
    state_ = key.is_string() ? State::kColon : State::kFailed;
    if (key.is_string()) key_ = key.get<std::string>();
    return;
  }
  if (is_space(c)) return;
  switch (state_) {
    case State::kStart: state_ = c == '{' ? State::kKey : State::kFailed; return;
    case State::kKey:
      if (c == '}' && key_.empty()) {
        state_ = State::kDone;
      } else if (c == '"') {
        string_ = true;
        token_ = text_.size() - 1;
      } else {
        state_ = State::kFailed;
      }
      return;
    case State::kColon: state_ = c == ':' ? State::kValue : State::kFailed; return;
    case State::kValue: return begin_value(c);
    case State::kNext:
      state_ = c == ',' ? State::kKey : c == '}' ? State::kDone : State::kFailed;
      return;
    default: return;
  }
}

void CallReader::begin_value(char c) {
  token_ = text_.size() - 1;
  depth_ = 0;
  arguments_value_ = is_arguments(key_) && c == '{' && !has_arguments_;
  if (arguments_value_) has_arguments_ = true;
  state_ = State::kInValue;
  in_value(c);
}

void CallReader::in_value(char c) {
  if (string_) {
    if (arguments_value_) arguments_ += c;
    in_string(c);
    if (!string_ && depth_ == 0) end_value();
    return;
  }
  // A number or keyword ends at the first character that does not belong to it.
  if (depth_ == 0 && (c == ',' || c == '}' || is_space(c))) {
    text_.pop_back();
    end_value();
    text_ += c;
    if (state_ == State::kNext && !is_space(c)) take(c);
    return;
  }
  if (arguments_value_) arguments_ += c;
  if (c == '"') string_ = true;
  if ((c == '{' || c == '[') && ++depth_ > kMaxCallDepth) state_ = State::kFailed;
  if (c == '}' || c == ']') {
    if (--depth_ < 0) state_ = State::kFailed;
    if (depth_ == 0) end_value();
  }
}

void CallReader::in_string(char c) {
  if (escape_)
    escape_ = false;
  else if (c == '\\')
    escape_ = true;
  else if (c == '"')
    string_ = false;
}

void CallReader::end_value() {
  state_ = State::kNext;
  const bool name = key_ == "name" && !name_;
  const bool quoted = is_arguments(key_) && !has_arguments_;
  if (!name && !quoted) return;
  const Json value = Json::parse(std::string_view(text_).substr(token_), nullptr, false);
  if (name) {
    if (!value.is_string()) state_ = State::kFailed;
    if (value.is_string()) name_ = value.get<std::string>();
    return;
  }
  // Some models write the arguments as a string that contains the object, or null for none.
  if (value.is_string()) {
    has_arguments_ = true;
    arguments_ += value.get<std::string>();
  } else if (!value.is_null()) {
    state_ = State::kFailed;
  }
}

}  // namespace valora::server
