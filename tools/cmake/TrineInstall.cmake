# What `cmake --install` puts where. Nothing that is installed names an absolute path: a prefix may
# be moved, and DESTDIR may be set.
#
#   bin/trine                     the command
#   libexec/trine/trine-probe     loads a plugin nobody has tried yet, in a process of its own
#   lib/libtrine.so               the library, with include/trine/trine.h and trine.hpp
#   lib/trine/plugins/            the backends (installed by trine_backend)
#   include/trine/                the backend ABI and SDK
#   lib/cmake/trine/, lib/pkgconfig/
#   share/trine/plugin.map        the one symbol a plugin exports
#   share/trine/models/           the model that comes with the project
#   share/doc/trine/              LICENSE, pages, the example backend and programs

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

# `to`, seen from `from`: both relative to the prefix.
function(trine_relative_path result from to)
  file(RELATIVE_PATH path "/prefix/${from}" "/prefix/${to}")
  string(REGEX REPLACE "/$" "" path "${path}")
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

# A program in `folder` finds libtrine.so wherever the prefix lies.
function(trine_install_program target folder)
  if(NOT TARGET ${target})
    return()
  endif()
  trine_relative_path(lib "${folder}" "${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${lib}")
  install(TARGETS ${target} RUNTIME DESTINATION "${folder}")
endfunction()

trine_install_program(trine_cli "${CMAKE_INSTALL_BINDIR}")
trine_install_program(trine-probe "${TRINE_INSTALL_PROBEDIR}")

install(TARGETS trine_abi EXPORT trine-targets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/plugins/include/trine"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")

if(TARGET trine_runtime)
  install(TARGETS trine_runtime EXPORT trine-targets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/trine"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()

install(EXPORT trine-targets NAMESPACE trine:: DESTINATION "${TRINE_INSTALL_CMAKEDIR}")

set(package_dir "${PROJECT_BINARY_DIR}/package")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/trine-config.cmake.in" "${package_dir}/trine-config.cmake"
  INSTALL_DESTINATION "${TRINE_INSTALL_CMAKEDIR}"
  PATH_VARS TRINE_INSTALL_DATADIR TRINE_INSTALL_PLUGINDIR)
# Below 1.0 a minor version may break what was before.
write_basic_package_version_file("${package_dir}/trine-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${package_dir}/trine-config.cmake" "${package_dir}/trine-config-version.cmake"
        DESTINATION "${TRINE_INSTALL_CMAKEDIR}")

trine_relative_path(TRINE_PC_PREFIX "${TRINE_INSTALL_PKGCONFIGDIR}" "")
set(pc_names trine-backend)
if(TARGET trine_runtime)
  list(APPEND pc_names trine)
endif()
foreach(name IN LISTS pc_names)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in" "${package_dir}/${name}.pc" @ONLY)
  install(FILES "${package_dir}/${name}.pc" DESTINATION "${TRINE_INSTALL_PKGCONFIGDIR}")
endforeach()

install(FILES "${PROJECT_SOURCE_DIR}/plugins/plugin.map" DESTINATION "${TRINE_INSTALL_DATADIR}")
install(FILES "${PROJECT_SOURCE_DIR}/tools/models/tales-27m-q8_0.gguf"
        DESTINATION "${TRINE_INSTALL_DATADIR}/models")
install(FILES "${PROJECT_SOURCE_DIR}/docs/examples/CMakeLists.txt"
              "${PROJECT_SOURCE_DIR}/docs/examples/generate.c"
              "${PROJECT_SOURCE_DIR}/docs/examples/generate.cc"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        FILES_MATCHING PATTERN "*.md")
install(FILES "${PROJECT_SOURCE_DIR}/plugins/example/CMakeLists.txt"
              "${PROJECT_SOURCE_DIR}/plugins/example/example_backend.cc"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}/example")
