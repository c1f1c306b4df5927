// What of a machine a plugin can have devices behind, said in its file, where it is read without
// loading it: a driver that finds nothing to drive may take long to find that out.
#ifndef TRINE_SDK_HARDWARE_H_
#define TRINE_SDK_HARDWARE_H_

// TRINE_PLUGIN_HARDWARE("/dev/foo:/dev/bar:$FOO_DRIVER"), once, outside of any namespace: where
// none of these files is there, and none of these environment variables is set, the plugin has no
// devices but those that are software, flagged as such, and none of the CPU's tier. "": it never
// has any other. A plugin that says nothing is always asked. See docs/plugin-abi.md. Also for
// plugins in C.
//
// An ELF note of the owner "Trine" and type 1.
#if defined(__ELF__)
#define TRINE_PLUGIN_HARDWARE(paths)           \
  __asm__(                                     \
      ".pushsection .note.trine,\"a\",%note\n" \
      ".balign 4\n"                            \
      ".4byte 6, 9f - 8f, 1\n"                 \
      ".asciz \"Trine\"\n"                     \
      ".balign 4\n"                            \
      "8: .asciz \"" paths                     \
      "\"\n"                                   \
      "9: .balign 4\n"                         \
      ".popsection\n")
#else
#define TRINE_PLUGIN_HARDWARE(paths) struct trine_plugin_hardware
#endif

#endif  // TRINE_SDK_HARDWARE_H_
