// The files of the built-in page, compiled into the program (cmake/server_files.cmake).
#pragma once

#include <span>
#include <string_view>

namespace valora::server {

struct PageFile {
  std::string_view name;  // "app.js"
  std::string_view text;
  std::string_view tag;  // entity tag of the text, with quotes
};

std::span<const PageFile> page_files();

}  // namespace valora::server
