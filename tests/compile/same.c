/* tests/compile/same.c - the same input gives the same code, on any number of threads, and one plan is as it was written. */
#include "compile.h"

#include "dsl/slice.h"
#include "tests/code.h"
#include "tests/made.h"
#include "variants/variants.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the same code ---- */

static tg_program *default_program(tg_dtype io)
{
    tg_program *program = NULL;
    const tg_target *target = tg_target_find("sm_80");
    const tg_shape_class shape = {.io = io, .dqk = 64, .dhv = 64};
    tg_schedule schedule;
    if (tg_schedule_default(&tg_mlstm_sig, target, &shape, NULL, &schedule, &silent_sink) == TG_OK)
        tg_compile(&tg_mlstm_sig, &schedule, target, &shape, NULL, &program, &silent_sink);
    return program;
}

/* What is kept has no source lines, and so no labels where they begin and end. */
static void drop_labels(struct text *code)
{
    static const char *const labels[] = {"$L__func_begin0:\n", "$L__func_end0:\n"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char *at = code->bytes ? strstr(code->bytes, labels[i]) : NULL;
        if (at)
            memmove(at, at + strlen(labels[i]), strlen(at + strlen(labels[i])) + 1);
    }
}

static bool same_ptx(const char *a, const char *b)
{
    struct text code[2] = {0};
    add_code(&code[0], a);
    add_code(&code[1], b);
    drop_labels(&code[0]);
    drop_labels(&code[1]);
    const bool same = strcmp(text_of(&code[0]), text_of(&code[1])) == 0;
    text_free(&code[0]);
    text_free(&code[1]);
    return same;
}

static bool same_code(const tg_program *a, const tg_program *b)
{
    bool same = a && b && a->n_kernels == b->n_kernels;
    for (uint32_t k = 0; same && k < a->n_kernels; k++)
        same =
            same_ptx(a->kernels[k].ptx, b->kernels[k].ptx) && a->kernels[k].shared_bytes == b->kernels[k].shared_bytes;
    return same;
}

static void *compile_thread(void *io)
{
    return default_program(*(const tg_dtype *)io);
}

static void expect_same_code(const tg_program *first, tg_program *again, const char *what)
{
    tap_expect(same_code(first, again), "%s differs", what);
    tg_program_free(again);
}

static void compile_in_threads(const tg_program *const first[N_TYPES])
{
    enum { N_THREADS = 4 };
    pthread_t threads[N_THREADS];
    tg_dtype io[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        io[i] = types[i % N_TYPES];
        tap_expect(pthread_create(&threads[i], NULL, compile_thread, &io[i]) == 0, "no thread");
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *program = NULL;
        pthread_join(threads[i], &program);
        expect_same_code(first[i % N_TYPES], program, "what a thread made");
    }
}

/* ---- which code is meant ---- */

static void key_with(const char *ptxas, char key[33])
{
    const tg_target *target = tg_target_find("sm_80");
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 64, .dhv = 64};
    tg_schedule schedule;
    tap_expect(tg_schedule_default(&tg_mlstm_sig, target, &shape, NULL, &schedule, &silent_sink) == TG_OK, "none");
    tg_compile_key(&schedule, target, &shape, ptxas, key);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (tap_expect(file != NULL, "no %s", path)) {
        fputs(text, file);
        fclose(file);
    }
}

/* A cubin of a ptxas that was replaced, or of none, is another program. */
void suite_keys(void)
{
    char path[] = "/tmp/tegula-ptxas-XXXXXX", first[33], again[33], replaced[33], none[33];
    if (!tap_begin("the key of a program says which ptxas made its cubins"))
        return;
    const int file = mkstemp(path);
    if (tap_expect(file >= 0, "no temporary file")) {
        close(file);
        write_file(path, "one");
        key_with(path, first);
        key_with(path, again);
        write_file(path, "the next");
        key_with(path, replaced);
        key_with(NULL, none);
        unlink(path);
        tap_expect(strcmp(first, again) == 0, "another key for the same");
        tap_expect(strcmp(first, replaced) != 0, "the key of the one before");
        tap_expect(strcmp(first, none) != 0 && strcmp(replaced, none) != 0, "the key without cubins");
    }
    tap_end();
}

void suite_same_code(void)
{
    tg_program *first[N_TYPES];
    if (!tap_begin("compiling twice, and in four threads, gives the same PTX"))
        return;
    made_take(false);
    for (int i = 0; i < N_TYPES; i++)
        first[i] = default_program(types[i]);
    for (int i = 0; i < N_TYPES; i++)
        expect_same_code(first[i], default_program(types[i]), tg_dtype_name(types[i]));
    compile_in_threads((const tg_program *const *)first);
    made_take(true);
    for (int i = 0; i < 2 * N_TYPES; i++)
        expect_same_code(first[i / 2], default_program(types[i / 2]), "what was kept");
    for (int i = 0; i < N_TYPES; i++)
        tg_program_free(first[i]);
    tap_end();
}

/* ---- the plan ---- */

static void keep_plan(void *user, const char *kernel, tg_stage stage, const char *text)
{
    const tg_writer w = text_writer(user);
    if (stage == TG_STAGE_PLAN && strstr(kernel, "_H"))
        tg_printf(&w, "%s", text);
}

static void check_golden(const char *plan, const char *path, bool is_update)
{
    FILE *file = fopen(path, is_update ? "w" : "r");
    if (!tap_expect(file != NULL, "cannot open %s", path))
        return;
    if (is_update) {
        fputs(plan, file);
        fclose(file);
        return;
    }
    char line[512];
    uint32_t number = 1;
    for (const char *at = plan; fgets(line, sizeof line, file); number++) {
        const size_t n = strcspn(line, "\n") + 1;
        if (!tap_expect(strncmp(at, line, n) == 0,
                        "line %u\n  expected %.*s\n  found    %.*s\n  --update writes the file anew", number,
                        (int)n - 1, line, (int)strcspn(at, "\n"), at))
            break;
        at += n;
    }
    fclose(file);
}

void suite_plan(const char *golden, bool is_update)
{
    struct text plan = {0};
    const tg_compile_options how = {.stage = keep_plan, .user = &plan};
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = 256};
    const tg_target *target = tg_target_find("sm_90a");
    tg_program *program = NULL;
    if (!golden || !tap_begin("the plan of H for bf16, dqk 128, dhv 256 on sm_90a is as written"))
        return;
    tg_schedule schedule;
    tap_expect(schedule_of(&tg_mlstm_sig, "tfla", &schedule) &&
                   tg_compile(&tg_mlstm_sig, &schedule, target, &shape, &how, &program, &log_sink) == TG_OK,
               "%s", log_text());
    check_golden(text_of(&plan), golden, is_update);
    tg_program_free(program);
    text_free(&plan);
    tap_end();
}
