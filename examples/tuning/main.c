/* examples/tuning/main.c - a program that tunes for the GPU it finds, and writes down what it found.
 *
 *     cc -std=c11 examples/tuning/main.c $(pkg-config --cflags --libs tegula-tuning tegula tegula-rt) -o tuning
 *     ./tuning libcuda.so.1 wisdom.txt 20
 *
 * The first may be the path of the emulator's library, the last is the budget in seconds. */
#include <tegula/tuning/tuning.h>
#include <tegula/variants/variants.h>

#include <stdio.h>
#include <stdlib.h>

static void say(void *user, const tg_diag *diag)
{
    (void)user;
    fprintf(stderr, "%s %s\n", diag->code ? diag->code : "", diag->message);
}
static const tg_sink sink = {.emit = say};

static int tell(void *user, const tg_tuning *so_far, const tg_candidate *candidate, const char *step)
{
    (void)user;
    fprintf(stderr, "%u: %s %s\n", so_far->n_candidates + 1, step, candidate->text);
    return 0; /* anything else cancels, and keeps what was found */
}

static tg_status tune(const tg_machine *machine, const char *wisdom, double seconds)
{
    const tg_tune_request request = {.machine = machine,
                                     .variant = &tg_gla,
                                     .shape = {.batch = 1, .heads = 2, .tokens = 128, .dqk = 32, .dhv = 32},
                                     .io = TG_BF16,
                                     .budget_seconds = seconds,
                                     .progress = tell};
    tg_tuning tuning;
    tg_status status = tg_tune(&request, &tuning, &sink);
    if (status == TG_OK) /* there is a best, for nobody cancelled */
        status = tg_wisdom_add(wisdom, &tuning.wisdom, &sink);
    if (status == TG_OK)
        printf("%s: the fastest of %u is %s, %.3f ms\n", machine->device.name, tuning.n_candidates, tuning.best->text,
               tuning.best->milliseconds);
    tg_tuning_free(&tuning);
    return status;
}

int main(int argc, char **argv)
{
    tg_driver *driver;
    tg_machine machine;
    if (argc != 4 || tg_driver_open(argv[1], &driver, &sink) != TG_OK)
        return 1;
    tg_status status = tg_machine_of(driver, 0, &machine, &sink);
    if (status == TG_OK && (status = tg_context_acquire(driver, 0, &sink)) == TG_OK) {
        status = tune(&machine, argv[2], atof(argv[3]));
        tg_context_release(driver, 0);
    }
    tg_driver_close(driver);
    return status == TG_OK ? 0 : 1;
}
