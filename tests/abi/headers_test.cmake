# Compiles the ABI header and every SDK header by itself, with each installed compiler.
#
#   cmake -DINCLUDE_DIR=<plugins/include> -DCOMPILERS=<paths> -P headers_test.cmake

cmake_minimum_required(VERSION 3.25)

set(abi_header "${INCLUDE_DIR}/trine/backend.h")
file(GLOB sdk_headers "${INCLUDE_DIR}/trine/sdk/*.h" "${INCLUDE_DIR}/trine/backend_sdk.h")
set(warnings -Wall -Wextra -Wpedantic -Werror)

function(check compiler)
  execute_process(COMMAND "${compiler}" ${ARGN} -fsyntax-only "-I${INCLUDE_DIR}"
                  RESULT_VARIABLE result ERROR_VARIABLE error)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${compiler} ${ARGN}:\n${error}")
  endif()
endfunction()

foreach(compiler IN LISTS COMPILERS)
  # -Wpadded: padding by the compiler would be bytes that are never written.
  check("${compiler}" -x c -std=c11 ${warnings} -Wpadded "${abi_header}")
  foreach(standard c++17 c++20)
    check("${compiler}" -x c++ -std=${standard} ${warnings} -Wpadded "${abi_header}")
  endforeach()
  foreach(header IN LISTS sdk_headers)
    check("${compiler}" -x c++ -std=c++17 ${warnings} "${header}")
  endforeach()
  check("${compiler}" -x c++ -std=c++20 ${warnings} "${INCLUDE_DIR}/trine/backend_sdk.h")
endforeach()

file(STRINGS "${abi_header}" includes REGEX "^[ \t]*#[ \t]*include")
if(NOT includes STREQUAL "#include <stddef.h>;#include <stdint.h>")
  message(SEND_ERROR "backend.h may include stddef.h and stdint.h alone, but has: ${includes}")
endif()

# An SDK header includes only the ABI, the standard library and other SDK headers; host_memory.h
# also mmap's header.
foreach(header IN LISTS sdk_headers)
  file(STRINGS "${header}" includes REGEX "^#include")
  foreach(line IN LISTS includes)
    if(NOT line MATCHES "^#include (<[a-z_]+>|<sys/mman\\.h>|\"trine/(backend|sdk/[a-z_]+)\\.h\")$")
      message(SEND_ERROR "${header}: ${line}")
    endif()
  endforeach()
endforeach()
