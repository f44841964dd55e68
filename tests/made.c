/* tests/made.c - stands between the compiler and LLVM (linked with --wrap; see tests/CMakeLists.txt).
 *
 * What LLVM makes is found by all that it depends on, less names: the module, which is complete before LLVM's passes
 * begin, as bitcode, the target, the LLVM that it is made by and the source that says how. The compiler itself runs every time,
 * so a test sees its own plan, its own refusals and its own code, and what it wants otherwise than the last time is made
 * anew. */
#include "made.h"

#include "lower/emit.h"
#include "plain/plain.h"
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

LLVMErrorRef __real_LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                                  LLVMPassBuilderOptionsRef options);
LLVMErrorRef __wrap_LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                                  LLVMPassBuilderOptionsRef options);

static atomic_bool is_off;

void made_take(bool is_taken)
{
    atomic_store(&is_off, !is_taken);
}

const char made_nothing[] = "// what becomes of this is known";
static made_known *is_known;
static made_done *is_done;

void made_ask(made_known *known, made_done *done)
{
    is_known = known;
    is_done = done;
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
static atomic_bool is_plain = true;

void made_plainly(bool is)
{
    atomic_store(&is_plain, is);
}

/* Who has opened the emulator runs on it what is made from then on. */
static bool is_for_emulator(void)
{
    void *const emulator = dlopen(EMULATOR, RTLD_LAZY | RTLD_NOLOAD);
    if (emulator)
        dlclose(emulator);
    return emulator != NULL;
}

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
    return name && *name ? name : NULL;
}

/* ---- files: a number, then bytes ---- */

struct made {
    char module[MADE_HASH], path[4096];
    uint32_t number;
    char *bytes; /* malloc'ed, and followed by a NUL that is not counted */
    size_t n;
};

/* Of what is made from these bytes by `how`. */
static void hash_text(char text[MADE_HASH], const char *how, const void *from, size_t n)
{
    const XXH128_hash_t a = XXH3_128bits(from, n), b = XXH3_128bits_withSeed(how, strlen(how), a.low64);
    snprintf(text, MADE_HASH, "%016llx%016llx", (unsigned long long)(a.high64 ^ b.high64), (unsigned long long)b.low64);
}

static bool read_file(struct made *made)
{
    struct stat info;
    FILE *file = fopen(made->path, "rb");
    if (!file)
        return false;
    bool ok = fstat(fileno(file), &info) == 0 && (size_t)info.st_size >= sizeof made->number &&
              fread(&made->number, sizeof made->number, 1, file) == 1;
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
static void write_file(const char *to, uint32_t number, const void *bytes, size_t n)
{
    char path[sizeof((struct made *)0)->path + 8];
    snprintf(path, sizeof path, "%s.XXXXXX", to);
    const int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (!file)
        return;
    bool ok = fwrite(&number, sizeof number, 1, file) == 1 && fwrite(bytes, 1, n, file) == n;
    ok = fclose(file) == 0 && ok && rename(path, to) == 0;
    if (!ok)
        unlink(path);
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

/* The library as it is today: it may be replaced by another version. Empty: it is not known. */
static char llvm[4160];

static void find_llvm(void)
{
    Dl_info info = {0};
    struct stat file;
    void (*const version)(unsigned *, unsigned *, unsigned *) = LLVMGetVersion;
    void *address;
    memcpy(&address, &version, sizeof address);
    if (dladdr(address, &info) && info.dli_fname && stat(info.dli_fname, &file) == 0)
        snprintf(llvm, sizeof llvm, "%s %lld %lld", info.dli_fname, (long long)file.st_size, (long long)file.st_mtime);
}

/* By all that decides but the sources and what LLVM is beside its version. */
static void name_module(struct made *made, const struct emit *e)
{
    char how[128];
    unsigned version[3];
    const struct plan *p = e->p;
    LLVMGetVersion(&version[0], &version[1], &version[2]);
    snprintf(how, sizeof how, "%s %u %d %u.%u.%u%s", p->target->arch, p->target->ptx, p->adds != 0, version[0],
             version[1], version[2], is_quick ? " quick" : "");
    LLVMMemoryBufferRef bitcode = LLVMWriteBitcodeToMemoryBuffer(e->module);
    hash_text(made->module, how, LLVMGetBufferStart(bitcode), LLVMGetBufferSize(bitcode));
    LLVMDisposeMemoryBuffer(bitcode);
}

static bool name_file(struct made *made)
{
    char how[4608], hash[MADE_HASH];
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_llvm);
    if (!*llvm || !folder())
        return false;
    snprintf(how, sizeof how, "ptx %s %s", TEGULA_MADE_ID, llvm);
    hash_text(hash, how, made->module, MADE_HASH - 1);
    snprintf(made->path, sizeof made->path, "%s/%s", folder(), hash);
    return true;
}

static bool make_ptx(struct emit *e, struct made *made, struct lowered *out)
{
    const bool is_named = name_file(made);
    if (is_named && read_file(made)) {
        out->ptx = made->bytes;
        out->n_mma = made->number;
    } else {
        if (!__real_emit_finish(e, false, out))
            return false;
        if (is_named)
            write_file(made->path, out->n_mma, out->ptx, strlen(out->ptx));
    }
    char *nameless = out->ptx;
    out->ptx = renamed(nameless, anonymous, e->p->name);
    free(nameless);
    return out->ptx != NULL;
}

/* One kernel of so many is LLVM's all the same: by their code, so that they are always the same ones. */
static uint64_t of_llvm(void)
{
    const char *text = getenv("TEGULA_OF_LLVM");
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 ? (uint64_t)n : 64;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_unknown[MADE_UNKNOWN];

bool made_unknown(char text[MADE_UNKNOWN])
{
    pthread_mutex_lock(&lock);
    memcpy(text, last_unknown, MADE_UNKNOWN);
    last_unknown[0] = '\0';
    pthread_mutex_unlock(&lock);
    return text[0] != '\0';
}

static void note_unknown(const char *what)
{
    pthread_mutex_lock(&lock);
    snprintf(last_unknown, MADE_UNKNOWN, "%s", what);
    pthread_mutex_unlock(&lock);
}

static bool make_plainly(struct emit *e, struct lowered *out)
{
    const char *const unknown = plain_write(e, out);
    if (unknown) {
        note_unknown(unknown);
        return false;
    }
    if (XXH3_64bits(out->ptx, strlen(out->ptx)) % of_llvm())
        return true;
    free(out->ptx);
    out->ptx = NULL;
    return false;
}

/* Who asks for LLVM's text wants the passes to have run. */
bool __wrap_emit_finish(struct emit *e, bool keep_llvm, struct lowered *out)
{
    struct made made;
    if (!keep_llvm && atomic_load(&is_plain) && is_for_emulator() && make_plainly(e, out))
        return true;
    if (keep_llvm || atomic_load(&is_off) || (!folder() && !is_known))
        return __real_emit_finish(e, keep_llvm, out);
    if (!forget_names(e))
        return false;
    name_module(&made, e);
    if (!is_known || !is_known(made.module)) {
        const bool ok = make_ptx(e, &made, out);
        if (ok && is_done)
            is_done();
        return ok;
    }
    out->ptx = strdup(made_nothing);
    return out->ptx != NULL;
}
