/* cli/variants.c - `tegula variants`: what can be compiled, and what it takes. */
#include "cli.h"

#include <string.h>

static const char *type_of(const tg_tensor *tensor)
{
    return tensor->dtype == TG_IO           ? "io"
           : tensor->dtype == TG_DTYPE_NONE ? tg_dtype_name(TG_F32)
                                            : tg_dtype_name((tg_dtype)tensor->dtype);
}

/* As files have it: of a parameter one for all sequences, of shared keys one for a group of heads.
 */
static json_t *axes_of(const tg_tensor *tensor)
{
    static const char *const names[TG_N_AXES] = {
        [TG_T] = "T", [TG_CHUNK] = "chunk", [TG_DQK] = "dqk", [TG_DHV] = "dhv", [TG_PARTS] = "parts"};
    json_t *axes = json_array();
    if (!(tensor->flags & TG_NO_BATCH))
        json_array_append_new(axes, json_string("B"));
    if (!(tensor->flags & TG_NO_HEADS))
        json_array_append_new(axes, json_string(tensor->flags & TG_SHARED ? "NH/group" : "NH"));
    for (int i = 0; i < TG_MAX_AXES && tensor->axes[i]; i++)
        json_array_append_new(axes, json_string(names[tensor->axes[i]]));
    return axes;
}

static json_t *tensor_json(const tg_tensor *tensor)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", tensor->name, "role", tensor->flags & TG_IN ? "in" : "out",
                     "dtype", type_of(tensor), "optional", (tensor->flags & TG_OPTIONAL) != 0, "axes", axes_of(tensor));
}

static void tensor_print(const tg_tensor *tensor)
{
    json_t *axes = axes_of(tensor);
    printf("    %-3s %-10s %-4s [", tensor->flags & TG_IN ? "in" : "out", tensor->name, type_of(tensor));
    for (size_t i = 0; i < json_array_size(axes); i++)
        printf("%s%s", i ? ", " : "", json_string_value(json_array_get(axes, i)));
    printf("]%s\n", tensor->flags & TG_OPTIONAL ? "  optional" : "");
    json_decref(axes);
}

static const tg_scalar *scalars_of(const tg_algorithm *algorithm, uint32_t *n)
{
    static const tg_scalar scale_alone[] = {{"scale", 0}};
    *n = algorithm->n_scalars ? algorithm->n_scalars : 1;
    return algorithm->n_scalars ? algorithm->scalars : scale_alone;
}

static json_t *declared_json(const tg_algorithm *algorithm)
{
    uint32_t n;
    const tg_scalar *scalars = scalars_of(algorithm, &n);
    json_t *json = json_object();
    for (uint32_t i = 0; i < n; i++) /* null: a scale by dqk */
        json_object_set_new(json, scalars[i].name,
                            i == 0 && scalars[0].value == 0 ? json_null() : json_real((double)scalars[i].value));
    return json;
}

static void scalars_print(const tg_algorithm *algorithm)
{
    uint32_t n;
    const tg_scalar *scalars = scalars_of(algorithm, &n);
    printf("  scalars:");
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 && scalars[0].value == 0)
            printf(" %s = 1/sqrt(dqk)", scalars[0].name);
        else
            printf("%s %s = %g", i ? "," : "", scalars[i].name, (double)scalars[i].value);
    puts("");
}

static json_t *variant_json(const tg_variant *variant)
{
    json_t *aliases = json_array(), *tensors = json_array(), *schedules = json_array();
    for (const char *const *alias = variant->aliases; alias && *alias; alias++)
        json_array_append_new(aliases, json_string(*alias));
    for (uint32_t i = 1; i < variant->algorithm->n_tensors; i++)
        if (variant->algorithm->tensors[i].flags & (TG_IN | TG_OUT))
            json_array_append_new(tensors, tensor_json(&variant->algorithm->tensors[i]));
    tg_schedule s;
    for (uint32_t i = 0; tg_variant_schedule(variant, i, &s); i++)
        json_array_append_new(schedules, json_string(s.name));
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:b}", "name", variant->name, "title", variant->algorithm->title,
                  "aliases", aliases, "scalars", declared_json(variant->algorithm), "tensors", tensors, "schedules",
                  schedules, "oracle", variant->oracle != NULL);
    json_object_set_new(json, "backward", variant->backward ? variant_json(variant->backward) : json_null());
    return json;
}

static bool is_input(const tg_variant *variant, const char *name)
{
    const tg_algorithm *algorithm = variant->algorithm;
    for (uint32_t i = 1; i < algorithm->n_tensors; i++)
        if (algorithm->tensors[i].flags & TG_IN && strcmp(algorithm->tensors[i].name, name) == 0)
            return true;
    return false;
}

/* Of a backward only what its forward does not take. */
static void tensors_print(const tg_variant *variant, const tg_variant *forward)
{
    for (uint32_t i = 1; i < variant->algorithm->n_tensors; i++) {
        const tg_tensor *tensor = &variant->algorithm->tensors[i];
        if (tensor->flags & (TG_IN | TG_OUT) && !(forward && is_input(forward, tensor->name)))
            tensor_print(tensor);
    }
}

static void schedules_print(const tg_variant *variant)
{
    struct text names = {0};
    const tg_writer writer = text_writer(&names);
    tg_schedule s;
    for (uint32_t i = 0; tg_variant_schedule(variant, i, &s); i++)
        tg_printf(&writer, "%s%s", i ? " " : "", s.name);
    print_list(stdout, printf("  schedules: "), text_of(&names));
    text_free(&names);
    for (const tg_alias *alias = variant->names; alias && alias->name; alias++)
        printf("  %s %s is %s\n", alias == variant->names ? "names:    " : "          ", alias->name, alias->text);
}

static void variant_print(const tg_variant *variant)
{
    printf("%s", variant->name);
    for (const char *const *alias = variant->aliases; alias && *alias; alias++)
        printf("%s%s", alias == variant->aliases ? " (also " : ", ", *alias);
    printf("%s\n  %s\n", variant->aliases && *variant->aliases ? ")" : "", variant->algorithm->title);
    scalars_print(variant->algorithm);
    puts("  tensors (io: bf16, f16 or f32, as the inputs are)");
    tensors_print(variant, NULL);
    schedules_print(variant);
    if (!variant->backward)
        return;
    printf("%s: what it takes beside those inputs, and what it gives\n", variant->backward->name);
    tensors_print(variant->backward, variant);
    schedules_print(variant->backward);
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
    const char *name = context->options.n_args ? context->options.args[0] : NULL;
    const tg_variant *variant = name ? variant_by_name(context, name) : NULL;
    if (name && !variant)
        return CODE_USAGE;
    json_t *list = context->options.json ? json_array() : NULL;
    if (variant)
        visit(list, variant);
    else
        variants_each(context, visit, list);
    if (list)
        json_print(json_pack("{s:o}", "variants", list));
    return CODE_OK;
}
