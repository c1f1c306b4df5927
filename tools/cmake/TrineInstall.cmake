# Says what `cmake --install` puts where. No installed file names an absolute path, so that a prefix
# may be moved and DESTDIR may be set.
#
#   bin/trine                     the command
#   libexec/trine/trine-probe     loads an untried plugin, in a process of its own
#   lib/libtrine.so               the library, with include/trine/trine.h and trine.hpp
#   lib/trine/plugins/            the backends (installed by trine_backend)
#   include/trine/                the backend ABI and SDK
#   lib/cmake/trine/, lib/pkgconfig/
#   share/trine/plugin.map        the one symbol that a plugin exports
#   share/trine/models/           the model that comes with the project
#   share/doc/trine/              LICENSE, pages, the example backend and programs
#   share/man/man1/               a manual page for each command
#   share/bash-completion/, share/zsh/, share/fish/     completions
#
# COMPONENT says which package a file belongs to (TrinePackage); the default is the command's.

include(CMakePackageConfigHelpers)

set(TRINE_INSTALL_DATADIR "${CMAKE_INSTALL_DATADIR}/trine")
set(TRINE_INSTALL_PLUGINDIR "${CMAKE_INSTALL_LIBDIR}/trine/plugins")
set(TRINE_INSTALL_PROBEDIR "${CMAKE_INSTALL_LIBEXECDIR}/trine")
set(TRINE_INSTALL_CMAKEDIR "${CMAKE_INSTALL_LIBDIR}/cmake/trine")
set(TRINE_INSTALL_PKGCONFIGDIR "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# The header is the one place that states the ABI's version.
file(STRINGS "${PROJECT_SOURCE_DIR}/plugins/include/trine/backend.h" abi_lines
     REGEX "^#define TRINE_ABI_(MAJOR|MINOR) [0-9]+u$")
string(REGEX REPLACE "[^0-9;]" "" abi_numbers "${abi_lines}")
list(JOIN abi_numbers "." TRINE_ABI_VERSION)

# Sets `result` to the path from `from` to `to`, both relative to the prefix.
function(trine_relative_path result from to)
  file(RELATIVE_PATH path "/prefix/${from}" "/prefix/${to}")
  string(REGEX REPLACE "/$" "" path "${path}")
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

install(TARGETS trine_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS trine-probe RUNTIME DESTINATION "${TRINE_INSTALL_PROBEDIR}" COMPONENT backends)

install(TARGETS trine_abi EXPORT trine-targets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/plugins/include/trine"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
        FILES_MATCHING PATTERN "*.h")

install(TARGETS trine_runtime EXPORT trine-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library
        NAMELINK_COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/trine"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

install(EXPORT trine-targets NAMESPACE trine:: DESTINATION "${TRINE_INSTALL_CMAKEDIR}"
        COMPONENT development)

set(package_dir "${PROJECT_BINARY_DIR}/package")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/trine-config.cmake.in" "${package_dir}/trine-config.cmake"
  INSTALL_DESTINATION "${TRINE_INSTALL_CMAKEDIR}"
  PATH_VARS TRINE_INSTALL_DATADIR TRINE_INSTALL_PLUGINDIR)
# Below 1.0 a minor version may break compatibility.
write_basic_package_version_file("${package_dir}/trine-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${package_dir}/trine-config.cmake" "${package_dir}/trine-config-version.cmake"
        DESTINATION "${TRINE_INSTALL_CMAKEDIR}" COMPONENT development)

trine_relative_path(TRINE_PC_PREFIX "${TRINE_INSTALL_PKGCONFIGDIR}" "")
foreach(name IN ITEMS trine-backend trine)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in" "${package_dir}/${name}.pc" @ONLY)
  install(FILES "${package_dir}/${name}.pc" DESTINATION "${TRINE_INSTALL_PKGCONFIGDIR}"
          COMPONENT development)
endforeach()

install(FILES "${PROJECT_SOURCE_DIR}/plugins/plugin.map" DESTINATION "${TRINE_INSTALL_DATADIR}"
        COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/tools/models/tales-27m-q8_0.gguf"
        DESTINATION "${TRINE_INSTALL_DATADIR}/models" COMPONENT model)
install(FILES "${PROJECT_SOURCE_DIR}/docs/examples/CMakeLists.txt"
              "${PROJECT_SOURCE_DIR}/docs/examples/generate.c"
              "${PROJECT_SOURCE_DIR}/docs/examples/generate.cc"
              "${PROJECT_SOURCE_DIR}/docs/examples/openmp_host.cc"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples" COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        FILES_MATCHING PATTERN "*.md" PATTERN examples EXCLUDE PATTERN README.md EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/plugins/example/CMakeLists.txt"
              "${PROJECT_SOURCE_DIR}/plugins/example/example_backend.cc"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}/example" COMPONENT development)

# The program itself writes pages and completions at build time.
if(NOT CMAKE_CROSSCOMPILING)
  include(TrineManual)
endif()
