// The grammar of the text in which a model writes boxes.
#pragma once

#include <string>

#include "base/box_notation.h"
#include "base/labels.h"

namespace valora::serving {

// In EBNF. labels: those that may be written; empty: any. The style is kText or kJson: models
// write marks that are special tokens only without a grammar.
std::string box_grammar(const BoxNotation& notation, const Labels& labels);

}  // namespace valora::serving
