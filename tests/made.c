/* tests/made.c - stands between the compiler and its two slow steps (linked with --wrap; see tests/CMakeLists.txt).
 *
 * What they make is found by all that it depends on, less names. From a module, which is complete before LLVM's passes
 * begin: its bitcode, the target, the LLVM that it is made by and the two sources that say how. From PTX: its text, those
 * sources and the ptxas that assembles it. The compiler itself runs every time, so a test sees its own plan, its own refusals and
 * its own code, and what it wants otherwise than the last time is made anew. */
#include "made.h"

#include "lower/emit.h"
#include "made_id.h"

#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Support.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

bool __real_emit_finish(struct emit *e, bool keep_llvm, struct lowered *out);
bool __wrap_emit_finish(struct emit *e, bool keep_llvm, struct lowered *out);
bool __real_lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out);
bool __wrap_lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out);

LLVMErrorRef __real_LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                                  LLVMPassBuilderOptionsRef options);
LLVMErrorRef __wrap_LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                                  LLVMPassBuilderOptionsRef options);

static atomic_bool is_off;

void made_take(bool is_taken)
{
    atomic_store(&is_off, !is_taken);
}

/* What is made quickly: few passes before the code generator's, and of those none that make few instructions fewer. */
static const char few_passes[] = "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,dce)";
static const char *const left_out[] = {"tests",
                                       "-opt-disable=slsr,gvn,nary-reassociate",
                                       "-disable-lsr",
                                       "-disable-machine-licm",
                                       "-disable-machine-sink",
                                       "-disable-block-placement",
                                       "-disable-copyprop",
                                       "-disable-peephole"};
static bool is_quick;

void made_quickly(void)
{
    if (!is_quick)
        LLVMParseCommandLineOptions(sizeof left_out / sizeof *left_out, left_out, NULL);
    is_quick = true;
}

LLVMErrorRef __wrap_LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                                  LLVMPassBuilderOptionsRef options)
{
    return __real_LLVMRunPasses(module, is_quick && machine ? few_passes : passes, machine, options);
}

static const char *folder(void)
{
    const char *name = getenv("TEGULA_MADE");
    return name && *name && !atomic_load(&is_off) ? name : NULL;
}

/* ---- files: three numbers, then bytes ---- */

struct made {
    char path[4096];
    uint32_t number[3];
    char *bytes; /* malloc'ed, and followed by a NUL that is not counted */
    size_t n;
};

/* The file of what is made from these bytes by `how`. */
static void name_file(struct made *made, const char *how, const void *from, size_t n)
{
    const XXH128_hash_t a = XXH3_128bits(from, n), b = XXH3_128bits_withSeed(how, strlen(how), a.low64);
    snprintf(made->path, sizeof made->path, "%s/%016llx%016llx", folder(), (unsigned long long)(a.high64 ^ b.high64),
             (unsigned long long)b.low64);
}

static bool read_file(struct made *made)
{
    struct stat info;
    FILE *file = fopen(made->path, "rb");
    if (!file)
        return false;
    bool ok = fstat(fileno(file), &info) == 0 && (size_t)info.st_size >= sizeof made->number &&
              fread(made->number, sizeof made->number, 1, file) == 1;
    made->n = ok ? (size_t)info.st_size - sizeof made->number : 0;
    made->bytes = ok ? malloc(made->n + 1) : NULL;
    ok = made->bytes && fread(made->bytes, 1, made->n, file) == made->n;
    fclose(file);
    if (ok)
        made->bytes[made->n] = '\0';
    else
        free(made->bytes);
    return ok;
}

/* By another name until it is whole, since other processes read there. One that cannot be written is made again. */
static void write_file(const char *to, const uint32_t number[3], const void *bytes, size_t n)
{
    char path[sizeof((struct made *)0)->path + 8];
    snprintf(path, sizeof path, "%s.XXXXXX", to);
    const int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (!file)
        return;
    bool ok = fwrite(number, sizeof *number, 3, file) == 3 && fwrite(bytes, 1, n, file) == n;
    ok = fclose(file) == 0 && ok && rename(path, to) == 0;
    if (!ok)
        unlink(path);
}

/* A file as it is today: a library or program may be replaced by another version. False where there is none. */
static bool state_of(const char *path, char *text, size_t n)
{
    struct stat info;
    if (!path || stat(path, &info) != 0)
        return false;
    snprintf(text, n, "%s %lld %lld", path, (long long)info.st_size, (long long)info.st_mtime);
    return true;
}

/* ---- PTX ---- */

/* Code that kernels of many names, from statements on other lines, have in common is made once: without name and lines. */
static const char anonymous[] = "tegula_made";

static bool forget_names(struct emit *e)
{
    LLVMSetSourceFileName(e->module, "", 0);
    LLVMSetValueName2(e->function, anonymous, sizeof anonymous - 1);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(e->module, "strip", NULL, options);
    LLVMDisposePassBuilderOptions(options);
    LLVMConsumeError(error);
    return !error;
}

/* A text with another name, malloc'ed. */
static char *renamed(const char *text, const char *from, const char *to)
{
    const size_t n = strlen(from), n_to = strlen(to);
    size_t n_uses = 0;
    for (const char *at = text; (at = strstr(at, from)) != NULL; at += n)
        n_uses++;
    char *out = malloc(strlen(text) + n_uses * n_to + 1), *end = out;
    for (const char *use; out && (use = strstr(text, from)) != NULL; text = use + n) {
        end = (char *)mempcpy(end, text, (size_t)(use - text));
        end = (char *)mempcpy(end, to, n_to);
    }
    if (out)
        strcpy(end, text);
    return out;
}

/* The library, as it is today. */
static char llvm[4096];

static void find_llvm(void)
{
    Dl_info info = {0};
    void (*const version)(unsigned *, unsigned *, unsigned *) = LLVMGetVersion;
    void *address;
    memcpy(&address, &version, sizeof address);
    if (!dladdr(address, &info) || !state_of(info.dli_fname, llvm, sizeof llvm))
        *llvm = '\0';
}

static bool name_module(struct made *made, const struct emit *e)
{
    char how[4608];
    const struct plan *p = e->p;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_llvm);
    if (!*llvm)
        return false;
    snprintf(how, sizeof how, "ptx %s %s %u %d %s%s", TEGULA_MADE_ID, p->target->arch, p->target->ptx, p->adds != 0,
             llvm, is_quick ? "quick" : "");
    LLVMMemoryBufferRef bitcode = LLVMWriteBitcodeToMemoryBuffer(e->module);
    name_file(made, how, LLVMGetBufferStart(bitcode), LLVMGetBufferSize(bitcode));
    LLVMDisposeMemoryBuffer(bitcode);
    return true;
}

/* Who asks for LLVM's text wants the passes to have run. */
bool __wrap_emit_finish(struct emit *e, bool keep_llvm, struct lowered *out)
{
    struct made made;
    if (keep_llvm || !folder())
        return __real_emit_finish(e, keep_llvm, out);
    if (!forget_names(e))
        return false;
    const bool is_named = name_module(&made, e);
    if (is_named && read_file(&made)) {
        out->ptx = made.bytes;
        out->n_mma = made.number[0];
    } else {
        if (!__real_emit_finish(e, keep_llvm, out))
            return false;
        if (is_named)
            write_file(made.path, (uint32_t[3]){out->n_mma}, out->ptx, strlen(out->ptx));
    }
    char *nameless = out->ptx;
    out->ptx = renamed(nameless, anonymous, e->p->name);
    free(nameless);
    return out->ptx != NULL;
}

/* ---- cubins: of strict compilations, which say nothing when they are right; the name in one is whoever's came first ---- */

static bool name_cubin(struct made *made, const char *ptxas, const char *ptx, const char *name)
{
    char how[4608], program[4096];
    char *nameless = state_of(ptxas, program, sizeof program) ? renamed(ptx, name, anonymous) : NULL;
    if (!nameless)
        return false;
    snprintf(how, sizeof how, "cubin %s %s", TEGULA_MADE_ID, program);
    name_file(made, how, nameless, strlen(nameless));
    free(nameless);
    return true;
}

bool __wrap_lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out)
{
    struct made made;
    if (!strict || !folder() || !name_cubin(&made, ptxas, out->ptx, p->name))
        return __real_lower_assemble(p, ptxas, strict, out);
    if (read_file(&made)) {
        out->registers = made.number[0];
        out->spill_bytes = made.number[1];
        out->cubin = made.bytes;
        out->cubin_bytes = made.n;
        return true;
    }
    if (!__real_lower_assemble(p, ptxas, strict, out))
        return false;
    write_file(made.path, (uint32_t[3]){out->registers, out->spill_bytes}, out->cubin, out->cubin_bytes);
    return true;
}
