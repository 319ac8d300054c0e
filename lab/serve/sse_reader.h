// Incremental parser of server-sent events.
#pragma once

#include <string>
#include <string_view>

namespace valora::bench {

class SseReader {
 public:
  // Calls on_data(text) with the data of each event that these bytes complete.
  template <typename OnData>
  void feed(std::string_view bytes, OnData&& on_data) {
    for (const char c : bytes) {
      if (c != '\n') {
        line_ += c;
        continue;
      }
      if (!line_.empty() && line_.back() == '\r') line_.pop_back();
      if (line_.starts_with("data:"))
        add(std::string_view(line_).substr(5));
      else if (line_.empty() && has_data_)
        finish(on_data);
      line_.clear();
    }
  }

 private:
  void add(std::string_view data) {
    if (data.starts_with(' ')) data.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += data;
    has_data_ = true;
  }
  template <typename OnData>
  void finish(OnData&& on_data) {
    on_data(std::string_view(data_));
    data_.clear();
    has_data_ = false;
  }

  std::string line_, data_;
  bool has_data_ = false;
};

}  // namespace valora::bench
