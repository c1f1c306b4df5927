# How a target of this project is made: language, warnings, sanitizer, include root.
#
#   trine_library(NAME SOURCES ... [DEPS ...])        static, position independent
#   trine_exact(TARGET)                               arithmetic that must keep its written order
#   trine_backend(NAME SOURCES ... [DEPS ...] [FOR_TESTS])  a plugin: libtrine-backend-NAME.so; one for
#                                                     tests is not installed
#   trine_test(NAME SOURCES ... [DEPS ...] [LABELS ...] [TIMEOUT s])

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

# One folder for everything that is run: the programs find the plugins beside them.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# Line tables are what a stack trace needs; full debug information is a third more to compile. Flags
# that are not CMake's own are somebody's choice, and stay.
foreach(language C CXX)
  if(CMAKE_${language}_FLAGS_RELWITHDEBINFO STREQUAL "-O2 -g -DNDEBUG")
    set(CMAKE_${language}_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
  endif()
endforeach()

find_program(TRINE_CCACHE ccache)
if(TRINE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${TRINE_CCACHE}")
  # Without this it passes over whatever uses precompiled headers: those of the tests.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros "${TRINE_CCACHE}")
endif()

add_library(trine_options INTERFACE)
target_include_directories(trine_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(trine_options INTERFACE -Wall -Wextra)
if(TRINE_WERROR)
  target_compile_options(trine_options INTERFACE -Werror)
endif()
if(TRINE_SANITIZE)
  # GCC's flow analysis goes astray in instrumented code.
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

function(trine_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE trine_options)
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
endfunction()

# GCC contracts a*b+c, vector intrinsics included, wherever the target has fma.
function(trine_exact target)
  target_compile_options(${target} PRIVATE -ffp-contract=off -fno-fast-math)
endfunction()

function(trine_backend name)
  cmake_parse_arguments(ARG "FOR_TESTS" "COMPONENT" "SOURCES;DEPS" ${ARGN})
  set(target trine-backend-${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE trine_abi trine_options ${ARG_DEPS})
  target_compile_definitions(${target} PRIVATE TRINE_VERSION="${PROJECT_VERSION}")
  # Only trine_plugin_query leaves the shared object, whatever it links.
  target_link_options(${target} PRIVATE
    "-Wl,--version-script=${PROJECT_SOURCE_DIR}/plugins/plugin.map" -Wl,-z,defs)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS
    "${PROJECT_SOURCE_DIR}/plugins/plugin.map")
  if(TRINE_SANITIZE)
    # Sanitizer runtimes are resolved from the program that loads the plugin.
    get_target_property(opts ${target} LINK_OPTIONS)
    list(REMOVE_ITEM opts -Wl,-z,defs)
    set_target_properties(${target} PROPERTIES LINK_OPTIONS "${opts}")
  endif()
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT backends)
  endif()
  if(NOT ARG_FOR_TESTS)
    install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/trine/plugins"
            COMPONENT ${ARG_COMPONENT})
  endif()
endfunction()

# Reading the same headers again and again is half of what compiling a test takes.
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

# Tests call what is optimised; their own code need not be.
function(trine_quickly target)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:RelWithDebInfo>:-O1>")
endfunction()

function(trine_test name)
  if(NOT TRINE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT TARGET trine_test_headers)
    trine_test_headers()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} trine_options GTest::gtest_main GTest::gmock)
  trine_quickly(${name})
  # Where flags differ GCC reads the headers as they are (so it must find trine_abi's); others refuse
  # them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${name} REUSE_FROM trine_test_headers)
    set_target_properties(${name} PROPERTIES PCH_WARN_INVALID OFF)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
