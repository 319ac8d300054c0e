// The parts of a chat message.
#pragma once

#include <string>
#include <utility>

#include "text/chat/chat.h"

namespace valora::text::testing {

inline ChatPart text(std::string s) { return {ChatPart::Kind::kText, std::move(s)}; }
inline ChatPart image() { return {ChatPart::Kind::kImage, {}}; }
inline ChatPart video() { return {ChatPart::Kind::kVideo, {}}; }

}  // namespace valora::text::testing
