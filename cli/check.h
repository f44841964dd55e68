/* cli/check.h - what the files of `tegula check` share. */
#ifndef TEGULA_CLI_CHECK_H
#define TEGULA_CLI_CHECK_H

#include "cli.h"

/* One program of a check: the forward, or the gradients. */
struct leg {
    const tg_variant *variant; /* NULL: not there */
    tg_problem problem;
    struct file_notes notes;
    struct choice choice;
    tg_truth truth;
    tg_deviation deviation;
    bool has_truth;
    bool is_paper; /* gradients by the TFLA paper's convention: the normaliser is a constant */
};

struct check {
    struct context *context;
    const char *path;
    const tg_variant *wanted; /* what is checked: a forward and, if asked for, its gradients; or these */
    struct st_file *file;     /* NULL: random inputs of `shape` */
    const tg_shape *shape;
    struct leg forward;                                 /* also where it only computes what the gradients take */
    bool has_head;                                      /* the file's name is printed */
    json_t *programs, *tensors, *skipped, *differences; /* arrays, with --json */
};

/* ---- check_compare.c ---- */

/* Judges every output of a program that has run. */
int check_compare(struct check *check, struct leg *leg);
void check_print_head(struct check *check, const struct leg *leg);
/* What could be used and is not, said aloud. */
void check_skip(struct check *check, const char *name, const char *reason);
void check_skip_gradients(struct check *check);

/* The statements of the gradients against differences of the forward's. */
int check_differences(struct check *check, const tg_variant *forward, const tg_variant *backward);

#endif
