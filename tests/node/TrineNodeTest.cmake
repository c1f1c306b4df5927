# trine_node_test(name PACKAGES package@version... SCRIPT file [ARGUMENTS ...] [LABELS ...])
#
# Adds a test that is a Node script and uses packages of npm. run.sh says when it is skipped.
function(trine_node_test name)
  cmake_parse_arguments(ARG "" "SCRIPT" "PACKAGES;ARGUMENTS;LABELS" ${ARGN})
  list(JOIN ARG_PACKAGES "," packages)
  add_test(NAME ${name}
    COMMAND "${PROJECT_SOURCE_DIR}/tests/node/run.sh" "${packages}"
            "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SCRIPT}" ${ARG_ARGUMENTS})
  if(NOT ARG_LABELS)
    set(ARG_LABELS integration)
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT 600
    ENVIRONMENT "TRINE_NODE_DIR=${CMAKE_BINARY_DIR}/node")
endfunction()
