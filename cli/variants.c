/* cli/variants.c - `tegula variants`: what can be compiled, and what it takes. */
#include "cli.h"

static const char *const axis_names[TG_N_AXES] = {
    [TG_T] = "T", [TG_CHUNK] = "chunk", [TG_DQK] = "dqk", [TG_DHV] = "dhv", [TG_PARTS] = "parts"};

static void type_of(const tg_tensor *tensor, char text[16])
{
    snprintf(text, 16, "%s",
             tensor->dtype == TG_IO           ? "io"
             : tensor->dtype == TG_DTYPE_NONE ? tg_dtype_name(TG_F32)
                                              : tg_dtype_name((tg_dtype)tensor->dtype));
}

static json_t *tensor_json(const tg_tensor *tensor)
{
    char type[16];
    type_of(tensor, type);
    json_t *axes = json_pack("[s, s]", "B", "NH");
    for (int i = 0; i < TG_MAX_AXES && tensor->axes[i]; i++)
        json_array_append_new(axes, json_string(axis_names[tensor->axes[i]]));
    return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", tensor->name, "role",
                     tensor->flags & TG_IN ? "in" : "out", "dtype", type, "optional",
                     (tensor->flags & TG_OPTIONAL) != 0, "axes", axes);
}

static void tensor_print(const tg_tensor *tensor)
{
    char type[16];
    type_of(tensor, type);
    printf("    %-3s %-4s %-4s [B, NH", tensor->flags & TG_IN ? "in" : "out", tensor->name, type);
    for (int i = 0; i < TG_MAX_AXES && tensor->axes[i]; i++)
        printf(", %s", axis_names[tensor->axes[i]]);
    printf("]%s\n", tensor->flags & TG_OPTIONAL ? "  optional" : "");
}

static json_t *variant_json(const tg_variant *variant)
{
    json_t *aliases = json_array(), *tensors = json_array(), *schedules = json_array();
    for (const char *const *alias = variant->aliases; alias && *alias; alias++)
        json_array_append_new(aliases, json_string(*alias));
    for (uint32_t i = 1; i < variant->algorithm->n_tensors; i++)
        if (variant->algorithm->tensors[i].flags & (TG_IN | TG_OUT))
            json_array_append_new(tensors, tensor_json(&variant->algorithm->tensors[i]));
    for (const tg_schedule *const *s = variant->schedules; *s; s++)
        json_array_append_new(schedules, json_string((*s)->name));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:b}", "name", variant->name, "title",
                     variant->algorithm->title, "aliases", aliases, "tensors", tensors, "schedules",
                     schedules, "oracle", variant->oracle != NULL);
}

static void variant_print(const tg_variant *variant)
{
    printf("%s", variant->name);
    for (const char *const *alias = variant->aliases; alias && *alias; alias++)
        printf("%s%s", alias == variant->aliases ? " (also " : ", ", *alias);
    printf("%s\n  %s\n  tensors (io: bf16, f16 or f32, as the inputs are)\n",
           variant->aliases && *variant->aliases ? ")" : "", variant->algorithm->title);
    for (uint32_t i = 1; i < variant->algorithm->n_tensors; i++)
        if (variant->algorithm->tensors[i].flags & (TG_IN | TG_OUT))
            tensor_print(&variant->algorithm->tensors[i]);
    printf("  schedules:");
    for (const tg_schedule *const *s = variant->schedules; *s; s++)
        printf(" %s", (*s)->name);
    puts("");
}

static void visit(void *user, const tg_variant *variant)
{
    if (user)
        json_array_append_new(user, variant_json(variant));
    else
        variant_print(variant);
}

int command_variants(struct context *context)
{
    json_t *list = context->options.json ? json_array() : NULL;
    variants_each(context, visit, list);
    if (list)
        json_print(json_pack("{s:o}", "variants", list));
    return CODE_OK;
}
