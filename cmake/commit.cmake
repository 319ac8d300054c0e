# Writes the source that holds the checkout's commit, unless it is the same: cmake -DSOURCE=… -DOUTPUT=… -P commit.cmake
cmake_minimum_required(VERSION 3.25)
find_program(GIT git)
set(commit unknown)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit ${found})
    execute_process(COMMAND ${GIT} -C ${SOURCE} diff-index --quiet HEAD -- RESULT_VARIABLE changed OUTPUT_QUIET ERROR_QUIET)
    if(changed)
      string(APPEND commit +changes)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "#include \"cli/build_info.h\"

namespace valora::cli {
const char* const kCommit = \"${commit}\";
}  // namespace valora::cli
")
