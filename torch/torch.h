/* torch/torch.h - operators of PyTorch on libtorch's stable C interface (libtegula-torch), for the Python package.
 *
 * The host, which is Python, declares operators and says what a call comes to: which module, which strides, what outputs
 * are like. It is asked once for calls that are alike. From then on a call is made here: arguments off PyTorch's stack, the
 * plan of calls like it, memory of PyTorch's for outputs and workspace, a launch on PyTorch's current stream. No interpreter
 * is in it, and its lock is not held.
 *
 * PyTorch's registry of operators is the process's and has no way back, and so is this one. */
#ifndef TEGULA_TORCH_H
#define TEGULA_TORCH_H

#include "../runtime/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TG_TORCH_OPERATORS = 512,
    TG_TORCH_TENSORS = 40, /* inputs, or outputs, of an operator */
    TG_TORCH_RANK = 6,
    TG_TORCH_OPTIONS = 8,
    TG_TORCH_MESSAGE = 1024
};
enum { TG_TORCH_I64 = 100, TG_TORCH_U8 = 101 };      /* beside tg_dtype */
enum { TG_TORCH_HOST = -1, TG_TORCH_EMULATOR = -2 }; /* beside the ordinals of GPUs */

/* Declared as
 *     NAME(inputs: Tensor or Tensor?, scalars: float?, options: int) -> outputs: Tensor...
 *     NAME.out(the same, outputs: Tensor(a!)?, workspace: Tensor(w!)?) -> ()
 * `name` without the namespace, which is tegula. The text is copied. */
typedef struct tg_torch_operator {
    const char *name;
    uint32_t n_inputs, n_scalars, n_options, n_outputs;
    uint64_t optional;      /* inputs that are Tensor?, as bits */
    uint64_t rows;          /* inputs that kernels read in pieces of 16 bytes; dense copies where they do not lie so */
    uint64_t written;       /* inputs that are Tensor(a!): never copied */
    uint32_t takes_outputs; /* 1: NAME.out */
} tg_torch_operator;

/* A tensor of a call. Sizes and strides, in elements, are valid during the call. */
typedef struct tg_torch_tensor {
    uint64_t address;
    const int64_t *sizes, *strides;
    int32_t rank;   /* -1: there is none */
    int32_t dtype;  /* tg_dtype, TG_TORCH_I64, or 0 for another */
    int32_t device; /* the ordinal of a GPU, TG_TORCH_HOST or TG_TORCH_EMULATOR */
} tg_torch_tensor;

typedef struct tg_torch_call {
    uint32_t number; /* of the operator */
    tg_torch_tensor inputs[TG_TORCH_TENSORS], outputs[TG_TORCH_TENSORS];
    double scalars[TG_MAX_SCALARS]; /* NaN: not given */
    int64_t options[TG_TORCH_OPTIONS];
    tg_torch_tensor workspace;
    void *stream;
    char message[TG_TORCH_MESSAGE]; /* what is wrong, where it is refused */
} tg_torch_call;

/* An output that a call makes: a dense tensor. */
typedef struct tg_torch_output {
    int32_t dtype; /* 0: it is not made */
    int32_t rank;
    int64_t sizes[TG_TORCH_RANK];
} tg_torch_output;

/* What calls that are alike come to. */
typedef struct tg_torch_plan {
    const tg_driver *driver;
    const tg_module *module; /* NULL: each call is the host's to make, see `run` */
    int32_t ordinal;
    uint32_t has_scalars;
    tg_sizes sizes;
    float scalars[TG_MAX_SCALARS];
    uint64_t workspace; /* bytes */
    tg_torch_output outputs[TG_TORCH_TENSORS];
    uint32_t n_args;
    uint8_t sources[TG_MAX_TENSORS]; /* whose address an argument has: an input, or TG_TORCH_TENSORS + an output */
    tg_tensor_arg args[TG_MAX_TENSORS];
} tg_torch_plan;

/* Both yield 0, or another number after they have put into `message` what is wrong. Called from any thread. */
typedef struct tg_torch_host {
    int (*plan)(const tg_torch_call *call, tg_torch_plan *plan, char *message); /* of a call without its outputs */
    int (*run)(const tg_torch_call *call, char *message);                       /* a call, with its outputs */
} tg_torch_host;

/* Finds libtorch in this process. TG_E_UNSUPPORTED where it is none, or older than 2.9. Once, before the others. */
TG_API tg_status tg_torch_open(const tg_torch_host *host, const tg_sink *sink);
/* Implements an operator that PyTorch has a declaration of, for tensors on the CPU and on GPUs. */
TG_API tg_status tg_torch_implement(const tg_torch_operator *of, uint32_t *number, const tg_sink *sink);
/* How many plans there are; forgets them. */
TG_API uint32_t tg_torch_plans(void);
TG_API void tg_torch_forget(void);
/* For tests: tensors on the CPU pass for memory of the emulator, where their addresses are. */
TG_API void tg_torch_place_cpu(int is_emulator);

#ifdef __cplusplus
}
#endif
#endif
