/* compiler/walk.h - what the files of pass walk call of each other. */
#ifndef TEGULA_COMPILER_WALK_H
#define TEGULA_COMPILER_WALK_H

#include "compiler/plan.h"

/* walk.c: reports why the row cannot be a kernel on warpgroups (TG0518); false. */
bool walk_refuse(const struct plan *p, const char *hint, const char *what);
/* ... how many thread blocks a multiprocessor holds, by their registers and by what has been placed in shared memory. */
uint32_t walk_resident(const struct plan *p);

/* walk_space.c: where value i lives; SPACE_NONE: nowhere that it could be. */
enum space walk_space(const struct plan *p, uint32_t i);
/* Is it a sum of the state, or of accumulators? It is whole behind the barrier of the next step. */
bool walk_is_late(const struct plan *p, uint32_t i);
/* Is the map's value v a multiple of the value `of`, by factors of positions? */
bool walk_is_multiple_of(const struct plan *p, const struct value *v, uint32_t of);

/* walk_heads.c: by_head of all values; vectors of what is uniform for one head; has each warpgroup heads of its own? Last, false after
 * reporting what several heads cannot do together. */
void walk_find_heads(struct plan *p);
void walk_find_uniforms(struct plan *p);
bool walk_has_own_heads(const struct plan *p);
bool walk_check_heads(struct plan *p);

/* walk_rows.c: is it a tile of positions by channels that makers make, or what they make such of; a parameter of theirs? The matrix in
 * whose place each that products read is put; false after reporting what cannot be made so. */
bool walk_is_of_rows(const struct plan *p, uint32_t i);
bool walk_is_parameter(const struct plan *p, uint32_t i);
void walk_find_places_of_rows(struct plan *p);
bool walk_check_rows(const struct plan *p);

/* walk_across.c: false after reporting what tiles across ask for in vain; is the rounded state one of their operands? */
bool walk_check_across(struct plan *p);
/* walk_place.c: the matrix in whose place each output is put, and all of shared memory. */
void walk_place_shared(struct plan *p);

#endif
