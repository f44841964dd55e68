/* cli/facts.c - what is known of a compiled kernel, as text and as JSON. */
#include "cli.h"

#include <string.h>

static void size_text(const tg_term *term, char text[48])
{
    static const char *const names[] = {"1", "B", "NH", "T", "chunks", "L"};
    const char *name = term->size < 6 ? names[term->size] : "?";
    if (term->div > 1)
        snprintf(text, 48, "ceil(%s/%u)", name, term->div);
    else
        snprintf(text, 48, "%s", name);
    if (term->mul > 1) {
        size_t n = strlen(text);
        snprintf(text + n, 48 - n, "*%u", term->mul);
    }
}

void kernel_facts(const tg_kernel *kernel, struct text *text)
{
    tg_writer writer = text_writer(text);
    char shared[32], factor[48];
    tg_printf(&writer, "%u threads, shared %s, %u mma", kernel->threads, bytes_text(kernel->shared_bytes, shared),
              kernel->n_mma);
    if (kernel->registers)
        tg_printf(&writer, ", %u registers, %u bytes spilled", kernel->registers, kernel->spill_bytes);
    tg_printf(&writer, ", grid ");
    for (uint32_t i = 0; i < kernel->n_grid; i++) {
        size_text(&kernel->grid[i], factor);
        tg_printf(&writer, "%s%s", i ? " x " : "", factor);
    }
    if (kernel->cluster > 1)
        tg_printf(&writer, ", clusters of %d", kernel->cluster);
}

static json_t *axes_json(const tg_program *program, uint32_t tensor)
{
    static const char *const names[TG_N_AXES] = {
        [TG_T] = "T",         [TG_CHUNK] = "chunks", [TG_DQK] = "dqk",    [TG_DHV] = "dhv",
        [TG_PARTS] = "parts", [TG_CUTS] = "B+1",     [TG_POSITION] = "L",
    };
    const tg_tensor_info *info = &program->tensors[tensor];
    const bool is_packed = program->packed && (info->axes[0] == TG_T || info->axes[0] == TG_CHUNK);
    const bool has_batch = !(info->flags & TG_NO_BATCH) && !is_packed && info->axes[0] != TG_CUTS;
    json_t *axes = json_array();
    json_array_append_new(axes, json_string(tg_tensor_is_slot(program, tensor) ? "slots" : has_batch ? "B" : "1"));
    json_array_append_new(axes, json_string(info->flags & TG_NO_HEADS ? "1"
                                            : info->flags & TG_SHARED ? "NH/group"
                                                                      : "NH"));
    for (int i = 0; i < TG_MAX_AXES && info->axes[i]; i++)
        json_array_append_new(axes, json_string(names[info->axes[i]]));
    return axes;
}

json_t *signature_json(const tg_program *program)
{
    json_t *tensors = json_array();
    for (uint32_t i = 0; i < program->n_tensors; i++) {
        const tg_tensor_info *info = &program->tensors[i];
        if (info->flags & (TG_IN | TG_OUT))
            json_array_append_new(tensors, json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", info->name, "role",
                                                     info->flags & TG_IN ? "in" : "out", "dtype",
                                                     tg_dtype_name((tg_dtype)info->dtype), "optional",
                                                     (info->flags & TG_OPTIONAL) != 0, "axes", axes_json(program, i)));
    }
    return json_pack("{s:o, s:i}", "tensors", tensors, "group", (int)program->group);
}

json_t *scalars_json(const tg_program *program)
{
    json_t *scalars = json_object();
    for (uint32_t i = 0; i < program->n_scalars; i++)
        json_object_set_new(scalars, program->scalars[i].name, json_number((double)program->scalars[i].value));
    return scalars;
}

json_t *kernel_json(const tg_kernel *kernel)
{
    struct text grid = {0};
    tg_writer writer = text_writer(&grid);
    for (uint32_t i = 0; i < kernel->n_grid; i++) {
        char factor[48];
        size_text(&kernel->grid[i], factor);
        tg_printf(&writer, "%s%s", i ? " x " : "", factor);
    }
    json_t *json = json_pack("{s:s, s:i, s:i, s:s, s:i, s:i}", "name", kernel->name, "threads", (int)kernel->threads,
                             "shared_bytes", (int)kernel->shared_bytes, "grid", text_of(&grid), "mma",
                             (int)kernel->n_mma, "ptx_bytes", (int)kernel->ptx_bytes);
    if (kernel->registers) { /* as ptxas says; unknown without it */
        json_object_set_new(json, "registers", json_integer(kernel->registers));
        json_object_set_new(json, "spill_bytes", json_integer(kernel->spill_bytes));
    }
    if (kernel->cluster > 1)
        json_object_set_new(json, "cluster", json_integer(kernel->cluster));
    text_free(&grid);
    return json;
}
