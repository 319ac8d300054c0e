# Functions that build a folder of src/ as a library, and its *_test.cc files as one test program.
find_program(CCACHE ccache)
if(CCACHE)
  # Checkouts at different paths share results: sources are named relative to the build folder, so no option names an
  # absolute path. Precompiled headers require the sloppiness setting.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_INODECACHE=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  add_compile_options(-fdebug-prefix-map=${CMAKE_BINARY_DIR}=.)
endif()

# Uses a linker faster than binutils' if available: it links programs with libtorch in a fraction of the time.
include(CheckLinkerFlag)
foreach(linker mold lld)
  check_linker_flag(CXX -fuse-ld=${linker} VALORA_HAS_${linker})
  if(VALORA_HAS_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
if(VALORA_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(VALORA_TORCH)
  find_package(Torch REQUIRED)
endif()

# libtorch's headers include another version of fmt. The system's fmt, which spdlog uses, must come first.
find_package(fmt REQUIRED)
get_target_property(FMT_INCLUDE fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/first)
file(CREATE_LINK ${FMT_INCLUDE}/fmt ${CMAKE_BINARY_DIR}/first/fmt SYMBOLIC)

add_library(valora_flags INTERFACE)
target_include_directories(valora_flags INTERFACE ${CMAKE_BINARY_DIR}/first)
target_include_directories(valora_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(valora_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False positives of g++ 12 in std::string; it reports the last two only if <string> is in a precompiled header.
  target_compile_options(valora_flags INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(valora_flags INTERFACE -Wno-deprecated-declarations)  # std::stable_sort calls what libstdc++ 12 deprecates
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # As on x86-64, whose baseline has no fused multiply-adds: with them, pictures would be resized to other pixels than PIL's.
  target_compile_options(valora_flags INTERFACE -ffp-contract=off)
endif()
target_compile_definitions(valora_flags INTERFACE VALORA_VERSION="${PROJECT_VERSION}")
if(VALORA_SANITIZE)
  # g++ 12 reports its own sanitizer checks as reads of uninitialised values. The null check is off because it takes a
  # tenth of the compile time, and dereferencing null ends the program anyway. Those for arguments that must not be null, for
  # pointers that overflow and for ends that are not reached take a tenth to a fifth; compiler warnings and the address
  # sanitizer find most of these faults. The check of virtual tables opens a pipe, so it reports a fault where a test has
  # used up the file descriptors. That of alignment takes half, so only rooms that read numbers from raw memory have it.
  set(VALORA_ALIGNMENT_CHECKED base kernels media memory)
  target_compile_options(valora_flags INTERFACE -fsanitize=${VALORA_SANITIZE}
    -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute,pointer-overflow,object-size,return,unreachable,vptr$<$<NOT:$<BOOL:$<TARGET_PROPERTY:VALORA_CHECKS_ALIGNMENT>>>:,alignment> -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(valora_flags INTERFACE -fsanitize=${VALORA_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND VALORA_SANITIZE STREQUAL "thread")
    # Tests replace operator new (base/testing/allocation_faults.h), which Clang's static library for threads does not allow.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-resource-dir OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE)
    target_link_options(valora_flags INTERFACE -shared-libsan -Wl,-rpath,${resources}/lib/linux)
  endif()
endif()
if(VALORA_FUZZ)
  # All code is instrumented for coverage; the first sanitizer finding ends the run.
  target_compile_options(valora_flags INTERFACE -fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()

# valora_pch(NAME header…): a precompiled header shared by libraries and test programs. tools/lint checks the sources
# without it, so that each includes what it uses.
function(valora_pch name)
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cc "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PUBLIC valora_flags fmt::fmt)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# The standard headers and fmt, which take a third of the compile time of most files. Not nlohmann/json.hpp: its literals
# make g++ instantiate the whole parser in each file. Not <filesystem>: it makes std::quoted visible, which would be
# chosen over our function of that name.
set(VALORA_STD_HEADERS <fmt/format.h> <algorithm> <functional> <map> <memory> <optional> <set> <span> <string>
  <string_view> <unordered_map> <variant> <vector>)
function(valora_use_std_pch target)
  if(NOT TARGET valora_std_pch)
    valora_pch(valora_std_pch ${VALORA_STD_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM valora_std_pch)
endfunction()

# ATen's headers take seconds per file; most of these files also include fmt and JSON.
set(VALORA_ATEN_HEADERS <ATen/ATen.h> <fmt/format.h> <nlohmann/json.hpp>)
function(valora_link_torch target)
  # The system's C++ library before libtorch: a CUDA libtorch exports an old std::filesystem, whose remove_all crashes.
  target_link_libraries(${target} PUBLIC -Wl,--no-as-needed stdc++ -Wl,--as-needed ${TORCH_LIBRARIES})
  target_include_directories(${target} SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
endfunction()
function(valora_use_torch target)
  valora_link_torch(${target})
  if(NOT TARGET valora_aten_pch)
    valora_pch(valora_aten_pch ${VALORA_ATEN_HEADERS})
    target_link_libraries(valora_aten_pch PUBLIC nlohmann_json::nlohmann_json)
    valora_link_torch(valora_aten_pch)
  endif()
  target_precompile_headers(${target} REUSE_FROM valora_aten_pch)
endfunction()

# Tests with little computation are not optimised: they compile in two thirds of the time. TORCH: they use
# ATen.
function(valora_use_test_pch target torch)
  set(pch valora_test_pch)
  set(headers ${VALORA_STD_HEADERS})
  if(torch)
    set(pch valora_aten_test_pch)
    set(headers ${VALORA_ATEN_HEADERS})
    valora_link_torch(${target})
  endif()
  if(NOT TARGET ${pch})
    valora_pch(${pch} ${headers} <gmock/gmock.h>)
    target_compile_options(${pch} PRIVATE -O0)
    target_link_libraries(${pch} PUBLIC GTest::gmock)
    if(torch)
      target_link_libraries(${pch} PUBLIC nlohmann_json::nlohmann_json)
      valora_link_torch(${pch})
    endif()
  endif()
  target_compile_options(${target} PRIVATE -O0)
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

# valora_unite(TARGET): with VALORA_UNITY, compiles the sources of a library together, except those with their own flags:
# folder after folder, in united sources of at least VALORA_UNITED_BYTES, so that both cores have some. So names in
# anonymous namespaces must be unique in their library. CMake's UNITY_BUILD is not used because its files name sources by
# absolute path, so that checkouts could not share ccache results.
set(VALORA_UNITED_BYTES 100000)
if(VALORA_UNOPTIMIZED)
  set(VALORA_UNITED_BYTES 300000)  # headers take more of the time
endif()
function(valora_unite target)
  if(VALORA_UNITY)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL valora_unite_now ${target})")  # flags may be set until then
  endif()
endfunction()

# The sources of a target that may be united, as paths below src/ or the project, by folder.
function(valora_sources_to_unite target paths)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_source_file_property(flags ${source} COMPILE_OPTIONS)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(IS_PREFIX CMAKE_CURRENT_SOURCE_DIR ${source} own)
    if(flags OR NOT own)
      continue()
    endif()
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
    string(REPLACE "${PROJECT_SOURCE_DIR}/" "" path ${source})
    string(REGEX REPLACE "^src/" "" path ${path})
    list(APPEND found ${path})
  endforeach()
  list(SORT found)
  set(${paths} ${found} PARENT_SCOPE)
endfunction()

function(valora_unite_now target)
  valora_sources_to_unite(${target} paths)
  set(folder "")
  set(bytes 0)
  foreach(path ${paths})
    cmake_path(GET path PARENT_PATH next)
    if(NOT folder OR (NOT next STREQUAL folder AND bytes GREATER_EQUAL VALORA_UNITED_BYTES))
      set(united ${CMAKE_BINARY_DIR}/united/${next}/${target}.cc)
      list(APPEND all_united ${united})
      set(bytes 0)
    endif()
    set(folder ${next})
    string(APPEND "text_${united}" "#include \"${path}\"\n")
    find_file(at ${path} PATHS ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} NO_CACHE NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
    file(SIZE ${at} size)
    unset(at)
    math(EXPR bytes "${bytes} + ${size}")
  endforeach()
  foreach(united ${all_united})
    file(CONFIGURE OUTPUT ${united} CONTENT "${text_${united}}" @ONLY)
    target_sources(${target} PRIVATE ${united})
  endforeach()
  # Sources are not the main file there, so g++ takes their local types for types of a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# Removes files of subfolders with their own CMakeLists.txt from a list: those are separate libraries.
function(valora_without_libraries_within list)
  file(GLOB within RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(path ${within})
    get_filename_component(folder ${path} DIRECTORY)
    list(FILTER ${list} EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/")
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()

# Rooms that serving does not wait for, and programs' own sources: -O1 compiles faster.
set(VALORA_COLD cli_options cli_progress cli_rows cli_watch generator generator_data hub report tuning yaml lab_engine lab_live
  lab_memory lab_serve lab_trace)
function(valora_optimise_less target)
  if(NOT VALORA_UNOPTIMIZED)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# valora_library(NAME [TORCH] [NO_PCH] [FAST_TESTS] [LINKS lib…]): a library of the folder's *.cc and two levels of subfolders,
# without tests. LINKS are public. A folder may include only folders that it links. NO_PCH: no precompiled header.
# FAST_TESTS: its tests compute much, so they are optimised; in sanitizer builds the library is too.
function(valora_library name)
  cmake_parse_arguments(ARG "TORCH;NO_PCH;FAST_TESTS" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cc
    ${CMAKE_CURRENT_SOURCE_DIR}/*/*/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(VALORA_CUDA)
    list(FILTER sources EXCLUDE REGEX "/cuda_absent\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "_cuda\\.cc$")
  endif()
  if(VALORA_CUDA AND TORCH_CUDA_LIBRARIES)
    list(FILTER sources EXCLUDE REGEX "/launch_capture_absent\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "_torch_cuda\\.cc$")
  endif()
  if(VALORA_CUDA AND TORCH_CUDA_LIBRARIES AND NCCL_INCLUDE_DIR)
    list(FILTER sources EXCLUDE REGEX "/nccl_absent\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "_torch_nccl\\.cc$")
  endif()
  valora_without_libraries_within(sources)
  if(NOT sources)
    add_library(valora_${name} INTERFACE)
    return()
  endif()
  add_library(valora_${name} STATIC ${sources})
  target_link_libraries(valora_${name} PUBLIC valora_flags ${ARG_LINKS})
  valora_unite(valora_${name})
  if(name IN_LIST VALORA_COLD)
    valora_optimise_less(valora_${name})
  endif()
  if(name IN_LIST VALORA_ALIGNMENT_CHECKED)
    set_target_properties(valora_${name} PROPERTIES VALORA_CHECKS_ALIGNMENT ON)
  endif()
  if(ARG_TORCH)
    valora_use_torch(valora_${name})
  elseif(ARG_FAST_TESTS AND VALORA_UNOPTIMIZED)
    target_compile_options(valora_${name} PRIVATE -O1)  # the precompiled header was compiled without it
  elseif(NOT ARG_NO_PCH)
    valora_use_std_pch(valora_${name})
  endif()
  valora_test(${name} ${ARG_TORCH} ${ARG_FAST_TESTS})
endfunction()

# valora_program(NAME source…): a program with libtorch, in the build folder.
function(valora_program name)
  add_executable(${name} ${ARGN})
  valora_use_torch(${name})
  valora_unite(${name})
  valora_optimise_less(${name})
  # It allocates through jemalloc. glibc seldom reuses the space of aligned blocks, which all tensors are, so resident memory
  # kept growing with every new picture (docs/rooms/requests.md). Sanitizers bring their own allocator.
  if(NOT VALORA_SANITIZE)
    pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
    target_link_libraries(${name} PRIVATE -Wl,--push-state,--no-as-needed PkgConfig::JEMALLOC -Wl,--pop-state)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

# All unit tests, and those that `make test` builds with optimisation. It runs the others only under sanitizers. gpu_tests
# are apart, the ones on emulated GPUs, which it runs when their sources changed.
add_custom_target(unit_tests)
add_custom_target(optimized_tests)
add_custom_target(gpu_tests)
# Builds the tests of the torch-free rooms and runs those that changed. Needs no libtorch.
add_custom_target(quick_tests)
function(valora_quick_test name)
  set(passed ${CMAKE_BINARY_DIR}/quick_tests/${name})
  add_custom_command(OUTPUT ${passed} DEPENDS ${name} VERBATIM COMMENT "Running ${name}"
    COMMAND ${name} --gtest_brief=1 COMMAND ${CMAKE_COMMAND} -E touch ${passed})
  add_custom_target(quick_${name} DEPENDS ${passed})
  add_dependencies(quick_tests quick_${name})
endfunction()

# valora_write_tests(TARGET): writes the names of the tests, for tools/test.
function(valora_write_tests target)
  get_target_property(tests ${target} MANUALLY_ADDED_DEPENDENCIES)
  if(NOT tests)
    set(tests "")
  endif()
  list(JOIN tests "\n" tests)
  file(WRITE ${CMAKE_BINARY_DIR}/${target}.txt "${tests}\n")
endfunction()

function(valora_test name torch fast)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc ${CMAKE_CURRENT_SOURCE_DIR}/*/*_test.cc
    ${CMAKE_CURRENT_SOURCE_DIR}/*/*/*_test.cc)
  valora_without_libraries_within(tests)
  if(NOT VALORA_TESTS OR NOT tests)
    return()
  endif()
  add_executable(${name}_test ${tests})
  target_link_libraries(${name}_test PRIVATE valora_${name} GTest::gtest GTest::gmock GTest::gtest_main)
  valora_unite(${name}_test)
  if(NOT fast)
    valora_use_test_pch(${name}_test ${torch})
  elseif(torch)
    valora_use_torch(${name}_test)
  elseif(VALORA_UNOPTIMIZED)
    target_compile_options(${name}_test PRIVATE -O1)
  else()
    valora_use_std_pch(${name}_test)
  endif()
  add_dependencies(unit_tests ${name}_test)
  if(torch)
    add_dependencies(optimized_tests ${name}_test)
  else()
    valora_quick_test(${name}_test)
  endif()
  gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST)
endfunction()
