/* tests/kernels/mutants_states.c - kernels of calls as engines make them (states.h), damaged on purpose: what is compared
 * there, bit by bit, must find it out. A row of docs/states.md in whose kernels no damage shows would not be tested. */
#include "damage.h"
#include "state_line.h"
#include "suites.h"

#include <string.h>

/* Each is a line as in states.def. */
enum call_id {
    TURNED,
    TURNED_BACK,
    TURNED_WALK,
    TURNED_WALK_BACK,
    MOVED,
    MOVED_BACK,
    MOVED_WALK,
    MOVED_WALK_BACK,
    PREFILL,
    ROOMY,
    ROOMY_BACK,
    ROOMY_WALK,
    CHUNKED,
    CHUNKED_WALK,
    SLICED,
    SLICED_BACK,
    VERIFIED,
    FOLDED,
    RAGGED,
    EACH_TOKEN,
    N_CALLS
};
static const struct call_under_test {
    const char *name;
    bool is_backward;
    struct state_case line;
} calls[N_CALLS] = {
    /* order and type of states */
    [TURNED] = {"turned states", false,
                STATES("simple-gla", BF16, 2, 2, 65, 24, 40, "tfla", "tfla",
                       (SLOTS, AT(2, 0), .state = TG_BF16, .values_first = 1))},
    [TURNED_BACK] = {"turned states, backward", true,
                     STATES("simple-gla", BF16, 2, 2, 65, 24, 40, "tfla", "tfla",
                            (SLOTS, AT(2, 0), .state = TG_F16, .values_first = 1))},
    [TURNED_WALK] = {"turned states, walk", false,
                     STATES("mlstm-sig", BF16, 2, 1, 70, 64, 72, "walk", "walk",
                            (SLOTS, AT(2, 0), .state = TG_BF16, .values_first = 1))},
    [TURNED_WALK_BACK] = {"turned states, walk, backward", true,
                          STATES("mlstm-sig", BF16, 2, 1, 70, 64, 72, "walk", "walk",
                                 (SLOTS, AT(2, 0), .state = TG_BF16, .values_first = 1))},
    [MOVED] = {"moved states", false,
               STATES("linear", BF16, 4, 2, 65, 24, 40, "tfla", "tfla",
                      (MOVES, FROM(5, -1, 2, -1), TO(1, 4, -1, -1), .is_wide = 1))},
    [MOVED_BACK] = {"moved states, backward", true,
                    STATES("linear", BF16, 4, 2, 65, 24, 40, "tfla", "tfla",
                           (MOVES, FROM(5, -1, 2, -1), TO(1, 4, -1, -1), .is_wide = 1))},
    [MOVED_WALK] = {"moved states, walk", false,
                    STATES("delta-net", BF16, 4, 2, 130, 64, 72, "walk", "walk",
                           (MOVES, FROM(5, -1, 2, -1), TO(1, 4, -1, -1), .state = TG_BF16))},
    [MOVED_WALK_BACK] = {"moved states, walk, backward", true,
                         STATES("delta-net", BF16, 4, 2, 130, 64, 72, "walk", "walk",
                                (MOVES, FROM(5, -1, 2, -1), TO(1, 4, -1, -1), .state = TG_BF16))},
    [PREFILL] = {"prefill and decode", false,
                 STATES("simple-gla", BF16, 0, 2, 0, 24, 40, "tfla", "tfla", (MOVES, FROM(5, -1, 3, 6), TO(1, 4, 2, 6)),
                        .cuts = "0 1 70 71 72")},
    [ROOMY] = {"room behind", false,
               STATES("mlstm-exp", BF16, 0, 2, 0, 40, 24, "tfla", "tfla",
                      (MOVES, FROM(5, 2, -1, -1), TO(1, 3, -1, -1), .room = 140), .cuts = "0 9 75 75 75")},
    [ROOMY_BACK] = {"room behind, backward", true,
                    STATES("mlstm-exp", BF16, 0, 2, 0, 40, 24, "tfla", "tfla",
                           (MOVES, FROM(5, 2, -1, -1), TO(1, 3, -1, -1), .room = 140), .cuts = "0 9 75 75 75")},
    [ROOMY_WALK] = {"room behind, walk", false,
                    STATES("gated-delta", BF16, 0, 2, 0, 64, 72, "walk", "walk", (SLOTS, AT(5, 2, -1), .room = 140),
                           .cuts = "0 9 75 75")},
    [CHUNKED] = {"chunks", false,
                 STATES("gla", BF16, 2, 2, 150, 24, 40, "tfla", NONE,
                        (FROM(5, 9), CHUNKS({0, -1, 5}, {10, 2, 3}), .state = TG_BF16, .values_first = 1))},
    [CHUNKED_WALK] = {"chunks, walk", false,
                      STATES("gated-delta", BF16, 3, 2, 150, 64, 72, "walk", NONE,
                             (FROM(5, 9, 7), CHUNKS({0, 6, 5}, {10, -1, 3}, {8, 1}), .is_packed = 1,
                              LENGTHS(150, 0, 70), .room = 9))},
    [SLICED] = {"slices", false,
                STATES("mlstm-sig", BF16, 0, 2, 0, 40, 72, "tfla", "tfla", (SLOTS, AT(2, 0, 1), .is_mixed = 1),
                       .cuts = "0 9 30 75")},
    [SLICED_BACK] = {"slices, backward", true,
                     STATES("mlstm-sig", BF16, 0, 2, 0, 40, 72, "tfla", "tfla", (SLOTS, AT(2, 0, 1), .is_mixed = 1),
                            .cuts = "0 9 30 75")},
    [VERIFIED] = {"verified step", false,
                  STATES("mlstm-sig", BF16, 4, 2, 5, 40, 72, "step8", NONE,
                         (MOVES, FROM(5, -1, 2, -1), TO(1, 4, -1, -1)))},
    [FOLDED] = {"folded step", false,
                STATES("gated-delta", BF16, 3, 2, 4, 64, 40, "step8", NONE,
                       (MOVES, FROM(5, -1, 9), TO(1, 4, 9), COUNTS(2, 4, 3)))},
    [RAGGED] = {"ragged step", false,
                STATES("gated-delta", BF16, 3, 2, 4, 64, 40, "step8", NONE,
                       (SLOTS, AT(5, 2, 1), .is_packed = 1, LENGTHS(4, 4, 3), COUNTS(2, -1, 3), .is_wide = 1))},
    [EACH_TOKEN] = {"each token", false,
                    STATES("gated-delta", BF16, 3, 2, 4, 64, 40, "step8", NONE,
                           (FROM(5, -1, 9), EACH({0, 1, -1, 2}, {10, -1, 11, 12}, {3, 4, 13, 6}), .state = TG_BF16,
                            .values_first = 1))},
};

static const struct mutant mutants[] = {
#include "mutants_states.def"
};

/* One of them, opened for the first test that wants it. */
struct under_test {
    const struct call_under_test *call;
    bool is_tried, is_open;
    struct trial forward, backward; /* the latter of a backward alone */
    struct firsts firsts;
    struct kernel kernel; /* by the contract */
    struct contract_call *begun;
};

static const struct trial *trial_of(const struct under_test *u)
{
    return u->call->is_backward ? &u->backward : &u->forward;
}

/* What every byte must be is what the ordinary programs compute. */
static bool open_backward(struct under_test *u)
{
    if (!trial_open_backward(&u->backward, &u->forward))
        return false;
    contract_prepare(&u->backward, &u->call->line.contract);
    if (trial_runs(&u->backward))
        return true;
    trial_close(&u->backward);
    return false;
}

static bool open_forward(struct under_test *u)
{
    const struct contract *contract = &u->call->line.contract;
    if (!trial_open(&u->forward, &u->call->line.spec))
        return false;
    contract_prepare(&u->forward, contract);
    if (trial_runs(&u->forward) && (!contract_is_ragged(contract) || firsts_open(&u->firsts, &u->forward, contract)) &&
        (!u->call->is_backward || open_backward(u)))
        return true;
    firsts_close(&u->firsts);
    trial_close(&u->forward);
    return false;
}

static void close_call(struct under_test *u)
{
    if (!u->is_open)
        return;
    if (u->call->is_backward)
        trial_close(&u->backward);
    firsts_close(&u->firsts);
    trial_close(&u->forward);
}

static bool open_call(struct under_test *u)
{
    if (!open_forward(u))
        return false;
    u->is_open = true;
    if (tap_expect(contract_load(trial_of(u), &u->call->line.contract, &u->kernel), "build: %s", log_text()))
        return true;
    close_call(u);
    return false;
}

static const tg_program *open_program(void *user)
{
    struct under_test *u = user;
    if (!u->is_tried)
        u->is_open = open_call(u);
    u->is_tried = true;
    return tap_expect(u->is_open, "there is nothing to damage") ? u->kernel.program : NULL;
}

static bool begin(void *user, int call)
{
    struct under_test *u = user;
    const struct contract *contract = &u->call->line.contract;
    (void)call;
    u->begun =
        contract_begin(trial_of(u), contract_is_ragged(contract) ? u->firsts.after : NULL, contract, u->kernel.program);
    return u->begun;
}

static const char *go(void *user, const tg_module *module)
{
    const struct under_test *u = user;
    return contract_go(u->begun, module, false);
}

static void end(void *user)
{
    struct under_test *u = user;
    contract_end(u->begun);
}

void suite_mutants_states(void)
{
    static struct under_test u;
    harness_plainly(false);
    for (enum call_id id = 0; on_emulator() && id < N_CALLS; id++) {
        u = (struct under_test){.call = &calls[id]};
        const struct patient patient = {u.call->name, &u, 1, open_program, begin, go, end};
        try_undamaged(&patient, NULL);
        try_mutants(&patient, (int)id, mutants, sizeof mutants / sizeof *mutants);
        close_call(&u);
    }
    harness_plainly(true);
}
