# xgrammar's C++ library without its Python binding and tests, from the sources that tools/setup unpacked. Built with
# neither our warnings nor our sanitizers; only src/grammar links it.

# Strings with minLength or maxLength could hold control characters, which JSON does not allow.
function(valora_mend_xgrammar source output)
  file(READ ${source} text)
  set(wrong [=[{{'"', '"'}, {'\\', '\\'}, {'\r', '\r'}, {'\n', '\n'}}, true);]=])
  set(right [=[{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, true);]=])
  string(REPLACE "${wrong}" "${right}" mended "${text}")
  if(mended STREQUAL text)
    message(FATAL_ERROR "${source} is not as expected: check whether strings of bounded length are mended")
  endif()
  file(WRITE ${output}.new "${mended}")
  configure_file(${output}.new ${output} COPYONLY)
endfunction()

function(valora_add_xgrammar)
  set(list ${PROJECT_SOURCE_DIR}/tools/requirements-sources.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} line REGEX "^xgrammar==")
  string(REGEX MATCH "^xgrammar==([^ ]+)" unused "${line}")
  set(folder ${PROJECT_SOURCE_DIR}/.venv/src/xgrammar-${CMAKE_MATCH_1})
  file(GLOB_RECURSE sources ${folder}/cpp/*.cc)
  list(FILTER sources EXCLUDE REGEX "/cpp/tvm_ffi/")
  list(FILTER sources EXCLUDE REGEX "/json_schema_converter\\.cc$")
  if(NOT sources)
    message(FATAL_ERROR "${folder} has no sources of xgrammar; run tools/setup")
  endif()
  set(mended ${CMAKE_CURRENT_BINARY_DIR}/xgrammar/json_schema_converter.cc)
  valora_mend_xgrammar(${folder}/cpp/json_schema_converter.cc ${mended})
  add_library(xgrammar STATIC ${sources} ${mended})
  target_compile_features(xgrammar PRIVATE cxx_std_17)
  set_target_properties(xgrammar PROPERTIES CXX_STANDARD 17 SOURCE_FOLDER ${folder})
  target_compile_options(xgrammar PRIVATE -w)
  target_compile_definitions(xgrammar PUBLIC XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0
    XGRAMMAR_LOG_CUSTOMIZE=1)
  target_include_directories(xgrammar SYSTEM PUBLIC ${folder}/include ${folder}/cpp ${folder}/3rdparty/dlpack/include
    PRIVATE ${folder}/3rdparty/picojson)
endfunction()
