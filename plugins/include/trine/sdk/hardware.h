// Declares in a plugin's file which hardware it drives. The host reads the declaration without
// loading the plugin, because a driver may take long to find out that it has nothing to drive.
#ifndef TRINE_SDK_HARDWARE_H_
#define TRINE_SDK_HARDWARE_H_

// TRINE_PLUGIN_HARDWARE("/dev/foo:/dev/bar:$FOO_DRIVER") lists files and environment variables. Use
// it once, outside of any namespace. If none of the files exists and none of the variables is set,
// the plugin must have only software devices, flagged as such and not of the CPU's tier. "" means
// that it never has other devices. A plugin without this declaration is always probed. See
// docs/plugin-abi.md. Works in C too.
//
// Makes an ELF note of the owner "Trine" and type 1.
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
