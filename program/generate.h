/* program/generate.h - what the files of generated C share: generate.c puts the values of keys into the templates, the others make
 * them. generate_text.c has the text and the names that C takes, generate_tensors.c the tensors and the signature of the launch,
 * generate_programs.c images, kernels, programs and the table by which one is chosen, generate_notes.c scalars and what is there
 * for people to read. Internal. */
#ifndef TEGULA_GENERATE_H
#define TEGULA_GENERATE_H

#include "program/set.h"
#include "program/text.h"

#include <stdbool.h>
#include <stddef.h>

/* Keys of the templates and their values. */
enum { MAX_KEYS = 44 };

struct key {
    const char *name;
    struct text value;
};

struct keys {
    struct key row[MAX_KEYS];
    size_t n;
};

/* generate_text.c: adds to a text; a new key, whose value is returned; the template with its keys replaced (malloc'ed, NULL without
 * memory); is it a word that C or C++ keep? */
__attribute__((format(printf, 2, 3))) void gen_append(struct text *text, const char *format, ...);
struct text *gen_add_key(struct keys *keys, const char *name);
char *gen_expand(const char *template_text, const struct keys *keys);
bool gen_is_taken(const char *name);

/* generate_tensors.c: the keys of tensors. */
void gen_add_signature(struct keys *keys, const tg_program *program);
void gen_add_tensors(struct keys *keys, const tg_set *set);

/* generate_programs.c: ... of images, kernels, programs and branches; text as it may stand in a comment. */
void gen_add_kernels(struct keys *keys, const tg_set *set);
void gen_add_images(struct keys *keys, const tg_set *set);
void gen_append_harmless(struct text *text, const char *from);
uint32_t gen_chunk_most(const tg_program *program); /* INT32_MAX: any */
void gen_add_programs(struct keys *keys, const tg_set *set);
void gen_add_branches(struct keys *keys, const tg_set *set);

/* generate_notes.c: ... of the rest. */
void gen_add_scalars(struct keys *keys, const tg_set *set);
void gen_add_notes(struct keys *keys, const tg_set *set);
void gen_add_choices(struct keys *keys, const tg_set *set);
void gen_add_lists(struct keys *keys, const tg_set *set);
void gen_add_constants(struct keys *keys, const tg_set *set);
void gen_add_numbers(struct keys *keys, const tg_set *set);
void gen_add_title(struct keys *keys, const tg_set *set);
void gen_add_names(struct keys *keys, const tg_set *set, const char *name);

#endif
