# xgrammar's C++ library without its Python binding and tests, from the sources that tools/setup unpacked. Built with
# neither our warnings nor our sanitizers; only src/grammar links it.

# What is mended: strings with minLength or maxLength could hold control characters, and quoted parts of e-mail addresses
# escapes, that JSON does not allow. Beside named properties, the name of another one could be one of them, spelled with
# escapes or with characters beyond ASCII, and hold a quotation mark of theirs: a name has no escapes as long as it is the
# beginning of a named one, and leaves it at the first such character.
function(valora_mend_xgrammar source output)
  file(READ ${source} text)
  set(wrong_1 [=[{{'"', '"'}, {'\\', '\\'}, {'\r', '\r'}, {'\n', '\n'}}, true);]=])
  set(right_1 [=[{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, true);]=])
  set(wrong_2 [=["^(" + dot_string + "|" + quoted_string + ")@"]=])
  set(right_2 [=["^" + dot_string + "@"]=])
  set(wrong_3 [=[    excluded.push_back({character, character});
  }
  choices.push_back(Sequence({builder_.AddCharacterClass(excluded, true), RuleRef(kBasicStringSub)})
  );
  choices.push_back(Sequence({ByteString("\\"), RuleRef(kBasicEscape), RuleRef(kBasicStringSub)}));
  for (const auto& [character, child] : node.children) {
]=])
  set(right_3 [=[    if (character < 0x80) excluded.push_back({character, character});
    else excluded.push_back({0x80, 0x10ffff});
  }
  choices.push_back(Sequence({builder_.AddCharacterClass(excluded, true), RuleRef(kBasicStringSub)})
  );
  for (const auto& [character, child] : node.children) {
    if (character >= 0x80) continue;
]=])
  set(wrong_4 [=[      cur = &cur->children[c];
    }
    cur->is_terminal = true;
]=])
  set(right_4 [=[      if (c < 0x20 || c == '"' || c == '\\') cur = nullptr;
      else cur = &cur->children[c];
      if (c >= 0x80) cur = nullptr;
      if (cur == nullptr) break;
    }
    if (cur != nullptr) cur->is_terminal = true;
]=])
  foreach(place 1 2 3 4)
    string(REPLACE "${wrong_${place}}" "${right_${place}}" mended "${text}")
    if(mended STREQUAL text)
      message(FATAL_ERROR "${source} is not as expected: check what is mended here")
    endif()
    set(text "${mended}")
  endforeach()
  file(WRITE ${output}.new "${text}")
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
  if(VALORA_UNITY)  # as valora_unite; the mended source has a name of another one's
    list(TRANSFORM sources REPLACE "^${folder}/cpp/(.+)$" "#include \"\\1\"")
    list(JOIN sources "\n" united)
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/xgrammar/united.cc)
    file(CONFIGURE OUTPUT ${sources} CONTENT "${united}\n" @ONLY)
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
