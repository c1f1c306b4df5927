# Makes the manual pages and the completion scripts. The built program writes them from its own
# options, so a new command needs no change here.

set(manual_dir "${PROJECT_BINARY_DIR}/manual")
set(TRINE_ZSH_COMPLETION_DIR "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions" CACHE STRING
    "Where zsh looks for completions, below the prefix; site-functions where it is not Debian's")
find_program(TRINE_GZIP gzip)

# Empty the folder first, so that no page of a removed command stays.
set(compress "")
if(TRINE_GZIP)
  set(compress COMMAND "${TRINE_GZIP}" -9 -n -r "${manual_dir}/man")
endif()
add_custom_command(OUTPUT "${manual_dir}/written"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${manual_dir}"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${manual_dir}"
  COMMAND trine_cli man --write "${manual_dir}/man"
  COMMAND trine_cli completion bash > "${manual_dir}/trine.bash"
  COMMAND trine_cli completion zsh > "${manual_dir}/_trine"
  COMMAND trine_cli completion fish > "${manual_dir}/trine.fish"
  ${compress}
  COMMAND "${CMAKE_COMMAND}" -E touch "${manual_dir}/written"
  DEPENDS trine_cli COMMENT "Writing manual pages and completions" VERBATIM)
add_custom_target(trine_manual ALL DEPENDS "${manual_dir}/written")

install(DIRECTORY "${manual_dir}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${manual_dir}/trine.bash"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME trine)
install(FILES "${manual_dir}/_trine" DESTINATION "${TRINE_ZSH_COMPLETION_DIR}")
install(FILES "${manual_dir}/trine.fish"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
