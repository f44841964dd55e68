/* lower/llvm.c - from module to PTX text.
 *
 * The emitter's code is near final: a short list of clean-up passes, chosen so that nothing unrolls,
 * vectorises or duplicates matrix instructions. A fatal error inside LLVM must not take the process down:
 * capabilities are checked before any IR exists, and the module is verified before code is made from it. */
#include "lower/emit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const passes =
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,"
    "instcombine<no-verify-fixpoint>,simplifycfg,dce)";

/* LLVM reports what it cannot do by ending the process. As a last resort we jump out instead: what it had
 * allocated for this module is lost, the process is not. */
static _Thread_local jmp_buf *escape;
static _Thread_local char fatal_text[256];

static void on_fatal(const char *text)
{
    snprintf(fatal_text, sizeof fatal_text, "%s", text);
    if (escape)
        longjmp(*escape, 1);
}

static void initialise(void)
{
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInstallFatalErrorHandler(on_fatal);
}

static bool failed(const struct plan *p, const char *what, const char *text)
{
    tg_report(p->sink, TG_ERROR, "TG0590", NULL, 0, "this is a defect of Tegula: please report it with the schedule",
              "kernel %s: %s: %s", p->name, what, text ? text : "no details");
    return false;
}

static LLVMTargetMachineRef make_machine(const struct plan *p, char **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialise);
    LLVMTargetRef target;
    if (LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &target, error))
        return NULL;
    char features[16];
    enum { ST_ASYNC_PTX = 81 }; /* of sums that clusters exchange alone: others run on older drivers */
    snprintf(features, sizeof features, "+ptx%u",
             p->adds && !p->in_turn && p->target->ptx < ST_ASYNC_PTX ? ST_ASYNC_PTX : p->target->ptx);
    return LLVMCreateTargetMachine(target, "nvptx64-nvidia-cuda", p->target->arch, features, LLVMCodeGenLevelAggressive,
                                   LLVMRelocDefault, LLVMCodeModelDefault);
}

static bool optimise(struct emit *e, LLVMTargetMachineRef machine)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(e->module, passes, machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return true;
    char *text = LLVMGetErrorMessage(error);
    failed(e->p, "optimising", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

static uint32_t count(const char *ptx, const char *word)
{
    uint32_t n = 0;
    for (const char *at = ptx; (at = strstr(at, word)) != NULL; at++)
        n++;
    return n;
}

static bool write_ptx(struct emit *e, LLVMTargetMachineRef machine, struct lowered *out)
{
    char *error = NULL;
    LLVMMemoryBufferRef buffer;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, e->module, LLVMAssemblyFile, &error, &buffer)) {
        failed(e->p, "writing PTX", error);
        LLVMDisposeMessage(error);
        return false;
    }
    out->ptx = strndup(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    if (!out->ptx)
        return failed(e->p, "writing PTX", "out of memory");
    out->n_mma = count(out->ptx, "mma.sync") + count(out->ptx, "wgmma.mma_async.");
    return true;
}

static bool prepare(struct emit *e, LLVMTargetMachineRef machine)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(e->module, layout);
    LLVMDisposeTargetData(layout);
    LLVMSetTarget(e->module, "nvptx64-nvidia-cuda");
    char *error = NULL;
    const bool ok = !LLVMVerifyModule(e->module, LLVMReturnStatusAction, &error);
    if (!ok)
        failed(e->p, "the IR is malformed", error);
    LLVMDisposeMessage(error);
    return ok;
}

static bool finish(struct emit *e, LLVMTargetMachineRef machine, bool keep_llvm, struct lowered *out)
{
    if (!prepare(e, machine) || !optimise(e, machine))
        return false;
    if (keep_llvm) {
        char *text = LLVMPrintModuleToString(e->module);
        out->llvm = strdup(text);
        LLVMDisposeMessage(text);
    }
    return write_ptx(e, machine, out);
}

bool emit_finish(struct emit *e, bool keep_llvm, struct lowered *out)
{
    char *error = NULL;
    LLVMTargetMachineRef machine = make_machine(e->p, &error);
    if (!machine) {
        failed(e->p, "no NVPTX back end in this LLVM", error);
        LLVMDisposeMessage(error);
        return false;
    }
    jmp_buf here;
    e->abandoned = setjmp(here) != 0;
    escape = e->abandoned ? NULL : &here;
    if (e->abandoned)
        return failed(e->p, "LLVM gave up", fatal_text);
    const bool ok = finish(e, machine, keep_llvm, out);
    escape = NULL;
    LLVMDisposeTargetMachine(machine);
    return ok;
}

void lower_free(struct lowered *out)
{
    free(out->llvm);
    free(out->ptx);
    free(out->cubin);
    memset(out, 0, sizeof *out);
}
