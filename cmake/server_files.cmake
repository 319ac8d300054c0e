# Generates C++ sources from files of src/server, so that the program needs none of them at run time.

# valora_page_files(OUTPUT): the page in src/server/page/assets. C++ compilers need not support strings longer than 64
# KiB.
function(valora_page_files output)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/server/page/assets/*)
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(SIZE ${file} size)
    if(size GREATER 65000)
      message(FATAL_ERROR "${file} has ${size} bytes; 65000 is the most for a file of the page")
    endif()
    file(READ ${file} text)
    file(SHA256 ${file} digest)
    string(SUBSTRING ${digest} 0 16 tag)
    string(APPEND entries "    {\"${name}\", R\"page(${text})page\", \"\\\"${tag}\\\"\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"#include \"server/page/page_files.h\"

#include <array>

namespace valora::server {

std::span<const PageFile> page_files() {
  static constexpr auto files = std::to_array<PageFile>({
@entries@  });
  return files;
}

}  // namespace valora::server
")
endfunction()

# valora_api_tables(OUTPUT): the fields of requests and answers.
function(valora_api_tables output)
  set(folder ${PROJECT_SOURCE_DIR}/src/server/openai)
  file(READ ${folder}/request_fields.json fields)
  file(READ ${folder}/answer_shapes.json shapes)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${folder}/request_fields.json ${folder}/answer_shapes.json)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"#include \"server/openai/request_fields.h\"

namespace valora::server {

std::string_view request_fields_text() { return R\"fields(@fields@)fields\"; }

std::string_view answer_shapes_text() { return R\"fields(@shapes@)fields\"; }

}  // namespace valora::server
")
endfunction()
