/* tests/test_jit.c EMULATOR - kernels on first use: what is made once, kept on disk, and refused. */
#include "jit/jit.h"
#include "tests/log.h"
#include "variants/variants.h"
#include "tests/usage.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_THREADS = 4 };

static const char *emulator;
static const tg_shape_class narrow = {.io = TG_BF16, .dqk = 32, .dhv = 32};

struct device {
    tg_driver *driver;
    tg_jit *jit;
};

static struct device open_with(const tg_jit_options *options)
{
    struct device d;
    LOG(log);
    if (tg_driver_open(emulator, &d.driver, &log_sink) != TG_OK ||
        tg_context_acquire(d.driver, 0, &log_sink) != TG_OK ||
        tg_jit_open(d.driver, 0, options, &d.jit, &log_sink) != TG_OK)
        fail_msg("%s", log.text);
    return d;
}

static struct device open_device(const char *cache)
{
    return open_with(&(tg_jit_options){.cache = cache});
}

static void close_device(struct device *d)
{
    tg_jit_close(d->jit);
    tg_context_release(d->driver, 0);
    tg_driver_close(d->driver);
}

static const tg_module *module_of(const struct device *d, const char *variant, tg_sizes sizes)
{
    const tg_module *module;
    LOG(log);
    if (tg_jit_module(d->jit, tg_variant_find(variant), &narrow, &sizes, &module, &log_sink) != TG_OK)
        fail_msg("%s", log.text);
    assert_int_equal(log.n, 0);
    return module;
}

static void the_same_code_is_loaded_once(void **state)
{
    (void)state;
    struct device d = open_device(NULL);
    const tg_module *first = module_of(&d, "linear", (tg_sizes){1, 2, 64, 0});
    assert_ptr_equal(module_of(&d, "linear", (tg_sizes){1, 2, 64, 0}), first);
    assert_ptr_equal(module_of(&d, "linear", (tg_sizes){1, 2, 63, 0}), first); /* the same schedule */
    assert_ptr_not_equal(module_of(&d, "retention", (tg_sizes){1, 2, 64, 0}), first);
    assert_string_equal(tg_module_program(first)->variant, "linear");
    close_device(&d);
}

static int count_files(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *file; dir && (file = readdir(dir));)
        n += file->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static void remove_files(const char *folder)
{
    char path[512];
    DIR *dir = opendir(folder);
    for (const struct dirent *file; dir && (file = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        if (file->d_name[0] != '.' || strlen(file->d_name) > 2)
            unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static void programs_are_kept_on_disk(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_jit.XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct device d = open_device(folder);
    module_of(&d, "linear", (tg_sizes){1, 2, 64, 0});
    assert_int_equal(count_files(folder), 1);
    close_device(&d);
    d = open_device(folder);
    module_of(&d, "linear", (tg_sizes){1, 2, 64, 0});
    assert_int_equal(count_files(folder), 1);
    close_device(&d);
    remove_files(folder);
}

static void a_cache_that_cannot_be_written_is_a_warning(void **state)
{
    (void)state;
    struct device d = open_device("/dev/null/cache");
    const tg_module *module;
    LOG(log);
    assert_int_equal(
        tg_jit_module(d.jit, tg_variant_find("linear"), &narrow, &(tg_sizes){1, 2, 64, 0}, &module, &log_sink), TG_OK);
    assert_non_null(module);
    assert_says(&log, "TG0831 cannot write the kernel cache");
    close_device(&d);
}

/* Of a schedule that the model would not take. */
static void what_tuning_found_goes_first(void **state)
{
    (void)state;
    char file[] = "/tmp/test_jit.XXXXXX";
    const tg_wisdom entry = {.variant = "linear",
                             .device = "Tegula emulator",
                             .dtype = "bf16",
                             .cc = 80,
                             .dqk = 32,
                             .dhv = 32,
                             .batch = 1,
                             .heads = 2,
                             .tokens = 512,
                             .schedule = "tfla-small chunk=256",
                             .chunk = 256,
                             .milliseconds = 1};
    const int descriptor = mkstemp(file);
    assert_true(descriptor >= 0);
    close(descriptor);
    unlink(file);
    struct device d = open_with(&(tg_jit_options){.wisdom = file});
    const tg_program *untuned = tg_module_program(module_of(&d, "linear", (tg_sizes){1, 2, 512, 0}));
    assert_string_not_equal(untuned->schedule, "tfla-small");
    close_device(&d);
    assert_int_equal(tg_wisdom_add(file, &entry, NULL), TG_OK);
    d = open_with(&(tg_jit_options){.wisdom = file});
    const tg_program *tuned = tg_module_program(module_of(&d, "linear", (tg_sizes){1, 2, 512, 0}));
    assert_string_equal(tuned->schedule, "tfla-small");
    assert_int_equal(tuned->chunk_default, 256);
    const tg_program *far = tg_module_program(module_of(&d, "linear", (tg_sizes){1, 2, 4096, 0}));
    assert_string_not_equal(far->schedule, "tfla-small");
    close_device(&d);
    unlink(file);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct device d = open_device(NULL);
    const tg_shape_class odd = {.io = TG_BF16, .dqk = 33, .dhv = 32};
    const tg_sizes sizes = {1, 2, 64, 0};
    const tg_module *module = (const tg_module *)&d;
    tg_jit *jit;
    LOG(log);
    assert_int_equal(tg_jit_module(d.jit, tg_variant_find("linear"), &odd, &sizes, &module, &log_sink), TG_E_ARGUMENT);
    assert_null(module);
    assert_says(&log, "dqk");
    assert_int_equal(tg_jit_module(d.jit, NULL, &narrow, &sizes, &module, &log_sink), TG_E_ARGUMENT);
    const tg_shape_class grouped = {.io = TG_BF16, .dqk = 32, .dhv = 32, .group = 3};
    assert_int_equal(tg_jit_module(d.jit, tg_variant_find("linear"), &grouped, &sizes, &module, &log_sink),
                     TG_E_ARGUMENT);
    assert_says(&log, "TG0703 sizes.heads: expected a multiple of 3, the heads of a group, found 2");
    assert_int_equal(
        tg_jit_module(d.jit, tg_variant_find("linear"), &narrow, &(tg_sizes){-1, 2, 64, 0}, &module, &log_sink),
        TG_E_ARGUMENT);
    assert_says(&log, "TG0702 sizes.batch: expected at least 0, found -1");
    assert_null(module);
    assert_int_equal(tg_jit_open(d.driver, 7, NULL, &jit, &log_sink), TG_E_NO_DEVICE);
    assert_int_equal(tg_jit_open(NULL, 0, NULL, &jit, &log_sink), TG_E_ARGUMENT);
    assert_says(&log, "TG0828 tg_jit_open: driver is NULL");
    tg_jit_close(NULL);
    close_device(&d);
}

/* A forward and its backward that keep states: which tensors, how long, and that both programs have them. */
static void what_a_pair_keeps(void **state)
{
    (void)state;
    struct device d = open_device(NULL);
    const tg_variant *forward = tg_variant_find("simple-gla");
    const tg_sizes sizes = {2, 2, 300, 0};
    tg_jit_kept kept;
    LOG(log);
    assert_int_equal(tg_jit_keeping(d.jit, forward, &narrow, &sizes, &kept, &log_sink), TG_OK);
    assert_int_equal(kept.n, 1);
    assert_string_equal(kept.names[0], "states");
    assert_int_equal(kept.segment, 0);
    assert_true(kept.seconds > 0 && kept.seconds_without > 0);
    for (int i = 0; i < 2; i++) {
        const tg_module *module, *again;
        const tg_variant *variant = i ? forward->backward : forward;
        assert_int_equal(tg_jit_module_keeping(d.jit, variant, &narrow, &sizes, &kept, &module, &log_sink), TG_OK);
        const tg_program *p = tg_module_program(module);
        const int states = tg_program_tensor(p, "states");
        assert_true(states >= 0 && p->tensors[states].flags & (i ? TG_IN : TG_OUT));
        assert_int_equal(p->chunk_default, kept.chunk);
        assert_int_equal(tg_jit_module_keeping(d.jit, variant, &narrow, &sizes, &kept, &again, &log_sink), TG_OK);
        assert_ptr_equal(again, module);
    }
    assert_int_equal(log.n, 0);
    close_device(&d);
}

static void what_nothing_keeps(void **state)
{
    (void)state;
    struct device d = open_device(NULL);
    const tg_sizes sizes = {2, 2, 300, 0}, none = {2, 2, 0, 0};
    const tg_shape_class step = {.io = TG_BF16, .dqk = 32, .dhv = 32, .tokens = 1};
    const tg_module *module;
    tg_jit_kept kept;
    LOG(log);
    assert_int_equal(tg_jit_keeping(d.jit, tg_variant_find("rotary"), &narrow, &sizes, &kept, &log_sink), TG_OK);
    assert_int_equal(kept.n, 0);
    assert_int_equal(tg_jit_keeping(d.jit, tg_variant_find("gla"), &narrow, &none, &kept, &log_sink), TG_OK);
    assert_int_equal(kept.n, 0);
    assert_int_equal(tg_jit_keeping(d.jit, tg_variant_find("gla"), &step, &(tg_sizes){1, 1, 1, 0}, &kept, &log_sink),
                     TG_OK);
    assert_int_equal(kept.n, 0);
    assert_null(tg_jit_kept_tensor(tg_variant_find("rotary"), 0));
    const tg_jit_kept other = {.n = 1, .names = {"states"}, .chunk = 64, .segment = 7};
    assert_int_equal(tg_jit_module_keeping(d.jit, tg_variant_find("gla"), &narrow, &sizes, &other, &module, &log_sink),
                     TG_E_UNSUPPORTED);
    assert_says(&log,
                "TG0836 gla: expected a schedule that keeps states in chunks of 64 and segments of 7, found none");
    close_device(&d);
}

static void tensors_that_are_kept_are_listed(void **state)
{
    (void)state;
    static const char *const of_kda[] = {"t", "p", "kb", "ke", "qb", "gt", "n"};
    for (int backward = 0; backward < 2; backward++) {
        const tg_variant *kda = tg_variant_find(backward ? "kda-backward" : "kda");
        for (uint32_t i = 0; i < 7; i++)
            assert_string_equal(tg_jit_kept_tensor(kda, i)->name, of_kda[i]);
        assert_null(tg_jit_kept_tensor(kda, 7));
    }
}

struct asker {
    const struct device *d;
    const tg_module *module;
};

static void *ask(void *user)
{
    struct asker *asker = user;
    const tg_sizes sizes = {1, 2, 64, 0};
    if (tg_context_acquire(asker->d->driver, 0, NULL) != TG_OK)
        return NULL;
    (void)tg_jit_module(asker->d->jit, tg_variant_find("simple-gla"), &narrow, &sizes, &asker->module, NULL);
    tg_context_release(asker->d->driver, 0);
    return NULL;
}

static void threads_share_one_module(void **state)
{
    (void)state;
    struct device d = open_device(NULL);
    struct asker askers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        askers[i] = (struct asker){&d, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_non_null(askers[0].module);
    for (int i = 1; i < N_THREADS; i++)
        assert_ptr_equal(askers[i].module, askers[0].module);
    close_device(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_code_is_loaded_once),
        cmocka_unit_test(programs_are_kept_on_disk),
        cmocka_unit_test(a_cache_that_cannot_be_written_is_a_warning),
        cmocka_unit_test(what_tuning_found_goes_first),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(what_a_pair_keeps),
        cmocka_unit_test(what_nothing_keeps),
        cmocka_unit_test(tensors_that_are_kept_are_listed),
        cmocka_unit_test(threads_share_one_module),
    };
    if (!usage_is(argc, argv, 1, 1, "EMULATOR"))
        return 2;
    emulator = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
