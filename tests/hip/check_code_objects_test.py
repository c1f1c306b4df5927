"""Tests that tools/check_code_objects refuses exactly what it must, with the right reason.

    check_code_objects_test.py SOURCE_DIR [HIPCC]
"""
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SOURCE = sys.argv.pop(1)
HIPCC = sys.argv.pop(1) if len(sys.argv) > 1 else None
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(SOURCE, "tools"))

from code_objects import fused  # noqa: E402
from device_code import bundle, code_object, elf, fat_binary, host_object, kernel  # noqa: E402

NAME = "_ZN5trine3hip6KernelENS0_4ArgsE"
READABLE = "trine::hip::Kernel"


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_check(self, content, *options):
        path = os.path.join(self.folder, "object.o")
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        done = subprocess.run(
            [sys.executable, os.path.join(SOURCE, "tools", "check_code_objects"), *options, path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.said = done.stdout
        failures = [line[8:] for line in self.said.splitlines() if line.startswith("FAILED  ")]
        self.assertEqual(done.returncode == 1, bool(failures), done.stdout + done.stderr)
        return done, failures

    def refused(self, content, *options):
        return self.run_check(content, *options)[1]

    def unreadable(self, content):
        done, _ = self.run_check(content)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(done.stderr, r"^check_code_objects: .*\n$")
        return done.stderr


class AmdTest(CheckTest):
    def good(self, **more):
        return bundle({"gfx90a": code_object(kernel(NAME, 64, **more)),
                       "gfx1030": code_object(kernel(NAME, 32, **more))})

    def test_accepts_what_is_right(self):
        content = host_object(self.good(), self.good(), registered=[NAME])
        self.assertEqual(self.refused(content, "--target=gfx90a", "--target=gfx1030"), [])
        self.assertRegex(self.said, r"gfx90a +2 +2 +64 +10 +20 +0 +0 +0\+0 +" + READABLE)

    def test_lists_kernels(self):
        self.assertEqual(self.refused(host_object(self.good()), "--kernels"), [])
        self.assertRegex(self.said, r"gfx1030 +32 +10 +20 +0 +0 +0\+0 +" + READABLE)

    def test_a_target_is_missing(self):
        content = host_object(self.good(), bundle({"gfx90a": code_object(kernel(NAME))}))
        self.assertEqual(self.refused(content, "--target=gfx90a", "--target=gfx1030"),
                         [f"no code for gfx1030 (of a source with {READABLE})"])

    def test_a_target_is_one_too_many(self):
        self.assertEqual(self.refused(host_object(self.good()), "--target=gfx90a"),
                         ["code for gfx1030, which nobody asked for "
                          f"(of a source with {READABLE})"])

    def test_a_registered_kernel_is_missing(self):
        content = host_object(self.good(), registered=[NAME, "_Z5Otherv"])
        self.assertEqual(self.refused(content), ["gfx90a: Other is registered and not there",
                                                 "gfx1030: Other is registered and not there"])

    def test_kernels_differ_between_targets(self):
        content = host_object(bundle({
            "gfx90a": code_object(kernel(NAME), kernel("_Z3TwoILi64EEvv")),
            "gfx1030": code_object(kernel(NAME, 32))}))
        self.assertEqual(self.refused(content), ["gfx1030: Two<64> is there for other targets only"])

    def test_waves(self):
        content = host_object(bundle({"gfx906": code_object(kernel(NAME, 32)),
                                      "gfx942": code_object(kernel(NAME, 64)),
                                      "gfx1201": code_object(kernel(NAME, 64))}))
        self.assertEqual(self.refused(content), [f"gfx906: {READABLE} is for waves of 32, not 64",
                                                 f"gfx1201: {READABLE} is for waves of 64, not 32"])

    def test_spills(self):
        content = host_object(bundle({
            "gfx906": code_object(kernel(NAME, vgpr_spill_count=3)),
            "gfx90a": code_object(kernel(NAME, sgpr_spill_count=1))}))
        vector = f"gfx906: {READABLE} spills 3 VGPRs and 0 SGPRs"
        scalar = f"gfx90a: {READABLE} spills 0 VGPRs and 1 SGPRs"
        self.assertEqual(self.refused(content), [vector, scalar])
        self.assertEqual(self.refused(content, "--sgpr-spills"), [vector])
        self.assertEqual(self.refused(content, "--may-spill=^trine::hip::Ker"), [])
        self.assertEqual(self.refused(content, "--may-spill=^gfx906: trine::hip::Ker"), [scalar])

    def test_scratch(self):
        content = host_object(self.good(private_segment_fixed_size=16))
        self.assertEqual(self.refused(content)[0], f"gfx90a: {READABLE} has 16 bytes of scratch memory")
        self.assertEqual(self.refused(content, "--may-spill=Kernel$"), [])

    def test_says_when_what_may_spill_does_not(self):
        self.assertEqual(self.refused(host_object(self.good()), "--may-spill=Kernel"), [])
        self.assertIn("NOTE    nothing that is called Kernel has scratch memory", self.said)

    def test_clang_15_has_few_registers_for_gfx11(self):
        for clang, failures in ((15, 1), (19, 2)):
            spilling = code_object(kernel(NAME, 32, vgpr_spill_count=9), clang=clang)
            content = host_object(bundle({"gfx1100": spilling, "gfx1030": spilling}))
            self.assertEqual(len(self.refused(content)), failures)

    def test_what_is_not_disassembled_is_not_exact(self):
        content = host_object(bundle({"gfx90a": code_object(kernel(NAME))}))
        self.assertEqual(self.refused(content, "--exact", "--objdump=/nowhere/objdump"),
                         ["gfx90a: not disassembled, as there is no llvm-objdump"])

    def test_units(self):
        objdump = os.path.join(self.folder, "objdump")
        with open(objdump, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncat <<'END'\n0000 <{NAME}>:\n\t$(cat {objdump}.said)\nEND\n"
                       .replace("<<'END'", "<<END"))
        os.chmod(objdump, 0o755)
        options = ["--units=Kernel", f"--objdump={objdump}"]

        def refused(target, wave, *instructions):
            with open(objdump + ".said", "w", encoding="utf-8") as said:
                said.write("\n\t".join(instructions))
            return self.refused(host_object(bundle({target: code_object(kernel(NAME, wave))})), *options)

        mfma, wmma = "v_mfma_i32_16x16x16i8 v[0:3], v4", "v_wmma_i32_16x16x16_iu8 v[0:7], v[8:11]"
        self.assertEqual(refused("gfx90a", 64, "v_mov_b32 v0, 0", mfma), [])
        self.assertEqual(refused("gfx1201", 32, wmma), [])
        self.assertEqual(refused("gfx1030", 32, "s_trap 2", "s_endpgm"), [])
        none = f"gfx1100: no kernel that is called Kernel uses {wmma.split()[0]}"
        self.assertEqual(refused("gfx1100", 32, "v_dot4_i32_iu8 v0, v1"),
                         [f"gfx1100: {READABLE} does not use {wmma.split()[0]}", none])
        self.assertEqual(refused("gfx1100", 32, "s_trap 2", "s_endpgm"), [none])
        self.assertEqual(refused("gfx1030", 32, "v_dot4_i32_i8 v0, v1"),
                         [f"gfx1030: {READABLE} does not use a matrix unit, as there is none"])

    def test_unreadable(self):
        self.assertIn("No such file", self.unreadable(None))
        self.assertIn("not an ELF file", self.unreadable(b"text"))
        self.assertIn("can't be read", self.unreadable(host_object(self.good())[:-70]))
        self.assertIn("no device code", self.unreadable(elf([(".text", b"")])))
        self.assertIn("is compressed", self.unreadable(host_object(b"CCOB")))
        self.assertIn("nothing describes", self.unreadable(host_object(bundle({"gfx90a": elf([])}))))
        whole = self.good()
        self.assertIn("can't be read", self.unreadable(host_object(whole[:60])))


class NvidiaTest(CheckTest):
    def object(self, ptx, flags=0, told=b"-arch sm_80 -fmad false"):
        cubin = elf([(f".text.{NAME}", b"\0"), (".note.nv.tkinfo", told)])
        content = fat_binary((2, 80, 0, cubin), (1, 80, flags, ptx))
        return elf([(".nv_fatbin", content), (".rodata", NAME.encode() + b"\0")])

    def test_accepts_what_is_right(self):
        content = self.object(b"mul.rn.f32 %f1;\nadd.rn.f32 %f1;\nmad.lo.s32 %r1;\nfma.what;\n")
        self.assertEqual(self.refused(content, "--exact", "--target=sm_80", "--target=compute_80"), [])

    def test_fused(self):
        content = self.object(b".visible .entry Kernel(\nfma.rn.ftz.f32 %f1;\n")
        self.assertEqual(self.refused(content, "--exact"), ["compute_80: Kernel has 1 fma.rn.ftz.f32"])
        content = self.object(b"", told=b"-arch sm_80")
        self.assertEqual(self.refused(content, "--exact")[0],
                         f"sm_80: assembled without --fmad=false (of a source with {READABLE})")

    def test_compressed(self):
        self.assertEqual(self.refused(self.object(b"x", flags=0x8000), "--exact"),
                         ["compute_80: compressed (build with --no-compress)"])


class FusedTest(unittest.TestCase):
    """Tests output of llvm-objdump with fusions that the compiler adds itself, and others."""

    def find(self, *lines):
        return [name for _, name in fused.in_disassembly("\n".join(["0000 <Kernel>:", *lines]))]

    def test_integers(self):
        self.assertEqual(self.find("v_mad_u64_u32 v[2:3], s5, v1, v2, 0 // 17BC: 88840A02",
                                   "v_mad_i32_i24 v1, v2, 3, v4", "v_dot4_i32_i8 v1, v2, v3, v4",
                                   "v_mfma_i32_16x16x16i8 a[0:3], v1, v2, a[0:3]"), [])

    def test_division_of_64_bits(self):
        self.assertEqual(self.find("v_fmac_f32_e32 v1, 0x4f800000, v2", "v_rcp_f32_e32 v1, v1",
                                   "v_mac_f32_e32 v1, 0xcf800000, v2",
                                   "v_fmamk_f32 v0, v2, 0x4f800000, v3"), [])

    def test_division_of_24_bits(self):
        division = ["v_rcp_iflag_f32_e32 v3, v2", "v_mul_f32_e32 v3, v1, v3", "v_trunc_f32_e32 v3, v3",
                    "v_fma_f32 v1, -v3, v2, v1"]
        self.assertEqual(self.find(*division), [])
        self.assertEqual(self.find(*division[:3], "v_mov_b32_e32 v3, v9", division[3]), ["v_fma_f32"])
        scalar = ["s_trunc_f32 s21, s5", "s_xor_b32 s5, s21, 0x80000000", "s_cvt_u32_f32 s21, s21",
                  "s_fmaak_f32 s5, s5, s4, 0x43800000"]
        self.assertEqual(self.find(*scalar), [])
        self.assertEqual(self.find(*scalar[1:]), ["s_fmaak_f32"])

    def test_all_others(self):
        lines = ["v_fma_f32 v1, v2, v3, v4", "v_fmac_f32_e32 v1, v2, v3", "v_mad_f32 v1, v2, v3, v4",
                 "v_mac_f16_e32 v1, v2, v3", "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]",
                 "v_fma_mix_f32 v1, v2, v3, v4", "v_fma_mixlo_f16 v1, v2, v3, v4",
                 "v_fmaak_f32 v1, v2, v3, 0x3f000000", "v_dot2_f32_f16 v1, v2, v3, v4",
                 "v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", "v_div_fmas_f32 v1, v2, v3, v4",
                 "s_fmac_f32 s1, s2, s3", "v_mfma_f32_16x16x16f16 a[0:3], v1, v2, a[0:3]"]
        self.assertEqual(self.find(*lines), [line.split()[0] for line in lines])
        self.assertEqual(self.find("v_dual_mul_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6"),
                         ["v_dual_fmac_f32"])


@unittest.skipUnless(HIPCC, "no hipcc")
class CompiledTest(CheckTest):
    """Tests code that a compiler made."""

    def test_refused(self):
        path = os.path.join(self.folder, "refused.o")
        subprocess.run([HIPCC, "-x", "hip", "--offload-arch=gfx90a", "--offload-arch=gfx1030", "-O3",
                        "-c", os.path.join(HERE, "refused.hip"), "-o", path],
                       check=True, env={**os.environ, "HIP_PLATFORM": "amd"})
        with open(path, "rb") as file:
            content = file.read()
        failures = "\n".join(self.refused(content, "--exact", "--target=gfx90a", "--target=gfx1100"))
        for expected in (r"no code for gfx1100 ", r"code for gfx1030, which nobody asked for",
                         r"gfx90a: .*ByWave<32> is registered and not there",
                         r"gfx1030: .*ByWave<64> is there for other targets only",
                         r"gfx90a: Spills spills [1-9]\d* VGPRs",
                         r"gfx1030: Spills spills [1-9]\d* VGPRs",
                         r"gfx90a: LocalArray has \d+ bytes of scratch",
                         r"gfx90a: Fuses has 1 v_\w+", r"gfx1030: Fuses has 1 v_\w+"):
            self.assertRegex(failures, expected)
        self.assertNotRegex(failures, "Divides|Exact|disassembled")
        failures = self.refused(content, "--units=Exact|Multiplies", "--may-spill=.")
        self.assertIn("gfx90a: Exact does not use v_mfma_i32_16x16x", "\n".join(failures))
        self.assertNotIn("Multiplies", "\n".join(failures))


if __name__ == "__main__":
    unittest.main()
