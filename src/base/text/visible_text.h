// Characters that change how the text around them is displayed: terminals obey control characters,
// and bidirectional controls reorder a line.
#pragma once

#include <string>
#include <string_view>

namespace valora {

// True if the text contains a control character (C0, DEL, C1), a line or paragraph separator, a
// bidirectional control, a byte order mark, or bytes that are not UTF-8.
bool has_hidden_characters(std::string_view text);

// True if the text contains an invisible character (Unicode's Default_Ignorable_Code_Point:
// zero-width spaces and joiners, variation selectors), which makes it look like a different text.
bool has_invisible_characters(std::string_view text);

// Escapes hidden characters: "\n" becomes "\\n", U+202E "\\u{202e}", and a byte that is not UTF-8
// "\\xff". Tabs are kept.
std::string visible(std::string_view text);

}  // namespace valora
