/* tests/kernels/damage.h - a line of PTX, damaged. */
#ifndef TEGULA_TESTS_DAMAGE_H
#define TEGULA_TESTS_DAMAGE_H

#include "cli/cli.h"

/* What the columns say: mutants.def. */
enum damage { DELETE, SUBSTITUTE, REPLACE, SHIFT, LANE, SWAP, NEVER };

#define REGISTERS ".reg .pred %mut_p;\n.reg .b32 %mut_r, %mut_s;\n.reg .b64 %mut_rd;\nmov.u32 %mut_r, %tid.x;\n"
#define HALF_WARP REGISTERS "and.b32 %mut_r, %mut_r, 31;\nsetp.lt.u32 %mut_p, %mut_r, 16;\n"
#define ONE_WARP  REGISTERS "setp.ge.u32 %mut_p, %mut_r, 32;\n"

struct injury {
    const char *needle;
    enum damage damage;
    const char *text;
};

/* The text with the damage in its `which`-th line that contains the needle; NULL if there are
 * fewer. `damaged` receives that line. The caller frees it. */
char *damage_text(const struct injury *injury, const char *ptx, uint32_t which, char damaged[200]);

#endif
