/* tests/compile/cancelled.c - what ptxas must not take for the same: a sum of accumulators, and the sum of what products have added to since.
 * ptxas 13.0 made x - x of their difference where both are written alike (bench/NOTES.md), which no emulator of PTX sees. */
#include "compile.h"

#include "variants/variants.h"

#include <elf.h>
#include <string.h>

/* An instruction of sm_90 is 16 bytes: the code, 12 bits; the first source's number from bit 24, the second one's from bit 32, and whether it is
 * negated in bit 63; whether the first one is in bit 8 of the upper half. */
enum { FADD = 0x221, CODE = 0xfff, NO_REGISTER = 255 };

static bool is_difference_of_itself(const uint64_t instruction[2])
{
    const uint64_t first = instruction[0] >> 24 & 0xff, second = instruction[0] >> 32 & 0xff;
    return (instruction[0] & CODE) == FADD && first == second && first != NO_REGISTER &&
           (instruction[0] >> 63) != (instruction[1] >> 8 & 1);
}

/* Of the code of a cubin; `adds`: those of that code at all. */
static uint32_t count_cancelled(const uint8_t *cubin, uint32_t *adds)
{
    Elf64_Ehdr header;
    uint32_t n = 0;
    memcpy(&header, cubin, sizeof header);
    for (uint32_t s = 0; s < header.e_shnum; s++) {
        Elf64_Shdr section;
        memcpy(&section, cubin + header.e_shoff + s * sizeof section, sizeof section);
        for (uint64_t at = 0; (section.sh_flags & SHF_EXECINSTR) && at < section.sh_size; at += 16) {
            uint64_t instruction[2];
            memcpy(instruction, cubin + section.sh_offset + at, sizeof instruction);
            n += is_difference_of_itself(instruction);
            *adds += (instruction[0] & CODE) == FADD;
        }
    }
    return n;
}

static void check_schedule(const char *name, uint32_t dhv, const char *ptxas)
{
    const tg_target *target = tg_target_find("sm_90a");
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = dhv, .group = 8};
    const tg_compile_options how = {.ptxas = ptxas};
    tg_schedule schedule;
    tg_program *program = NULL;
    if (!tap_expect(schedule_of(tg_mamba2.backward, name, &schedule) &&
                        tg_compile(tg_mamba2.backward, &schedule, target, &shape, &how, &program, &log_sink) == TG_OK,
                    "%s: not compiled", name))
        return;
    log_clear();
    compile_with(tg_mamba2.backward, &schedule, target, &shape, ptxas);
    bool has_adds = false;
    for (uint32_t k = 0; k < program->n_kernels; k++) {
        const tg_kernel *kernel = &program->kernels[k];
        uint32_t adds = 0;
        const uint32_t n = kernel->cubin ? count_cancelled(kernel->cubin, &adds) : 0;
        tap_expect(kernel->cubin && n == 0, "%s: %u of %u additions are of a number and itself, negated", kernel->name,
                   n, adds);
        has_adds |= adds > 100;
    }
    tap_expect(has_adds, "%s: no additions were found", name);
    tg_program_free(program);
}

void suite_cancelled(const char *ptxas)
{
    if (!tap_begin("no sum over heads is taken for the one before"))
        return;
    if (ptxas) {
        check_schedule("walk-parts-heads", 64, ptxas);
        check_schedule("walk-parts-pairs", 128, ptxas);
    } else {
        tap_skip("no ptxas");
    }
    log_clear();
    tap_end();
}
