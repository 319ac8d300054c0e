# xgrammar's C++ library without its Python binding and tests, from the sources unpacked by tools/setup. Built with
# neither our warnings nor our sanitizers; only src/grammar links it.

# Replaces each occurrence of `wrong` in the caller's `text`.
function(valora_mend wrong right)
  string(REPLACE "${wrong}" "${right}" mended "${text}")
  if(mended STREQUAL text)
    message(FATAL_ERROR "${source} is not as expected: check what is mended here")
  endif()
  set(text "${mended}" PARENT_SCOPE)
endfunction()

# Makes strings valid JSON. Unmodified, xgrammar lets strings with minLength or maxLength contain control characters, and
# quoted parts of e-mail addresses invalid escapes. The name of an additional property may equal a named one, spelled with
# escapes or non-ASCII characters, or contain its quotation mark: here a name has no escapes while it is a prefix of a
# named one, and diverges at the first such character.
macro(valora_mend_strings)
  valora_mend([=[{{'"', '"'}, {'\\', '\\'}, {'\r', '\r'}, {'\n', '\n'}}, true);]=]
    [=[{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, true);]=])
  valora_mend([=["^(" + dot_string + "|" + quoted_string + ")@"]=] [=["^" + dot_string + "@"]=])
  valora_mend([=[    excluded.push_back({character, character});
  }
  choices.push_back(Sequence({builder_.AddCharacterClass(excluded, true), RuleRef(kBasicStringSub)})
  );
  choices.push_back(Sequence({ByteString("\\"), RuleRef(kBasicEscape), RuleRef(kBasicStringSub)}));
  for (const auto& [character, child] : node.children) {
]=] [=[    if (character < 0x80) excluded.push_back({character, character});
    else excluded.push_back({0x80, 0x10ffff});
  }
  choices.push_back(Sequence({builder_.AddCharacterClass(excluded, true), RuleRef(kBasicStringSub)})
  );
  for (const auto& [character, child] : node.children) {
    if (character >= 0x80) continue;
]=])
  valora_mend([=[      cur = &cur->children[c];
    }
    cur->is_terminal = true;
]=] [=[      if (c < 0x20 || c == '"' || c == '\\') cur = nullptr;
      else cur = &cur->children[c];
      if (c >= 0x80) cur = nullptr;
      if (cur == nullptr) break;
    }
    if (cur != nullptr) cur->is_terminal = true;
]=])
endmacro()

# xgrammar compiles a pattern for the inside of JSON strings only if it is ASCII and needs no escape; with others it
# produces strings that are not JSON. Its negated classes also allow bytes that are not UTF-8.
macro(valora_mend_patterns)
  valora_mend([=[return AddSubGrammar(Grammar::FromEBNF(RegexToEBNF(regex)));]=]
    [=[Grammar expanded = Grammar::FromEBNF(RegexToEBNF(regex));
  return AddSubGrammar(json_string ? JSONStringBody().Apply(expanded) : expanded);]=])
  valora_mend([=[bool can_use_fsm = !force_cfg_expansion;]=] [=[bool can_use_fsm = !force_cfg_expansion;
  for (const char* negative : {"[^", ".", "\\S", "\\D", "\\W"})
    can_use_fsm = can_use_fsm && regex.find(negative) == std::string::npos;]=])
  valora_mend([=[#include "json_schema_converter.h"]=] [=[#include "grammar/json_string_body.h"
#include "json_schema_converter.h"]=])
endmacro()

# "." excludes line breaks, and \S excludes spaces, as in both ECMA-262 and Python; inside a class, \s and \S follow
# ECMA-262, so that [\s\S] is any character. A class that begins with \^ is not negated.
macro(valora_mend_regex)
  valora_mend([=[AddEBNFSegment(R"([\u0000-\U0010FFFF])");]=] [=[AddEBNFSegment(R"([^\n\r\u2028\u2029])");]=])
  valora_mend([=[return R"([^\f\n\r\t\v\u0020\u00a0])";]=]
    [=[return R"([^\t-\r\x1C-\x20\x85\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF])";]=])
  valora_mend([=[return R"(\x00-\x08\x0E-\x1F\x21-\x9F\xA1-\U0010FFFF)";]=]
    [=[return R"(\x00-\x08\x0E-\x1F\x21-\x9F\xA1-\u167F\u1681-\u1FFF\u200B-\u2027)"
           R"(\u202A-\u202E\u2030-\u205E\u2060-\u2FFF\u3001-\uFEFE\uFF00-\U0010FFFF)";]=])
  valora_mend([=[return R"(\f\n\r\t\v\u0020\u00a0)";]=]
    [=[return R"(\t-\r\x20\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF)";]=])
  valora_mend([=[if (res == "]" || res == "-") {]=] [=[if (res == "^") return "\\x5E";
    if (res == "]" || res == "-") {]=])
endmacro()

# Two values of max_whitespace_cnt select spacings (src/grammar/schema/schema_rewrite.h). Printed JSON: at most one
# space, or, after "{", "[" and "," and before "}" and "]", a line break with indentation. Compact: ", " and ": ". The
# set of what may follow a string is then a superset for both spacings; it only serves to rule out tokens early.
macro(valora_mend_spacing)
  valora_mend([=[// ==================== JSONSchemaConverter Implementation ====================
]=] [=[static constexpr int kPrintedSpacing = 1000001, kCompactSpacing = 1000002;
]=])
  valora_mend([=[int32_t JSONSchemaConverter::WhitespaceExpression() {
]=] [=[int32_t JSONSchemaConverter::WhitespaceExpression() {
  if (max_whitespace_cnt_ == kCompactSpacing) return Empty();
  if (max_whitespace_cnt_ == kPrintedSpacing) {
    if (!whitespace_expr_id_.has_value()) {
      int32_t spaces = Repeat("indent", builder_.AddCharacterClass({{' ', ' '}}), 0, 32);
      int32_t tabs = Repeat("indent", builder_.AddCharacterClass({{'\t', '\t'}}), 1, 8);
      int32_t line = Sequence({ByteString("\n"), Choice({spaces, tabs})});
      int32_t body = Choice({Empty(), ByteString(" "), line});
      whitespace_expr_id_ = RuleRef(builder_.AddRuleWithHint("whitespace", body));
    }
    return *whitespace_expr_id_;
  }
]=])
  valora_mend([=[      expression.compare(expression.size() - suffix.size(), suffix.size(), suffix) == 0) {
]=] [=[      expression.compare(expression.size() - suffix.size(), suffix.size(), suffix) == 0) {
    const std::string mark =
        expression.substr(prefix.size(), expression.size() - prefix.size() - suffix.size());
    if (max_whitespace_cnt_ == kCompactSpacing && (mark == "\":\"" || mark == "\",\""))
      return Sequence({FormattingExpression(mark), ByteString(" ")});
    if (max_whitespace_cnt_ == kPrintedSpacing && mark == "\",\"")
      return Sequence({FormattingExpression(mark), WhitespaceExpression()});
    if (max_whitespace_cnt_ == kPrintedSpacing && mark == "\":\"") {
      int32_t space = Choice({Empty(), ByteString(" ")});
      return Sequence({space, FormattingExpression(mark), space});
    }
]=])
endmacro()

# Limits numbers to the digits that 64 bits need, and some more, and times to nanoseconds.
macro(valora_mend_digits)
  valora_mend([=[builder_.AddCharacterClassStar({{'0', '9'}})]=]
    [=[Repeat(rule_name + "_digits", builder_.AddCharacterClass({{'0', '9'}}), 0, 23)]=])
  valora_mend([=[Repeat(rule_name + "_digits", builder_.AddCharacterClass({{'0', '9'}}), 1, -1)]=]
    [=[Repeat(rule_name + "_digits", builder_.AddCharacterClass({{'0', '9'}}), 1, 24)]=])
  valora_mend([=[            Choice({Empty(), builder_.AddCharacterClass({{'+', '+'}, {'-', '-'}})}),
            one_or_more_digits}]=]
    [=[            Choice({Empty(), builder_.AddCharacterClass({{'+', '+'}, {'-', '-'}})}),
            Repeat(rule_name + "_digits", builder_.AddCharacterClass({{'0', '9'}}), 1, 3)}]=])
  valora_mend([=[[1-9]\\d*]=] [=[[1-9]\\d{0,23}]=])
  valora_mend([=["[1-9]\\d{" + std::to_string(len) + ",}"]=] [=["[1-9]\\d{" + std::to_string(len) + ",23}"]=])
  valora_mend([=[\\.\\d+)?(Z|]=] [=[\\.\\d{1,9})?(Z|]=])
endmacro()

# The Earley parser goes through the states of ambiguous grammars without allocating; poll_budget() looks at the
# time and at requested stops there (src/grammar/budget.h).
macro(valora_mend_polls)
  valora_mend([=[#include "earley_parser.h"]=] [=[#include "earley_parser.h"
#include "grammar/budget_poll.h"]=])
  valora_mend([=[  tmp_states_visited_in_queue_.Clear();
  tmp_states_to_be_added_.clear();]=] [=[  valora::grammar::poll_budget();
  tmp_states_visited_in_queue_.Clear();
  tmp_states_to_be_added_.clear();]=])
  valora_mend([=[    auto [scanable, completable] = Predict(state, debug_print);]=] [=[    valora::grammar::poll_budget();
    auto [scanable, completable] = Predict(state, debug_print);]=])
endmacro()

# x{n,} with a large n becomes x{n} x*, not x* x{n}: with the endless part first, each character may also be the first of
# the others, so the states of the parser grow with every character.
macro(valora_mend_repetitions)
  valora_mend([=[  if (infinite_repetition_id.has_value()) {
    repeated_sequence.push_back(infinite_repetition_id.value());
  }

  // The repetition body.]=] [=[  // The repetition body.]=])
  valora_mend([=[    repeated_sequence.push_back(grammar_expr_id);
  }

  // Add the sequence to choices.]=] [=[    repeated_sequence.push_back(grammar_expr_id);
  }
  if (infinite_repetition_id.has_value()) {
    repeated_sequence.push_back(infinite_repetition_id.value());
  }

  // Add the sequence to choices.]=])
endmacro()

# Looks at the time and at stops for each token of the vocabulary where triggers are searched in all of them.
macro(valora_mend_triggers)
  valora_mend([=[#include "earley_parser.h"]=] [=[#include "earley_parser.h"
#include "grammar/budget_poll.h"]=])
  valora_mend([=[      bool definite_accept_since_second_char = true;
]=] [=[      bool definite_accept_since_second_char = true;
      valora::grammar::poll_budget();
]=])
endmacro()

# Writes `output`: `source` with the changes of these macros.
function(valora_mend_source source output)
  file(READ ${source} text)
  foreach(mend IN LISTS ARGN)
    cmake_language(CALL valora_mend_${mend})
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
  list(FILTER sources EXCLUDE REGEX "/(json_schema_converter|regex_converter|earley_parser|grammar_compiler|grammar_functor)\\.cc$")
  if(NOT sources)
    message(FATAL_ERROR "${folder} has no sources of xgrammar; run tools/setup")
  endif()
  if(VALORA_UNITY)  # as valora_unite; the mended sources have names of others'
    list(TRANSFORM sources REPLACE "^${folder}/cpp/(.+)$" "#include \"\\1\"")
    list(JOIN sources "\n" united)
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/xgrammar/united.cc)
    file(CONFIGURE OUTPUT ${sources} CONTENT "${united}\n" @ONLY)
  endif()
  set(mended)
  foreach(changes "json_schema_converter;strings;patterns;spacing;digits" "regex_converter;regex" "earley_parser;polls"
      "grammar_compiler;triggers" "grammar_functor;repetitions")
    list(POP_FRONT changes name)
    valora_mend_source(${folder}/cpp/${name}.cc ${CMAKE_CURRENT_BINARY_DIR}/xgrammar/${name}.cc ${changes})
    list(APPEND mended ${CMAKE_CURRENT_BINARY_DIR}/xgrammar/${name}.cc)
  endforeach()
  add_library(xgrammar STATIC ${sources} ${mended})
  target_compile_features(xgrammar PRIVATE cxx_std_17)
  set_target_properties(xgrammar PROPERTIES CXX_STANDARD 17 SOURCE_FOLDER ${folder})
  target_compile_options(xgrammar PRIVATE -w)
  target_compile_definitions(xgrammar PUBLIC XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0
    XGRAMMAR_LOG_CUSTOMIZE=1)
  target_include_directories(xgrammar SYSTEM PUBLIC ${folder}/include ${folder}/cpp ${folder}/3rdparty/dlpack/include
    PRIVATE ${folder}/3rdparty/picojson ${PROJECT_SOURCE_DIR}/src)
endfunction()
