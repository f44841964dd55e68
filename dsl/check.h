/* dsl/check.h - what the checker's files share. Internal. */
#ifndef TEGULA_DSL_CHECK_H
#define TEGULA_DSL_CHECK_H

#include "dsl/slice.h"

enum tg_code {
#define CODE(name, meaning) name,
#include "dsl/codes.def"
#undef CODE
    TG_N_CODES
};

/* ---- check.c ---- */

/* One check: where messages go, and the place they are about. */
struct check {
    const tg_sink *sink;
    const char *file;
    int line;
    uint32_t errors;
    bool newer;            /* something was built for a later library */
    const char *uncounted; /* a kernel that the schedule at hand has behind those that n_rows counts */
};

const char *tg_code_name(enum tg_code code);
const char *tg_code_meaning(enum tg_code code);

/* Error or warning at the current place. The hint says what to do. */
#define tg_fault(check, code, hint, ...)                                                                               \
    ((check)->errors++,                                                                                                \
     tg_report((check)->sink, TG_ERROR, tg_code_name(code), (check)->file, (check)->line, (hint), __VA_ARGS__))
#define tg_warn(check, code, hint, ...)                                                                                \
    tg_report((check)->sink, TG_WARNING, tg_code_name(code), (check)->file, (check)->line, (hint), __VA_ARGS__)

/* The status of a finished check. */
tg_status tg_check_status(const struct check *check);

/* struct_size and version against ours. When false nothing else of the struct may be read. */
bool tg_check_header(struct check *check, enum tg_code code, const char *what, uint32_t struct_size,
                     uint32_t expected_size, uint32_t version);

/* Longest names. Those of tensors and kernels become identifiers; the others may have a '-'. */
enum { TG_MAX_IDENTIFIER = 15, TG_MAX_NAME = 31 };

/* `what` is said in the message: "tile 7". */
bool tg_check_identifier(struct check *check, enum tg_code code, const char *what, const char *name);
bool tg_check_name(struct check *check, enum tg_code code, const char *what, const char *name);
bool tg_is_name(const char *name, uint32_t longest, bool dash);
bool tg_same_name(const char *a, const char *b); /* false when one is NULL */

/* Text for messages: the name of a tile, or "tile 77" when it has none that can be printed. */
struct tg_text {
    char chars[96];
};
const char *tg_tile_text(const tg_algorithm *algorithm, uint32_t tile, struct tg_text *text);
const char *tg_mask_text(uint32_t dims, struct tg_text *text); /* "Lhq, dqk" */

/* Scalars that the algorithm has: those it lists, or the scale alone. */
uint32_t tg_scalar_count(const tg_algorithm *algorithm);
bool tg_scalars_are_listed(const tg_algorithm *algorithm); /* the array is there as its count says */
const char *tg_scalar_text(const tg_algorithm *algorithm, uint32_t scalar, struct tg_text *text);

/* ---- check_algorithm.c, check_stmt.c ---- */

void tg_check_algorithm(struct check *check, const tg_algorithm *algorithm);
void tg_check_stmt(struct check *check, const tg_algorithm *algorithm, const tg_stmt *stmt);
bool tg_check_tile_exists(const tg_algorithm *algorithm, tg_operand operand);

/* The entry is all zero: a number that no tile has. Tiles of a family of algorithms keep their
 * numbers. */
bool tg_tensor_unused(const tg_tensor *tensor);

/* ---- check_schedule.c, check_roles.c, check_segments.c ---- */

/* One kernel under check. */
struct kernel {
    struct check *check;
    const tg_schedule *schedule;
    const tg_kernel_row *row;
    const char *name;
    struct tg_slice slice;
};

enum { TG_MAX_BLOCK = 512 };

/* The role and the block of every dimension; needs a slice. */
void tg_check_roles(const struct kernel *kernel);
void tg_check_segments(const struct kernel *kernel); /* part of it */
void tg_check_pieces(const struct kernel *kernel);   /* pieces.c */

/* Statement `s`, if the kernel computes it, else NULL. Is there a CARRY among those? */
const tg_stmt *tg_computed(const struct kernel *kernel, uint32_t s);
bool tg_computes_carry(const struct kernel *kernel);

/* Without its algorithm; `algorithm_ok` says that one has been found good, else only what does not
 * depend on it is checked. */
void tg_check_schedule(struct check *check, const tg_schedule *schedule, bool algorithm_ok);

/* What a field must be, when it cannot have that value; NULL when it can. `slice` is of the row, or
 * NULL when there is none. */
const char *tg_block_fault(const tg_kernel_row *row, const struct tg_slice *slice, uint32_t dim, uint32_t block);
const char *tg_number_fault(tg_field field, uint32_t value);

/* ---- check_space.c ---- */

struct tg_table;

/* Without its schedule; `table`: that, which has been found good, else NULL. */
void tg_check_space(struct check *check, const tg_space *space, const struct tg_table *table);

#endif
