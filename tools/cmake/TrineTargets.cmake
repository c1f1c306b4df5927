# Defines how this project's targets are made: language, warnings, sanitizer, include root.
#
#   trine_library(NAME SOURCES ... [DEPS ...])        static, position independent
#   trine_exact(TARGET)                               arithmetic that must keep its written order
#   trine_cold(TARGET...)                             code that runs once and not for each token
#   trine_backend(NAME SOURCES ... [DEPS ...] [FOR_TESTS])  a plugin, libtrine-backend-NAME.so; with
#                                                     FOR_TESTS it is not installed
#   trine_test(NAME SOURCES ... [DEPS ...] [LABELS ...] [TIMEOUT s])
#   trine_tests(PROGRAM [PREFIX p] SOURCES ... [DEPS ...] [LABELS ...] [TIMEOUT s])
#                                                     one program, a test for each source

include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME command)  # TrineInstall, TrinePackage

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# One folder for programs and plugins: programs look for plugins beside themselves.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# A stack trace needs only line tables; full debug information takes a third longer to compile.
# Flags other than CMake's defaults are the user's choice and stay.
foreach(language C CXX)
  if(CMAKE_${language}_FLAGS_RELWITHDEBINFO STREQUAL "-O2 -g -DNDEBUG")
    set(CMAKE_${language}_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
  endif()
endforeach()

# GCC's garbage collector runs many times in a large source. A larger heap saves a tenth of the time.
# Compilers that run at the same time, one for each core, take an eighth of the memory for it at most.
cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR heap_kib "${memory_mib} * 1024 / 8 / (${cores} + 2)")
if(heap_kib GREATER 524288)
  set(heap_kib 524288)
endif()
if(heap_kib GREATER 131072)  # GCC's own choice
  add_compile_options(
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=${heap_kib}>")
endif()

# GCC 12's analysis of which memory a function changes misses stores whose address it has rewritten
# in a loop. It then drops calls of such a function: with -O1 and -O2, a part of AVX-512 attention.
add_compile_options(
  "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,11>>:-fno-ipa-modref>")

find_program(TRINE_CCACHE ccache)
if(TRINE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${TRINE_CCACHE}")
  # Without CCACHE_SLOPPINESS ccache ignores sources that use precompiled headers. With CCACHE_DEPEND
  # a source that is not in the cache is not preprocessed twice.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 "${TRINE_CCACHE}")
endif()

add_library(trine_options INTERFACE)
target_include_directories(trine_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(trine_options INTERFACE -Wall -Wextra)
if(TRINE_WERROR STREQUAL "AUTO")
  # Another compiler may have warnings that the suite has never seen. They must not stop a build.
  set(TRINE_WARNINGS_ARE_ERRORS OFF)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
    set(TRINE_WARNINGS_ARE_ERRORS ON)
  endif()
else()
  set(TRINE_WARNINGS_ARE_ERRORS ${TRINE_WERROR})
endif()
if(TRINE_WARNINGS_ARE_ERRORS)
  target_compile_options(trine_options INTERFACE -Werror)
endif()
if(TRINE_SANITIZE)
  # GCC's flow analysis gives false warnings in instrumented code.
  target_compile_options(trine_options INTERFACE
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
endif()
if(TRINE_SANITIZE STREQUAL "address")
  target_compile_options(trine_options INTERFACE -fsanitize=address,undefined
                         -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1)
  target_link_options(trine_options INTERFACE -fsanitize=address,undefined)
elseif(TRINE_SANITIZE STREQUAL "thread")
  target_compile_options(trine_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer -O1)
  target_link_options(trine_options INTERFACE -fsanitize=thread)
  target_sources(trine_options INTERFACE
    "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${PROJECT_SOURCE_DIR}/tests/sanitizers/tsan_suppressions.cc>")
elseif(TRINE_SANITIZE)
  message(FATAL_ERROR "TRINE_SANITIZE is '${TRINE_SANITIZE}': use address, thread or nothing")
endif()

# Two thirds of the compile time goes into reading the same headers and instantiating the same
# templates. So common headers are precompiled, and several sources of a library are compiled at a
# time (a unity build). The dev preset does neither: there each source must include what it uses.
option(TRINE_QUICK_BUILD "Precompile headers and compile several sources at a time" ON)

# Makes `name`, an object library whose precompiled headers others use. GCC ignores precompiled
# headers made with other flags, hence one such library for each set of flags.
function(trine_precompile name)  # FLAGS...
  file(WRITE "${CMAKE_BINARY_DIR}/headers/${name}.cc" "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/headers/${name}.cc")
  target_link_libraries(${name} PRIVATE trine_options absl::status absl::statusor absl::strings
                        absl::str_format)
  target_compile_options(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} PRIVATE
    <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstdio> <cstring>
    <deque> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string>
    <thread> <unordered_map> <utility> <variant> <vector> <absl/status/statusor.h>
    <absl/strings/ascii.h> <absl/strings/match.h> <absl/strings/numbers.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h>
    <absl/strings/strip.h> <absl/types/span.h>)
endfunction()

set(trine_exact_flags -ffp-contract=off -fno-fast-math)

# Makes `target` use the precompiled headers made with `flags` ("plain" or "exact").
function(trine_use_headers target flags)
  if(NOT TRINE_QUICK_BUILD OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT TARGET trine_headers_${flags})
    if(flags STREQUAL "exact")
      trine_precompile(trine_headers_exact ${trine_exact_flags})
    else()
      trine_precompile(trine_headers_plain)
    endif()
  endif()
  set_target_properties(${target} PROPERTIES PCH_WARN_INVALID OFF
                        PRECOMPILE_HEADERS_REUSE_FROM trine_headers_${flags})
endfunction()

function(trine_unity target batch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  # GCC takes a source that a unity source includes for a header, where a type of an anonymous
  # namespace would be a mistake.
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>")
endfunction()

function(trine_quick_library target)
  trine_use_headers(${target} plain)
  if(TRINE_QUICK_BUILD)
    trine_unity(${target} 12)
  endif()
endfunction()

function(trine_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE trine_options)
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  trine_quick_library(${name})
endfunction()

# Without these flags GCC contracts a*b+c, even of vector intrinsics, on targets with fma.
function(trine_exact target)
  target_compile_options(${target} PRIVATE ${trine_exact_flags})
  get_target_property(headers ${target} PRECOMPILE_HEADERS_REUSE_FROM)
  if(headers STREQUAL "trine_headers_plain")
    trine_use_headers(${target} exact)
  endif()
endfunction()

option(TRINE_QUICK_CODE "Optimise code less that costs next to nothing to run" ON)

# Compiles `targets` with `flag`. GCC's flow analysis gives false warnings with less than -O2, as it
# does in instrumented code. Does nothing for packages.
function(trine_optimise_less flag)  # TARGETS...
  if(NOT TRINE_QUICK_CODE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE
      "$<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:${flag};-Wno-maybe-uninitialized>")
  endforeach()
endfunction()

# For code that runs once for a model or a command, and not for each token or request. -Og takes two
# thirds of the time of -O2.
function(trine_cold)  # TARGETS...
  trine_optimise_less(-Og ${ARGN})
endfunction()

# For code that runs for each request of a server. -O1 takes three quarters of the time of -O2.
function(trine_warm)  # TARGETS...
  trine_optimise_less(-O1 ${ARGN})
endfunction()

# Makes a plugin export trine_plugin_query alone, whatever it links.
function(trine_plugin_exports target)
  target_link_options(${target} PRIVATE
    "-Wl,--version-script=${PROJECT_SOURCE_DIR}/plugins/plugin.map" -Wl,-z,defs)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS
    "${PROJECT_SOURCE_DIR}/plugins/plugin.map")
  if(TRINE_SANITIZE)
    # The program that loads the plugin provides the sanitizer's runtime.
    get_target_property(opts ${target} LINK_OPTIONS)
    list(REMOVE_ITEM opts -Wl,-z,defs)
    set_target_properties(${target} PROPERTIES LINK_OPTIONS "${opts}")
  endif()
endfunction()

function(trine_backend name)
  cmake_parse_arguments(ARG "FOR_TESTS" "COMPONENT" "SOURCES;DEPS" ${ARGN})
  set(target trine-backend-${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  trine_quick_library(${target})
  target_link_libraries(${target} PRIVATE trine_abi trine_options ${ARG_DEPS})
  target_compile_definitions(${target} PRIVATE TRINE_VERSION="${PROJECT_VERSION}")
  trine_plugin_exports(${target})
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT backends)
  endif()
  if(NOT ARG_FOR_TESTS)
    install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/trine/plugins"
            COMPONENT ${ARG_COMPONENT})
  endif()
endfunction()

# Leaves a program that measures a single part out of `all`. The target `benches` builds all of them.
add_custom_target(benches)
function(trine_bench_program target)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(benches ${target})
endfunction()

# Half of a test's compile time goes into reading the same headers.
function(trine_test_headers)
  file(WRITE "${CMAKE_BINARY_DIR}/test_headers.cc" "int main() {}\n")
  add_executable(trine_test_headers EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/test_headers.cc")
  target_link_libraries(trine_test_headers PRIVATE trine_abi trine_options absl::status
                        absl::statusor absl::strings GTest::gtest_main GTest::gmock)
  trine_quickly(trine_test_headers)
  target_precompile_headers(trine_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <algorithm> <atomic> <chrono> <condition_variable> <filesystem>
    <fstream> <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream>
    <string> <thread> <vector> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_split.h> <trine/backend_sdk.h>)
endfunction()

# Lowers the optimisation of a test, or of a program for tests: the code under test is optimised,
# their own need not be. Their failures name a line, so they have no debug information; with the
# presets `dev`, `asan` and `tsan` they do.
function(trine_quickly target)
  target_compile_options(${target} PRIVATE
    "$<$<CONFIG:RelWithDebInfo>:-O0;-g0>"
    "$<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-maybe-uninitialized>")
endfunction()

# Makes the program of a test. A unity build of tests takes less than half the time: most of it goes
# into templates that all of them use.
function(trine_test_program name)  # SOURCES... (libraries are linked by the caller)
  if(NOT TARGET trine_test_headers)
    trine_test_headers()
  endif()
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE trine_options GTest::gmock)
  trine_quickly(${name})
  # With other flags GCC reads the headers themselves, so it must find those of trine_abi. Other
  # compilers refuse the precompiled headers.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${name} REUSE_FROM trine_test_headers)
    set_target_properties(${name} PROPERTIES PCH_WARN_INVALID OFF)
  endif()
  if(TRINE_QUICK_BUILD AND ARGC GREATER 2)
    trine_unity(${name} 8)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
endfunction()

function(trine_test name)
  if(NOT TRINE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  trine_test_program(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  trine_test_properties(${name})
endfunction()

# Sets the properties of a test from its caller's ARG_TIMEOUT and ARG_LABELS.
macro(trine_test_properties name)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endmacro()

# Makes one program of several sources, which compiles and links faster than a program for each. Each
# source is a test of its own all the same: room/thing_test.cc is called PREFIXthing_test.
function(trine_tests program)
  if(NOT TRINE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "PREFIX;TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  trine_test_program(${program} ${ARG_SOURCES} "${PROJECT_SOURCE_DIR}/tests/source_main.cc")
  target_link_libraries(${program} PRIVATE ${ARG_DEPS} GTest::gtest)
  foreach(source IN LISTS ARG_SOURCES)
    get_filename_component(name ${source} NAME_WE)
    if(name MATCHES "_test$")
      add_test(NAME ${ARG_PREFIX}${name} COMMAND ${program} "--source=${source}")
      trine_test_properties(${ARG_PREFIX}${name})
    endif()
  endforeach()
endfunction()
