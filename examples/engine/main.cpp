/* examples/engine/main.cpp - an engine in C++ whose kernels are compiled with it (CMakeLists.txt). It reads a prompt in
 * one call and goes on token by token from the state which that leaves. The outputs must be those of one call over all
 * tokens. `engine libcuda.so.1`, or the emulator's library. */
#include "prompt.h"
#include "step.h"

#include <tegula/runtime/runtime.h> // memory and context; an engine has its own

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int64_t B = 2, NH = 2, PROMPT = 100, STEPS = 3, T = PROMPT + STEPS, DQK = STEP_DQK, DHV = STEP_DHV;

tg_driver *device;    // of libtegula-rt
tegula_driver driver; // one table for all generated programs

void must(bool ok, const char *what)
{
    if (!ok) {
        std::fprintf(stderr, "engine: %s failed\n", what);
        std::exit(1);
    }
}

// [B, NH, tokens, width] on the device, fp32.
struct Array {
    int64_t tokens, width;
    uint64_t address = 0;

    Array(int64_t tokens, int64_t width, float size) : tokens(tokens), width(width)
    {
        std::vector<float> values(static_cast<size_t>(B * NH * tokens * width));
        for (float &value : values)
            value = size * (static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX) - 0.5f);
        const size_t bytes = values.size() * sizeof(float);
        must(tg_memory_alloc(device, bytes, &address, nullptr) == TG_OK, "tg_memory_alloc");
        must(tg_memory_in(device, address, values.data(), bytes, nullptr) == TG_OK, "tg_memory_in");
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array() { tg_memory_free(device, address); }

    // From a token on, as a launch takes it: where, and the strides of B, NH, tokens and width.
    tegula_tensor from(int64_t token) const
    {
        tegula_tensor tensor = {};
        tensor.address = address + static_cast<uint64_t>(token * width) * sizeof(float);
        const int64_t strides[] = {NH * tokens * width, tokens * width, width, 1};
        for (int i = 0; i < 4; i++)
            tensor.stride[i] = strides[i];
        return tensor;
    }

    std::vector<float> fetch() const
    {
        std::vector<float> values(static_cast<size_t>(B * NH * tokens * width));
        must(tg_memory_out(device, values.data(), address, values.size() * sizeof(float), nullptr) == TG_OK,
             "tg_memory_out");
        return values;
    }
};

struct Inputs {
    Array q{T, DQK, 1}, k{T, DQK, 1}, v{T, DHV, 1}, a{T, 1, 0.2f};
};

// One template for all programs: Tensors is prompt_tensors or step_tensors.
template <typename Tensors> Tensors call(const Inputs &in, const Array &h, int64_t token)
{
    Tensors t = {};
    t.q = in.q.from(token);
    t.k = in.k.from(token);
    t.v = in.v.from(token);
    t.a = in.a.from(token);
    t.a.stride[3] = 0; // [B, NH, T]
    t.h = h.from(token);
    return t;
}

tegula_sizes sizes(int64_t tokens)
{
    tegula_sizes n = {};
    n.batch = B;
    n.heads = NH;
    n.tokens = tokens;
    return n;
}

void read_prompt(const prompt_module *module, const Inputs &in, const Array &h, const Array &state, int64_t tokens)
{
    const tegula_sizes n = sizes(tokens);
    const Array workspace(1, static_cast<int64_t>(prompt_workspace_bytes(&n) / sizeof(float)) + 1, 0);
    prompt_tensors t = call<prompt_tensors>(in, h, 0);
    t.S.address = state.address; // contiguous
    must(prompt_launch(module, &n, PROMPT_DEFAULT_scale, &t, workspace.address, nullptr) == PROMPT_OK, "prompt");
    must(tg_synchronize(device, nullptr) == TG_OK, "tg_synchronize"); // the workspace goes
}

void go_on(const step_module *module, const Inputs &in, const Array &h, const Array &state, int64_t token)
{
    const tegula_sizes n = sizes(1);
    step_tensors t = call<step_tensors>(in, h, token);
    t.S0.address = t.S.address = state.address;
    must(step_workspace_bytes(&n) == 0, "a step without workspace");
    must(step_launch(module, &n, STEP_DEFAULT_scale, &t, 0, nullptr) == STEP_OK, "step");
}

double difference(const std::vector<float> &found, const std::vector<float> &expected)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < expected.size(); i++) {
        off += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
        all += std::pow(static_cast<double>(expected[i]), 2);
    }
    return std::sqrt(off / all);
}

bool serve()
{
    prompt_module prompt;
    step_module step;
    must(prompt_load(&prompt, &driver) == PROMPT_OK && step_load(&step, &driver) == STEP_OK, "loading");
    const Inputs in;
    const Array pieces(T, DHV, 0), whole(T, DHV, 0), state(DQK, DHV, 0), end(DQK, DHV, 0);
    read_prompt(&prompt, in, pieces, state, PROMPT);
    for (int64_t token = PROMPT; token < T; token++)
        go_on(&step, in, pieces, state, token);
    read_prompt(&prompt, in, whole, end, T);
    const double h = difference(pieces.fetch(), whole.fetch()), S = difference(state.fetch(), end.fetch());
    std::printf("%d tokens at once against %d and then one by one: h differs by %.1e, the state by %.1e\n",
                static_cast<int>(T), static_cast<int>(PROMPT), h, S);
    prompt_unload(&prompt);
    step_unload(&step);
    return h < 1e-5 && S < 1e-5; // NaN is not
}

} // namespace

int main(int argc, char **argv)
{
    const char *const library = argc > 1 ? argv[1] : "libcuda.so.1";
    must(tg_driver_open(library, &device, nullptr) == TG_OK, library);
    must(tg_context_acquire(device, 0, nullptr) == TG_OK, "tg_context_acquire");
    must(prompt_driver_open(&driver, library) == PROMPT_OK, library);
    const bool ok = serve();
    prompt_driver_close(&driver);
    tg_context_release(device, 0);
    tg_driver_close(device);
    return ok ? 0 : 1;
}
