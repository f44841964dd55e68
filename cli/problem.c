/* cli/problem.c - problems as the options say, and what files and JSON call their parts. */
#include "cli.h"

#include <string.h>

void tensor_file_name(const tg_host_tensor *tensor, char full[64])
{
    const char *role = tensor->flags & TG_OUT ? (tensor->is_gradient ? "grad" : "out")
                       : tensor->is_gradient  ? "dout"
                                              : "in";
    snprintf(full, 64, "%s.%s", role, tensor->name + (tensor->is_gradient ? 1 : 0));
}

json_t *shape_json(const tg_shape *shape)
{
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "B", (json_int_t)shape->batch, "NH", (json_int_t)shape->heads, "T",
                  (json_int_t)shape->tokens, "dqk", (json_int_t)shape->dqk, "dhv", (json_int_t)shape->dhv);
    if (shape->group > 1)
        json_object_set_new(json, "group", json_integer(shape->group));
    if (shape->packed)
        json_object_set_new(json, "packed", json_true());
    if (shape->pooled)
        json_object_set_new(json, "pooled", json_true());
    if (shape->state)
        json_object_set_new(json, "states", json_string(tg_dtype_name((tg_dtype)shape->state)));
    if (shape->values_first)
        json_object_set_new(json, "values_first", json_true());
    return json;
}

/* ---- options ---- */

bool problem_unknown_scalar(struct context *context, const tg_problem *problem, const char *where, const char *name)
{
    const char *names[TG_MAX_SCALARS + 1] = {NULL};
    struct text hint = {0};
    tg_writer writer = text_writer(&hint);
    for (uint32_t i = 0; i < problem->n_scalars; i++)
        names[i] = problem->declared[i].name;
    const char *near = nearest_name(name, names);
    if (near)
        tg_printf(&writer, "did you mean '%s'?", near);
    else
        tg_printf(&writer, "%s has:", problem->variant->name);
    for (uint32_t i = 0; !near && i < problem->n_scalars; i++)
        tg_printf(&writer, " %s", names[i]);
    complain(context, text_of(&hint), "%s: %s has no scalar '%s'", where, problem->variant->name, name);
    text_free(&hint);
    return false;
}

bool problem_options(struct context *context, tg_problem *problem)
{
    const struct options *options = &context->options;
    if (options->scale > 0)
        problem->scale = options->scale;
    for (uint32_t i = 0; i < options->n_settings; i++) {
        const int scalar = tg_problem_scalar(problem, options->settings[i].name);
        if (scalar < 0)
            return problem_unknown_scalar(context, problem, "--set", options->settings[i].name);
        problem->scalars[scalar] = options->settings[i].value;
    }
    problem->is_token_major = options->layout && strcmp(options->layout, "bthd") == 0;
    problem->is_wide = options->int64;
    problem->seed = (uint64_t)options->seed;
    return true;
}

bool problem_random(struct context *context, const tg_variant *variant, const tg_shape *shape, tg_dtype io,
                    uint64_t seed, tg_problem *problem)
{
    const tg_cuts *cuts = &context->options.cuts;
    if (tg_problem_random(variant, variant_forward(context, variant), shape, io, seed, cuts->at ? cuts : NULL, problem,
                          &context->sink) != TG_OK)
        return false;
    if (problem_options(context, problem))
        return true;
    tg_problem_free(problem);
    return false;
}

bool problem_layout(struct context *context, const tg_variant *variant, const tg_shape *shape, tg_dtype io,
                    tg_problem *problem)
{
    return tg_problem_layout(variant, variant_forward(context, variant), shape, io, problem, &context->sink) == TG_OK;
}

bool problem_declare(struct context *context, const tg_variant *variant, tg_dtype io, tg_problem *problem)
{
    return tg_problem_declare(variant, variant_forward(context, variant), io, problem, &context->sink) == TG_OK;
}

static void tell_parts(void *user, int64_t done, int64_t parts)
{
    progress(user, "fp64 reference: %lld of %lld parts", (long long)done, (long long)parts);
}

bool truth_compute(struct context *context, const tg_problem *problem, int64_t chunk, tg_truth *truth)
{
    const tg_parts_done parts = {tell_parts, context};
    progress_begin(context, "fp64 reference of %s", problem->variant->name);
    const tg_status status = tg_truth_compute(problem, chunk, &parts, truth, &context->sink);
    progress_end(context);
    return status == TG_OK;
}

bool truth_deviation(struct context *context, const tg_problem *problem, int64_t chunk, const tg_truth *truth,
                     uint32_t samples, tg_truth *square)
{
    const tg_parts_done parts = {tell_parts, context};
    progress_begin(context, "fp64 reference of %s, and what roundings do to it", problem->variant->name);
    const tg_status status = tg_truth_deviation(problem, chunk, truth, samples, &parts, square, &context->sink);
    progress_end(context);
    return status == TG_OK;
}

bool know_deviation(struct context *context, const tg_problem *problem, int64_t chunk, uint32_t samples,
                    tg_deviation *deviation)
{
    const tg_parts_done parts = {tell_parts, context};
    const bool is_new = samples > deviation->samples;
    if (is_new)
        progress_begin(context, "fp64 reference of %s, and what roundings do to it", problem->variant->name);
    const bool is_known = tg_deviation_know(problem, chunk, samples, &parts, deviation, &context->sink);
    if (is_new)
        progress_end(context);
    return is_known;
}
