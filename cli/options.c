/* cli/options.c - the options of all commands, as one table.
 * A command names those it takes; parsing, help and "did you mean" follow from the table. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, COUNT, SEED, POSITIVE, SCHEDULE, SHAPE, SETTING, CUTS };

struct option_row {
    const char *name;
    const char *argument; /* as help shows it */
    enum kind kind;
    size_t offset; /* in struct options */
    const char *help;
};

#define AT(member) offsetof(struct options, member)

static const struct option_row rows[N_OPTIONS] = {
    [OPT_HELP] = {"help", NULL, FLAG, AT(help), "this text"},
    [OPT_JSON] = {"json", NULL, FLAG, AT(json), "results as JSON on standard output"},
    [OPT_DEVICE] = {"device", "emu|N", TEXT, AT(device),
                    "GPU number or emulator (default: GPU 0 if there is one, else emu)"},
    [OPT_ARCH] = {"arch", "ARCH", TEXT, AT(arch), "compile for sm_80, sm_86, sm_89, sm_90a, sm_100a or sm_120a"},
    [OPT_DTYPE] = {"dtype", "TYPE", TEXT, AT(dtype), "type of q, k, v, h: bf16, f16 or f32"},
    [OPT_DQK] = {"dqk", "N", COUNT, AT(dqk), "width of q and k: a multiple of 8 from 16 to 512"},
    [OPT_DHV] = {"dhv", "N", COUNT, AT(dhv), "width of v and h: a multiple of 8 from 16 to 512"},
    [OPT_SHAPE] = {"shape", "SHAPE", SHAPE, 0, "B=8,NH=16,T=8192,dqk=128,dhv=256"},
    [OPT_CHUNK] = {"chunk", "L", COUNT, AT(chunk), "chunk size"},
    [OPT_SCHEDULE] = {"schedule", "TEXT", SCHEDULE, AT(schedule),
                      "a schedule's name, changes to it, or both: \"tfla chunk=128 H.Lhq=64\""},
    [OPT_STAGE] = {"stage", "STAGE", TEXT, AT(stage), "also print one stage: plan, llvm or ptx"},
    [OPT_SEED] = {"seed", "N", SEED, AT(seed), "of random inputs, and of the emulator's hostile order"},
    [OPT_SCALE] = {"scale", "X", POSITIVE, AT(scale), "factor of q (default: the file's, else 1/sqrt(dqk))"},
    [OPT_SET] = {"set", "NAME=X", SETTING, 0,
                 "a scalar of the call, in place of the file's: scale, tau, eps, exact; may be "
                 "repeated"},
    [OPT_GROUP] = {"group", "G", COUNT, AT(group), "heads that share queries and keys (default 1)"},
    [OPT_CU] = {"cu", "0,N,...,T", CUTS, 0, "packed sequences: where each begins, then T"},
    [OPT_PACKED] = {"packed", NULL, FLAG, AT(packed), "B sequences of different lengths, T tokens in all"},
    [OPT_POOL] = {"pool", NULL, FLAG, AT(pool), "states in slots of a pool, the final where the initial was"},
    [OPT_STATES] = {"states", "WORDS", TEXT, AT(states),
                    "how states are kept: bf16, f16 or f32; v-first: [dhv, dqk]; index-out: the ends in slots of their "
                    "own; each-token, each-chunk: those behind every one"},
    [OPT_COUNT] = {"count", NULL, FLAG, AT(count), "decode steps that are told how many tokens of each sequence count"},
    [OPT_INT64] = {"int64", NULL, FLAG, AT(int64), "boundaries and slot numbers as int64"},
    [OPT_TOKENS] = {"tokens", "N", COUNT, AT(tokens), "a decode step: schedules for at most N tokens a call"},
    [OPT_GRAD] = {"grad", NULL, FLAG, AT(grad), "gradients too (default for files with grad.*)"},
    [OPT_KEEP_STATES] = {"keep-states", NULL, FLAG, AT(keep_states),
                         "gradients, with the forward's states handed over"},
    [OPT_BACKWARD_SCHEDULE] = {"backward-schedule", "TEXT", TEXT, AT(backward_schedule), "--schedule of the gradients"},
    [OPT_LAYOUT] = {"layout", "bhtd|bthd", TEXT, AT(layout),
                    "[B, NH, T, d] or [B, T, NH, d] in device memory (default bhtd)"},
    [OPT_FILE_LAYOUT] = {"layout", "bhtd|bthd", TEXT, AT(file_layout),
                         "the files have [B, NH, T, d] or [B, T, NH, d] (default bhtd)"},
    [OPT_IN] = {"in", "FILE", TEXT, AT(input), "safetensors file with the inputs"},
    [OPT_OUT] = {"out", "PATH", TEXT, AT(output), "where to write; also -o"},
    [OPT_NAME] = {"name", "NAME", TEXT, AT(name), "prefix of files and functions (default: the variant's name)"},
    [OPT_TIME] = {"time", NULL, FLAG, AT(time), "print how long each phase took"},
    [OPT_FLUSH] = {"flush", NULL, FLAG, AT(flush), "flush the L2 cache before each timed run"},
    [OPT_RUNS] = {"runs", "N", COUNT, AT(runs), "timed runs"},
    [OPT_ROOFLINE] = {"roofline", NULL, FLAG, AT(roofline), "each kernel beside what memory and matrix rate allow"},
    [OPT_PAPER] = {"paper", "fig5|fig6", TEXT, AT(paper),
                   "a figure of the TFLA paper: time over T; time and memory over chunk size"},
    [OPT_SVG] = {"svg", "FILE", TEXT, AT(svg), "draw the roofline, the figure or the study, with gnuplot"},
    [OPT_EPS] = {"eps", "X", POSITIVE, AT(eps), "what the norm adds to the mean of squares (default 1e-6)"},
    [OPT_BUDGET] = {"budget-seconds", "S", POSITIVE, AT(budget_seconds), "stop searching after so long (default 20)"},
    [OPT_KEEP] = {"keep", "N", COUNT, AT(keep), "time only the N best values of a field by the cost model (default 6)"},
    [OPT_GPU] = {"gpu", "NAME", TEXT, AT(gpu), "predict for this GPU, which need not be there (\"H200\")"},
    [OPT_LOAD] = {"load", "FILE", TEXT, AT(load), "a shared object with variants of your own (./mine.so)"},
    [OPT_CACHE] = {"cache", "DIR", TEXT, AT(cache), "kernel cache (default ~/.cache/tegula)"},
    [OPT_NO_CACHE] = {"no-cache", NULL, FLAG, AT(no_cache), "compile anew and store nothing"},
    [OPT_WISDOM] = {"wisdom", "FILE", TEXT, AT(wisdom), "your tuning results (default ~/.cache/tegula/wisdom.txt)"},
    [OPT_NO_WISDOM] = {"no-wisdom", NULL, FLAG, AT(no_wisdom),
                       "ignore earlier tuning results, yours and those that tegula brings"},
    [OPT_PTXAS] = {"ptxas", "PATH", TEXT, AT(ptxas), "ptxas, for cubins and register counts; none: without"},
};

static const char *usage_of(const struct command *command, char text[128])
{
    snprintf(text, 128, "usage: tegula %s%s%s [OPTIONS]", command->name, *command->arguments ? " " : "",
             command->arguments);
    return text;
}

void options_print_help(const struct command *command, FILE *to)
{
    char usage[128];
    fprintf(to, "tegula %s - %s\n\n%s\n\n", command->name, command->summary, usage_of(command, usage));
    for (int id = 0; id < N_OPTIONS; id++) {
        if (!(command->options & TAKES(id)))
            continue;
        char left[40];
        snprintf(left, sizeof left, "--%s %s", rows[id].name, rows[id].argument ? rows[id].argument : "");
        print_list(to, fprintf(to, "  %-24s ", left), rows[id].help);
    }
    if (command->notes)
        fprintf(to, "\n%s", command->notes);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein distance; names are short. */
static size_t edits(const char *a, const char *b)
{
    enum { MOST = 48 };
    size_t row[MOST + 1];
    size_t n = strlen(b);
    if (n > MOST || strlen(a) > MOST)
        return MOST;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = smaller(replaced, smaller(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[n];
}

const char *nearest_name(const char *wrong, const char *const *names)
{
    const char *best = NULL;
    size_t least = strlen(wrong) / 3 + 2; /* further off than this is another word */
    for (; *names; names++) {
        size_t distance = edits(wrong, *names);
        if (distance < least) {
            least = distance;
            best = *names;
        }
    }
    return best;
}

/* Sizes beyond it are no sizes: what is computed of them stays exact in 64 bits. */
static const long long most_count = 1LL << 40;

static bool parse_count(struct context *context, const char *label, const char *text, int64_t least, int64_t *value)
{
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno || x < least) {
        complain(context, "give a whole number in decimal digits",
                 "%s: expected a whole number of at least %lld, found '%s'", label, (long long)least, text);
        return false;
    }
    if (x > most_count) {
        complain(context, "give a smaller one", "%s: expected at most %lld, found %lld", label, most_count, x);
        return false;
    }
    *value = x;
    return true;
}

/* All five sizes, in any order. */
static bool shape_parse(struct context *context, const char *text, tg_shape *shape)
{
    static const char *const names[] = {"B", "NH", "T", "dqk", "dhv", NULL};
    static const char *const hint = "write all five, in any order: --shape B=8,NH=16,T=8192,dqk=128,dhv=256";
    int64_t values[5];
    unsigned given = 0;
    char copy[160];

    if (strlen(text) >= sizeof copy) {
        complain(context, hint, "--shape: %zu characters are too many", strlen(text));
        return false;
    }
    char *rest = strcpy(copy, text);
    for (char *item; (item = strsep(&rest, ",")) != NULL;) {
        char *equals = strchr(item, '=');
        int field = -1;
        if (equals)
            *equals = '\0';
        for (int i = 0; names[i]; i++)
            if (strcmp(names[i], item) == 0)
                field = i;
        if (!equals || field < 0) {
            complain(context, hint, "--shape %s: '%s' is not one of B=, NH=, T=, dqk=, dhv=", text, item);
            return false;
        }
        if (given & 1U << field) {
            complain(context, hint, "--shape %s: %s is given twice", text, item);
            return false;
        }
        char label[180];
        snprintf(label, sizeof label, "--shape %s: %s", text, item);
        if (!parse_count(context, label, equals + 1, 1, &values[field]))
            return false;
        given |= 1U << field;
    }
    for (int i = 0; names[i]; i++) {
        if (!(given & 1U << i)) {
            complain(context, hint, "--shape %s: %s is missing", text, names[i]);
            return false;
        }
    }
    *shape =
        (tg_shape){.batch = values[0], .heads = values[1], .tokens = values[2], .dqk = values[3], .dhv = values[4]};
    return true;
}

static bool setting_parse(struct context *context, const char *text)
{
    struct options *options = &context->options;
    const char *equals = strchr(text, '=');
    char *end = NULL;
    const double value = equals ? strtod(equals + 1, &end) : 0;
    if (!equals || equals == text || end == equals + 1 || *end != '\0' || !isfinite(value)) {
        complain(context, "write a name and a number: --set tau=16", "--set: expected NAME=NUMBER, found '%s'", text);
        return false;
    }
    if (options->n_settings == MAX_SETTINGS) {
        complain(context, "give each scalar once", "more than %d --set options", MAX_SETTINGS);
        return false;
    }
    struct setting *setting = &options->settings[options->n_settings++];
    snprintf(setting->name, sizeof setting->name, "%.*s", (int)(equals - text), text);
    setting->value = value;
    return true;
}

static bool cuts_parse(struct context *context, const char *text)
{
    tg_cuts *cuts = &context->options.cuts;
    size_t n = 1;
    for (const char *at = text; *at; at++)
        n += *at == ',';
    free(cuts->at);
    *cuts = (tg_cuts){calloc(n, sizeof *cuts->at), (int64_t)n - 1};
    for (size_t i = 0; cuts->at && i < n; i++) {
        char *end;
        errno = 0;
        cuts->at[i] = strtoll(text, &end, 10);
        if (end == text || *end != (i + 1 < n ? ',' : '\0') || errno) {
            complain(context, "give where each sequence begins, then T: 0,5,5,40",
                     "--cu: expected a whole number, found '%s'", text);
            return false;
        }
        text = end + 1;
    }
    return cuts->at != NULL;
}

void options_free(struct options *options)
{
    free(options->cuts.at);
    options->cuts = (tg_cuts){NULL, 0};
}

static bool shape_cuts(struct context *context, tg_shape *shape)
{
    const tg_cuts *cuts = &context->options.cuts;
    if (shape->batch != 1 && shape->batch != cuts->n) {
        complain(context, "write B=1, or the number of sequences",
                 "--shape: B=%lld, expected 1 or the %lld sequences of --cu", (long long)shape->batch,
                 (long long)cuts->n);
        return false;
    }
    shape->batch = cuts->n;
    return tg_cuts_check("--cu", cuts, shape->tokens, &context->sink) == TG_OK;
}

/* One word of --states. Its field is 0 until a word has set it; NULL: no such word. */
static uint8_t *states_word(const char *word, size_t n, tg_shape_class *said, uint8_t *value)
{
    const struct {
        const char *name;
        uint8_t *field, value;
    } words[] = {
        {"bf16", &said->state, TG_BF16},
        {"f16", &said->state, TG_F16},
        {"f32", &said->state, TG_F32},
        {"v-first", &said->values_first, 1},
        {"each-chunk", &said->pooled, TG_POOL_CHUNKS},
        {"index-out", &said->pooled, TG_POOL_MOVES},
        {"each-token", &said->pooled, TG_POOL_TOKENS},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].name) == n && strncmp(word, words[i].name, n) == 0) {
            *value = words[i].value;
            return words[i].field;
        }
    return NULL;
}

static bool states_words(struct context *context, tg_shape_class *said)
{
    const bool is_called = context->command->options & TAKES(OPT_DEVICE);
    for (const char *at = context->options.states; at && *at;) {
        const size_t n = strcspn(at, ",");
        uint8_t value, *field = states_word(at, n, said, &value);
        if (!field) {
            complain(context, "words, with commas between: bf16, f16, f32, v-first, index-out, each-token, each-chunk",
                     "--states: unknown word '%.*s'", (int)n, at);
            return false;
        }
        if (is_called && field == &said->pooled) {
            complain(
                context, "`compile` and `explain` take it",
                "--states: expected bf16, f16, f32 or v-first, found '%.*s': this command's calls leave states where "
                "they were",
                (int)n, at);
            return false;
        }
        if (*field && *field != value) {
            complain(context, "one type, and one of index-out, each-token and each-chunk",
                     "--states: '%.*s' contradicts a word before it", (int)n, at);
            return false;
        }
        *field = value;
        at += n + (at[n] == ',');
    }
    return true;
}

bool options_states_of(struct context *context, tg_shape *shape)
{
    tg_shape_class said = {.state = 0};
    const bool ok = states_words(context, &said);
    shape->state = said.state;
    shape->values_first = said.values_first;
    return ok;
}

bool options_shape(struct context *context, tg_shape *shape)
{
    const struct options *options = &context->options;
    if (!options_states_of(context, shape))
        return false;
    shape->group = options->group;
    shape->most_tokens = options->tokens;
    shape->pooled = options->pool;
    shape->packed = options->packed || options->cuts.at;
    if (options->tokens && shape->tokens > options->tokens) {
        complain(context, "give as many as the longest call has", "--tokens %lld: a call of --shape has T = %lld",
                 (long long)options->tokens, (long long)shape->tokens);
        return false;
    }
    if (options->group && shape->heads % options->group != 0) {
        complain(context, "choose a group that divides NH", "--group: %lld, expected a divisor of NH = %lld",
                 (long long)options->group, (long long)shape->heads);
        return false;
    }
    return !options->cuts.at || shape_cuts(context, shape);
}

bool dtype_parse(struct context *context, const char *text, tg_dtype *dtype)
{
    static const tg_dtype types[] = {TG_BF16, TG_F16, TG_F32};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcasecmp(text, tg_dtype_name(types[i])) == 0) {
            *dtype = types[i];
            return true;
        }
    }
    complain(context, "choose bf16, f16 or f32", "--dtype: '%s', expected bf16, f16 or f32", text);
    return false;
}

bool options_states(struct context *context, tg_shape_class *shape)
{
    tg_shape_class said = {.state = 0};
    if (!states_words(context, &said))
        return false;
    if (said.pooled && !shape->pooled) {
        complain(context, "add --pool", "--states: slots are of a pool, and there is none");
        return false;
    }
    shape->counted = context->options.count;
    shape->state = said.state;
    shape->values_first = said.values_first;
    if (said.pooled)
        shape->pooled = said.pooled;
    return true;
}

static bool store(struct context *context, int id, const char *argument)
{
    struct options *options = &context->options;
    const struct option_row *row = &rows[id];
    void *member = (char *)options + row->offset;
    char label[40];
    snprintf(label, sizeof label, "--%s", row->name);

    switch (row->kind) {
    case FLAG:
        *(bool *)member = true;
        return true;
    case TEXT:
        *(const char **)member = argument;
        return true;
    case COUNT:
        return parse_count(context, label, argument, 1, member);
    case SEED:
        return parse_count(context, label, argument, 0, member);
    case POSITIVE: {
        char *end;
        double x = strtod(argument, &end);
        if (end == argument || *end != '\0' || !(x > 0) || x > 1e30) {
            complain(context, "give a positive decimal number", "%s: expected a positive number, found '%s'", label,
                     argument);
            return false;
        }
        *(double *)member = x;
        return true;
    }
    case SCHEDULE:
        if (options->n_schedules == MAX_SCHEDULES) {
            complain(context, "run the command once more for the others", "more than %d --schedule options",
                     MAX_SCHEDULES);
            return false;
        }
        options->schedule = options->schedules[options->n_schedules++] = argument;
        return true;
    case SHAPE:
        if (options->n_shapes == MAX_SHAPES) {
            complain(context, "run the command once more for the others", "more than %d --shape options", MAX_SHAPES);
            return false;
        }
        return shape_parse(context, argument, &options->shapes[options->n_shapes++]);
    case SETTING:
        return setting_parse(context, argument);
    case CUTS:
        return cuts_parse(context, argument);
    }
    return false;
}

static bool refuse_option(struct context *context, int found, const char *text)
{
    const struct command *command = context->command;
    char hint[128];
    if (found == ':') {
        snprintf(hint, sizeof hint, "`tegula %s --help` lists the options", command->name);
        complain(context, hint, "%s needs an argument", text);
        return false;
    }
    const char *names[N_OPTIONS + 1];
    size_t n = 0;
    for (int id = 0; id < N_OPTIONS; id++)
        if (command->options & TAKES(id))
            names[n++] = rows[id].name;
    names[n] = NULL;
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(text, "="), text);
    const char *given = bare + strspn(bare, "-"), *near = nearest_name(given, names);
    if (near && strcmp(near, given) == 0) {
        complain(context, "write it without '='", "%s takes no argument, found '%s'", bare, text + strlen(bare));
        return false;
    }
    if (near)
        snprintf(hint, sizeof hint, "did you mean --%s?", near);
    else
        snprintf(hint, sizeof hint, "`tegula %s --help` lists the options", command->name);
    complain(context, hint, "`tegula %s` does not take %s", command->name, bare);
    return false;
}

static bool check_arguments(struct context *context)
{
    const struct command *command = context->command;
    const struct options *options = &context->options;
    char hint[128];
    usage_of(command, hint);
    if (options->help)
        return true;
    if (options->n_args < command->min_args) {
        complain(context, hint, "`tegula %s` needs %s", command->name,
                 command->min_args == 1 ? "an argument" : "more arguments");
        return false;
    }
    if (options->n_args > command->max_args) {
        complain(context, hint, "unexpected argument '%s'", options->args[command->max_args]);
        return false;
    }
    return true;
}

bool options_parse(struct context *context, int argc, char **argv)
{
    struct option longs[N_OPTIONS + 1] = {{NULL, 0, NULL, 0}};
    size_t n = 0;
    for (int id = 0; id < N_OPTIONS; id++)
        if (context->command->options & TAKES(id))
            longs[n++] =
                (struct option){rows[id].name, rows[id].kind == FLAG ? no_argument : required_argument, NULL, 256 + id};

    /* Known before the loop, so that a mistake in an earlier option is reported as JSON too. */
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0 && !context->errors)
            context->errors = json_array();

    const bool has_out = context->command->options & TAKES(OPT_OUT);
    opterr = 0;
    for (;;) {
        int before = optind;
        int found = getopt_long(argc, argv, has_out ? ":ho:" : ":h", longs, NULL);
        if (found == -1)
            break;
        if (found == 'h')
            found = 256 + OPT_HELP;
        if (found == 'o')
            found = 256 + OPT_OUT;
        if (found == '?' || found == ':')
            return refuse_option(context, found, argv[optind > before ? optind - 1 : before]);
        if (!store(context, found - 256, optarg))
            return false;
    }
    context->options.args = argv + optind;
    context->options.n_args = (uint32_t)(argc - optind);
    return check_arguments(context);
}
