/* tests/kernels/damage.h - a line of PTX, damaged, and whether that is found out. */
#ifndef TEGULA_TESTS_DAMAGE_H
#define TEGULA_TESTS_DAMAGE_H

#include "cli/cli.h"

/* What the columns say: mutants.def. */
enum damage { DELETE, SUBSTITUTE, REPLACE, SHIFT, LANE, SWAP, NEVER, NARROW };

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

/* Whether the order of warps and copies decides if it is found out: see mutants.def. */
enum seeds { ANY, ALL, ONE };

/* A line of mutants.def or of mutants_states.def. */
struct mutant {
    int call;
    const char *kernel;
    struct injury injury;
    uint32_t n_spared;
    enum seeds seeds;
    const char *found;
};
#define MUTANT(call, kernel, needle, damage, text, spared, seeds, found)                                               \
    {call, kernel, {needle, damage, text}, spared, seeds, found},

/* What is damaged: a program, and calls of what has become of it. */
struct patient {
    const char *name;
    void *user;
    int n_calls; /* of which any may find out */
    /* NULL, after a failed expectation: there is nothing to damage. */
    const tg_program *(*open)(void *user);
    /* Memory of one of the calls, its inputs in it; false, after messages: there is none. */
    bool (*begin)(void *user, int call);
    /* Launches, over memory as it was behind `begin`. Yields "nothing" where all is as it must be, "numbers" where it runs and
     * is not, else the kind of the emulator's report. */
    const char *(*go)(void *user, const tg_module *module);
    void (*end)(void *user);
};

/* What comes of a program in one of the calls: "load", or what `go` says. A fault takes all modules with it: the emulator is a
 * new one then. */
const char *damage_outcome(const struct patient *patient, const tg_program *program, int call);
/* The kind of the report in the log. */
const char *damage_kind(void);
/* Of a list "a|b|c". */
bool damage_is_one_of(const char *list, const char *name);

/* ---- held.c: a call of a sound program, held before one of its kernels, from where it goes on with damaged ones ---- */

/* One at a time. False after messages, or where the kernel is not launched. */
bool held_begin(const struct patient *patient, const tg_program *program, uint32_t kernel, uint64_t seed, int call);
/* The outcome with that text in the kernel's place. */
const char *held_go(const char *ptx);
void held_end(void); /* also where it did not begin */

/* A test of each of the n mutants that are of this call. */
void try_mutants(const struct patient *patient, int call, const struct mutant *mutants, size_t n);
/* A test that the program itself is right, or else what finds out the mutants finds nothing. `tell`, or NULL, says more of
 * what is wrong. */
void try_undamaged(const struct patient *patient, void (*tell)(void *user));

#endif
