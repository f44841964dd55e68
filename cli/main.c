/* cli/main.c - the table of commands, and nothing else.
 * To add a command: one file with one function, one row here. */
#include "cli.h"

#include <signal.h>
#include <string.h>

enum { N_COMMANDS = 9 };

#define WHERE    (TAKES(OPT_DEVICE) | TAKES(OPT_ARCH) | TAKES(OPT_LOAD))
#define STORES   (TAKES(OPT_CACHE) | TAKES(OPT_NO_CACHE) | TAKES(OPT_WISDOM) | TAKES(OPT_NO_WISDOM) | TAKES(OPT_PTXAS))
#define SCHEDULE (TAKES(OPT_SCHEDULE) | TAKES(OPT_CHUNK))
#define WIDTHS   (TAKES(OPT_DQK) | TAKES(OPT_DHV) | TAKES(OPT_SHAPE))
#define KIND     (TAKES(OPT_GROUP) | TAKES(OPT_PACKED) | TAKES(OPT_POOL) | TAKES(OPT_TOKENS))
#define CALL                                                                                                           \
    (TAKES(OPT_SCALE) | TAKES(OPT_SET) | TAKES(OPT_CU) | TAKES(OPT_POOL) | TAKES(OPT_STATES) | TAKES(OPT_INT64) |      \
     TAKES(OPT_TOKENS))
#define ALL_TAKE (TAKES(OPT_HELP) | TAKES(OPT_JSON))

static const struct command commands[N_COMMANDS] = {
    {"devices", "", "list GPUs, the emulator and the targets of the compiler", ALL_TAKE, 0, 0, command_devices, NULL},
    {"variants", "[VARIANT]", "list what can be compiled: names, tensors, schedules", ALL_TAKE | TAKES(OPT_LOAD), 0, 1,
     command_variants, NULL},
    {"explain", "VARIANT", "show the equations, the schedule row, the reasons and the stages",
     ALL_TAKE | TAKES(OPT_ARCH) | TAKES(OPT_LOAD) | TAKES(OPT_DTYPE) | WIDTHS | KIND | TAKES(OPT_STATES) |
         TAKES(OPT_COUNT) | SCHEDULE | TAKES(OPT_STAGE) | TAKES(OPT_PTXAS) | TAKES(OPT_BACKWARD_SCHEDULE) |
         TAKES(OPT_GPU),
     1, 1, command_explain,
     "  tegula explain mlstm-sig --dqk 128 --dhv 256 --arch sm_90a --stage ptx\n"
     "Times are predicted for calls of one --shape, else of B 8, NH 16, T 8192 (decode: B 64, T 1).\n"},
    {"compile", "VARIANT -o DIR", "write PTX, cubin, bundle and a .c/.h pair to embed",
     ALL_TAKE | TAKES(OPT_ARCH) | TAKES(OPT_LOAD) | TAKES(OPT_DTYPE) | WIDTHS | KIND | TAKES(OPT_STATES) |
         TAKES(OPT_COUNT) | SCHEDULE | TAKES(OPT_OUT) | TAKES(OPT_NAME) | TAKES(OPT_PTXAS) | TAKES(OPT_WISDOM) |
         TAKES(OPT_NO_WISDOM),
     1, 1, command_compile,
     "  tegula compile mlstm-sig --arch sm_90a --dtype bf16 --dqk 128 --dhv 256 -o out\n"
     "  tegula compile mlstm-sig --arch sm_90a --shape B=1,NH=4,T=65536,dqk=128,dhv=256 -o out\n"
     "  tegula compile mlstm-sig --arch sm_80,sm_90a --shape B=8,NH=16,T=8192,dqk=128,dhv=256 \\\n"
     "      --shape B=1,NH=4,T=65536,dqk=128,dhv=256 --wisdom ~/.cache/tegula/wisdom.txt -o out\n"
     "Without --shape the schedule is the cost model's best for B 8, NH 16, T 8192. Each --shape, also of\n"
     "other widths, and each of several --arch and --schedule adds a program; a launch takes one by GPU,\n"
     "widths and sizes. What --wisdom or tegula itself has measured near a shape goes before the model.\n"
     "writes NAME.tgb (bundle for libtegula-rt), NAME.c and NAME.h (nothing but the driver), and\n"
     "NAME.KERNEL.ptx for each kernel, .cubin too when ptxas is found on PATH.\n"},
    {"check", "[VARIANT] FILE... [--shape SHAPE]", "compare a kernel with the truth in files, or with the oracle",
     ALL_TAKE | WHERE | STORES | SCHEDULE | KIND | CALL | TAKES(OPT_DTYPE) | TAKES(OPT_SEED) | TAKES(OPT_SHAPE) |
         TAKES(OPT_LAYOUT) | TAKES(OPT_GRAD) | TAKES(OPT_KEEP_STATES) | TAKES(OPT_BACKWARD_SCHEDULE),
     1, UINT32_MAX, command_check,
     "  tegula check tests/data/mlstmsig_*.safetensors\n"
     "  tegula check mlstm-sig --shape B=1,NH=2,T=333,dqk=40,dhv=72 --dtype f32\n"
     "  tegula check mlstm-exp --shape B=1,NH=4,T=40,dqk=40,dhv=72 --cu 0,5,5,40 --group 2 --grad\n"
     "There may be several --shape.\n"
     "The variant comes from the file's metadata unless named, and so do scalars, boundaries of\n"
     "packed sequences and the group. Gradients get what the forward computed on the device. Exit\n"
     "status: 0 all within tolerance, 1 some are not, 2 something could not be checked.\n"},
    {"run", "[VARIANT] --in FILE --out FILE", "run a kernel on the tensors of a safetensors file",
     ALL_TAKE | WHERE | STORES | SCHEDULE | CALL | TAKES(OPT_DTYPE) | TAKES(OPT_IN) | TAKES(OPT_OUT) | TAKES(OPT_TIME) |
         TAKES(OPT_SEED) | TAKES(OPT_FILE_LAYOUT),
     0, 1, command_run,
     "  tegula run mlstm-sig --in x.safetensors --out h.safetensors --time\n"
     "The variant comes from the file's metadata unless named, and so do scalars, boundaries of\n"
     "packed sequences and the group.\n"},
    {"tune", "VARIANT --shape SHAPE", "find the fastest chunk size and blocks, and remember them",
     ALL_TAKE | WHERE | STORES | TAKES(OPT_DTYPE) | TAKES(OPT_SHAPE) | TAKES(OPT_BUDGET) | TAKES(OPT_SEED) |
         TAKES(OPT_RUNS) | TAKES(OPT_KEEP) | TAKES(OPT_GPU) | TAKES(OPT_GROUP) | TAKES(OPT_PACKED) | TAKES(OPT_STATES),
     1, 1, command_tune,
     "  tegula tune mlstm-sig --shape B=8,NH=16,T=8192,dqk=128,dhv=256\n"
     "What it finds is remembered in --wisdom, apart for each --group, and for --packed. run, check\n"
     "and bench look there first, then into what tegula brings for the H200; tune into neither.\n"
     "Ctrl-C ends the search early: what was found so far is shown and remembered.\n"
     "Without a GPU it prints the cost model's prediction for --gpu or --arch, and stores "
     "nothing.\n"},
    {"bench", "[VARIANT] [--shape SHAPE]", "time kernels: ms, GB/s, TFLOP/s",
     ALL_TAKE | WHERE | STORES | SCHEDULE | KIND | TAKES(OPT_STATES) | TAKES(OPT_DTYPE) | TAKES(OPT_SHAPE) |
         TAKES(OPT_FLUSH) | TAKES(OPT_RUNS) | TAKES(OPT_GRAD) | TAKES(OPT_BACKWARD_SCHEDULE) | TAKES(OPT_KEEP_STATES) |
         TAKES(OPT_ROOFLINE) | TAKES(OPT_PAPER) | TAKES(OPT_SVG),
     0, 1, command_bench,
     "Of a variant without --shape: 65,536 tokens, 16 heads, dqk 128, dhv 256 as B x T = 128 x "
     "512,\n"
     "32 x 2048, 8 x 8192 and 1 x 65536; with --grad the gradients too. Without a variant: a "
     "table\n"
     "of all, with gradients, and of decode steps; or all at a --shape. --shape and --schedule may be\n"
     "repeated.\n"
     "  tegula bench mlstm-sig --roofline --flush --svg roofline.svg\n"
     "  tegula bench mlstm-sig --paper fig5 --schedule tfla --schedule tfla-small --svg fig5.svg\n"
     "fig5: 65,536 tokens, T from 512 to 65536; a --shape gives other B T, NH, dqk, dhv. fig6: B "
     "8, T\n"
     "8192, 8 heads of 256 / 512, or --shape; chunk sizes from 64 to 4096 that the schedule "
     "accepts.\n"
     "Both with gradients.\n"},
    {"study", "transfer [VARIANT...]", "how gates pass a signal on: gains over their pre-activations",
     ALL_TAKE | WHERE | STORES | SCHEDULE | TAKES(OPT_DTYPE) | TAKES(OPT_SHAPE) | TAKES(OPT_SEED) | TAKES(OPT_EPS) |
         TAKES(OPT_SVG),
     1, 9, command_study,
     "transfer: section 4.2 and figure 4 of the TFLA paper. Random q, k and v go through a variant whose\n"
     "gates f and i are constant, -5 to 12 and -12 to 8, and then through an RMS norm. The gain is the\n"
     "mean over the tokens of max|h_t| / max|v_t|, before the norm and after it, by the fp64 recurrence\n"
     "and by the kernels. Without variants mlstm-exp and mlstm-sig; without --shape T 512, 128 / 128.\n"
     "  tegula study transfer --svg transfer.svg\n"
     "  tegula study transfer mlstm-sig-norm --eps 1e-2 --json\n"
     "Exit status: 1 if a kernel's gain after the norm is more than 2 % off.\n"},
};

static void print_help(FILE *to)
{
    fputs("tegula - kernels of the linear-attention family: compile, check, tune, embed\n\n", to);
    fputs("usage: tegula COMMAND [ARGUMENTS] [OPTIONS]\n\n", to);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`tegula COMMAND --help` lists a command's options, `tegula --version` says which this is; each\n"
          "command and that takes --json. Exit status: 0 done, 1 failed, 2 wrong usage or bad input.\n",
          to);
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown_command(struct context *context, const char *name)
{
    const char *names[N_COMMANDS + 1] = {NULL};
    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = nearest_name(name, names);
    char hint[96];
    snprintf(hint, sizeof hint, "did you mean `tegula %s`?", near ? near : "");
    complain(context, near ? hint : "`tegula help` lists the commands", "unknown command '%s'", name);
    return CODE_USAGE;
}

static int print_version(struct context *context, int argc, char **argv)
{
    const bool is_json = argc == 1 && strcmp(argv[0], "--json") == 0;
    if (argc && !is_json) {
        complain(context, "it takes --json alone", "--version: unknown argument '%s'", argv[argc - 1]);
        return CODE_USAGE;
    }
    if (is_json)
        json_print(json_pack("{s:s}", "version", TEGULA_VERSION));
    else
        puts("tegula " TEGULA_VERSION);
    return CODE_OK;
}

static int dispatch(struct context *context, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (*name == '\0') {
        print_help(stderr);
        return CODE_USAGE;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        const struct command *command = argc > 2 ? find_command(argv[2]) : NULL;
        if (command)
            options_print_help(command, stdout);
        else
            print_help(stdout);
        return CODE_OK;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        return print_version(context, argc - 2, argv + 2);
    }
    context->command = find_command(name);
    if (!context->command)
        return unknown_command(context, name);
    if (!options_parse(context, argc - 1, argv + 1))
        return CODE_USAGE;
    if (context->options.help) {
        options_print_help(context->command, stdout);
        return CODE_OK;
    }
    if (context->options.load && !plugin_load(context))
        return CODE_USAGE;
    if (!context->options.json && !context->options.stage)
        wrap_output();
    return context->command->run(context);
}

int main(int argc, char **argv)
{
    struct context context;
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow fails to be written, and that is said */
    context_init(&context);
    int code = dispatch(&context, argc, argv);
    context_close(&context);
    /* A full disk or a closed pipe must not look like success. */
    const bool is_lost = fflush(stdout) != 0 || ferror(stdout); /* now, or when something was flushed before */
    if (is_lost && code == CODE_OK) {
        complain(&context, "is the disk full?", "cannot write to standard output");
        code = CODE_FAILED;
    }
    return code;
}
