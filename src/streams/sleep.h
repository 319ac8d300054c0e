// A pause that a stop ends.
#pragma once

#include <chrono>
#include <stop_token>

namespace valora::streams {

void sleep_for(std::chrono::milliseconds time, const std::stop_token& stop);

}  // namespace valora::streams
