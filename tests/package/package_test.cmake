# Installs the build into a fresh prefix and uses it as users do: builds the example backend against
# the package from outside the source tree, by CMake and by pkg-config alone, then moves the prefix
# and runs the installed programs on the result.
#
#   cmake -DSOURCE_DIR= -DBUILD_DIR= -DWORK_DIR= -DBINDIR= -DDOCDIR= -DINCLUDEDIR= -DLIBDIR=
#         -DC_COMPILER= -DCXX_COMPILER= -DNM= -DPKG_CONFIG= -DFLAGS= -DGENERATOR= -DCONFIG=
#         -DOPENMP= -P package_test.cmake
#
# Leaves WORK_DIR/example/libtrine-backend-example.so and the moved prefix for other tests.

cmake_minimum_required(VERSION 3.25)

# run(<what it does> <command>...) sets `output` to the command's standard output. A failure ends
# the test with everything that was printed.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${what} failed (${result}):\n${command}\n${output}\n${errors}")
  endif()
  message(STATUS "${what}: ok")
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect_one_symbol library)
  execute_process(COMMAND "${NM}" -D --defined-only "${library}" OUTPUT_VARIABLE symbols
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES "^[0-9a-f]+ T trine_plugin_query$")
    message(FATAL_ERROR "${library} exports more, or less, than trine_plugin_query:\n${symbols}")
  endif()
  message(STATUS "${library} exports trine_plugin_query alone")
endfunction()

# Checks that no text file under the prefix names a folder of this machine.
function(expect_relocatable prefix)
  file(GLOB_RECURSE files "${prefix}/*.cmake" "${prefix}/*.pc")
  if(NOT files)
    message(FATAL_ERROR "${prefix} holds no package files")
  endif()
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    foreach(folder IN ITEMS "${prefix}" "${BUILD_DIR}" "${SOURCE_DIR}")
      string(FIND "${text}" "${folder}" position)
      if(NOT position EQUAL -1)
        message(FATAL_ERROR "${file} names ${folder}: it can't be moved")
      endif()
    endforeach()
  endforeach()
  message(STATUS "${prefix} can be moved")
endfunction()

set(prefix "${WORK_DIR}/installed")
set(moved "${WORK_DIR}/moved")
set(outside "${WORK_DIR}/example-source")
set(example "${WORK_DIR}/example/libtrine-backend-example.so")
file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")

run("install" "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}" --config "${CONFIG}")
run("install below DESTDIR" "${CMAKE_COMMAND}" -E env "DESTDIR=${WORK_DIR}/destdir"
    "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix /opt/trine --config "${CONFIG}")
if(NOT EXISTS "${WORK_DIR}/destdir/opt/trine/${INCLUDEDIR}/trine/backend.h")
  message(FATAL_ERROR "the installation does not respect DESTDIR")
endif()
file(REMOVE_RECURSE "${WORK_DIR}/destdir")
expect_relocatable("${prefix}")

# Use a copy, so that no header of the source tree can be found by accident.
file(GLOB example_files "${prefix}/${DOCDIR}/example/*")
file(COPY ${example_files} DESTINATION "${outside}")
run("configure the example" "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${outside}"
    -B "${WORK_DIR}/example" "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS} -Werror"
    -DCMAKE_BUILD_TYPE=RelWithDebInfo)
run("build the example" "${CMAKE_COMMAND}" --build "${WORK_DIR}/example")
expect_one_symbol("${example}")

separate_arguments(flags UNIX_COMMAND "${FLAGS}")
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig")
  function(pkg_config result)
    execute_process(COMMAND "${PKG_CONFIG}" ${ARGN} OUTPUT_VARIABLE text
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(text UNIX_COMMAND "${text}")
    set(${result} "${text}" PARENT_SCOPE)
  endfunction()
  pkg_config(cflags --cflags trine-backend)
  pkg_config(script --variable=version_script trine-backend)
  pkg_config(plugin_dir --variable=plugindir trine-backend)
  cmake_path(NORMAL_PATH plugin_dir)
  if(NOT plugin_dir STREQUAL "${prefix}/${LIBDIR}/trine/plugins")
    message(FATAL_ERROR "pkg-config says that plugins lie in ${plugin_dir}")
  endif()
  set(by_hand "${WORK_DIR}/by-hand/libtrine-backend-example.so")
  file(MAKE_DIRECTORY "${WORK_DIR}/by-hand")
  run("build the example by pkg-config" "${CXX_COMPILER}" -std=c++20 -O2 -fPIC -shared
      -ffp-contract=off -fvisibility=hidden ${flags} ${cflags} "-Wl,--version-script=${script}"
      "${outside}/example_backend.cc" -o "${by_hand}")
  expect_one_symbol("${by_hand}")
  run("build a C11 user by pkg-config" "${C_COMPILER}" -std=c11 -Wall -Wextra -Wpedantic -Werror
      ${cflags} "${CMAKE_CURRENT_LIST_DIR}/header_user.c" -o "${WORK_DIR}/header_user")
  run("run the C11 user" "${WORK_DIR}/header_user")
  if(EXISTS "${prefix}/${LIBDIR}/pkgconfig/trine.pc")
    pkg_config(embed_flags --cflags --libs trine)
    run("build an embedding program by pkg-config" "${C_COMPILER}" -std=c11 ${flags}
        "${CMAKE_CURRENT_LIST_DIR}/embed/main.c" ${embed_flags}
        "-Wl,-rpath,${prefix}/${LIBDIR}" -o "${WORK_DIR}/embed-by-hand")
    run("run it" "${WORK_DIR}/embed-by-hand")
  endif()
else()
  message(STATUS "pkg-config: not found, its files are not tried")
endif()

file(RENAME "${prefix}" "${moved}")
run("configure against the moved prefix" "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${outside}"
    -B "${WORK_DIR}/example-moved" "-DCMAKE_PREFIX_PATH=${moved}"
    "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
file(REMOVE_RECURSE "${WORK_DIR}/example-moved")
if(EXISTS "${moved}/${INCLUDEDIR}/trine/trine.h")
  run("configure an embedding program" "${CMAKE_COMMAND}" -G "${GENERATOR}"
      -S "${CMAKE_CURRENT_LIST_DIR}/embed" -B "${WORK_DIR}/embed" "-DCMAKE_PREFIX_PATH=${moved}"
      "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_C_FLAGS=${FLAGS}")
  run("build it" "${CMAKE_COMMAND}" --build "${WORK_DIR}/embed")
  run("run it" "${WORK_DIR}/embed/embed")
endif()

# Build and run the example programs as a user would.
set(model "${moved}/share/trine/models/tales-27m-q8_0.gguf")
file(COPY "${moved}/${DOCDIR}/examples" DESTINATION "${WORK_DIR}/examples-source")
run("configure the example programs" "${CMAKE_COMMAND}" -G "${GENERATOR}"
    -S "${WORK_DIR}/examples-source/examples" -B "${WORK_DIR}/examples"
    "-DCMAKE_PREFIX_PATH=${moved}" "-DCMAKE_C_COMPILER=${C_COMPILER}"
    "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DCMAKE_C_FLAGS=${FLAGS} -Wall -Wextra -Werror"
    "-DCMAKE_CXX_FLAGS=${FLAGS} -Wall -Wextra -Werror" -DCMAKE_BUILD_TYPE=RelWithDebInfo)
run("build them" "${CMAKE_COMMAND}" --build "${WORK_DIR}/examples")
run("run the C example" "${WORK_DIR}/examples/generate_c" "${model}" "Once upon a time")
if(NOT output MATCHES "^Once upon a time.+ .+")
  message(FATAL_ERROR "the C example wrote no story:\n${output}")
endif()
run("run the C++ example" "${WORK_DIR}/examples/generate_cpp" "${model}" "The king" "One day")
if(NOT output MATCHES "\\[1\\] The king.+\\[2\\] One day.+")
  message(FATAL_ERROR "the C++ example wrote no stories:\n${output}")
endif()
if(OPENMP)
  run("run the OpenMP example" "${WORK_DIR}/examples/openmp_host" "${model}" "The king")
  if(NOT output MATCHES "without Trine: .+team own: .+team openmp: .+The king.+")
    message(FATAL_ERROR "the OpenMP example wrote no times and story:\n${output}")
  endif()
else()
  message(STATUS "built without OpenMP, its example is not tried")
endif()
execute_process(COMMAND "${WORK_DIR}/examples/generate_c" "${WORK_DIR}/no-such-file" "x"
                RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 1 OR NOT errors MATCHES "no-such-file")
  message(FATAL_ERROR "a missing file gave ${result}: ${errors}")
endif()

set(trine "${moved}/${BINDIR}/trine")
if(NOT EXISTS "${trine}")
  message(STATUS "bin/trine: not built, the installed programs are not tried")
  return()
endif()
# The build tree's libraries and plugins must not be used in place of installed ones.
unset(ENV{LD_LIBRARY_PATH})
unset(ENV{TRINE_PLUGIN_PATH})
unset(ENV{TRINE_PROBE})
run("trine detect" "${CMAKE_COMMAND}" -E chdir / "${trine}" detect --json)
string(JSON ignored ERROR_VARIABLE not_json LENGTH "${output}")
if(not_json)
  message(FATAL_ERROR "trine detect --json prints no JSON: ${not_json}\n${output}")
endif()
run("trine generate" "${CMAKE_COMMAND}" -E chdir / "${trine}" generate -p "Once upon a time" -n 8)
run("trine plugin check" "${CMAKE_COMMAND}" -E chdir / "${trine}" plugin check "${example}")
