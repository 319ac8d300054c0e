// Helpers to write grammars in the notation of EbnfSpec.
#pragma once

#include <string>
#include <string_view>

namespace valora::grammar {

// A literal: the text in quotes, with escapes.
std::string ebnf_literal(std::string_view text);

}  // namespace valora::grammar
