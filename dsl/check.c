/* dsl/check.c - the checker's entry points, and what its parts share.
 *
 * A declaration is checked from the inside out (algorithm, schedule, space, variant), each part
 * once, and every mistake is reported. Rules that need a sound inner part are left out when it is
 * not: a missing tile should not be reported a second time as ten missing roles. */
#include "dsl/bind.h"
#include "dsl/check.h"
#include "dsl/fields.h"

#include <stdio.h>
#include <string.h>

const char *tg_code_name(enum tg_code code)
{
    static const char *const names[TG_N_CODES] = {
#define CODE(name, meaning) [name] = #name,
#include "dsl/codes.def"
#undef CODE
    };
    return names[code];
}

const char *tg_code_meaning(enum tg_code code)
{
    static const char *const meanings[TG_N_CODES] = {
#define CODE(name, meaning) [name] = meaning,
#include "dsl/codes.def"
#undef CODE
    };
    return meanings[code];
}

tg_status tg_check_status(const struct check *check)
{
    if (check->newer)
        return TG_E_VERSION;
    return check->errors ? TG_E_DECLARATION : TG_OK;
}

bool tg_check_header(struct check *check, enum tg_code code, const char *what, uint32_t struct_size,
                     uint32_t expected_size, uint32_t version)
{
    const char *hint = "start the declaration with TG_HEADER(the type)";
    if (struct_size == expected_size && version == TG_DSL_VERSION)
        return true;
    if (struct_size >= expected_size && version >= TG_DSL_VERSION) {
        check->newer = true;
        hint = "it was compiled for a later Tegula; use that one, or compile it again with this one";
    }
    check->file = NULL; /* whatever is in this struct, it is not where we look for it */
    check->line = 0;
    tg_fault(check, code, hint, "%s: struct_size %u and version %u, expected struct_size %u and version %u", what,
             struct_size, version, expected_size, (uint32_t)TG_DSL_VERSION);
    return false;
}

static bool is_name_char(char c, bool dash)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (dash && c == '-');
}

bool tg_is_name(const char *name, uint32_t longest, bool dash)
{
    if (!name || !*name || (!dash && *name >= '0' && *name <= '9')) /* an identifier begins otherwise */
        return false;
    for (uint32_t i = 0; i <= longest; i++) {
        if (name[i] == '\0')
            return true;
        if (!is_name_char(name[i], dash))
            return false;
    }
    return false;
}

static bool check_name(struct check *check, enum tg_code code, const char *what, const char *name, uint32_t longest,
                       bool dash)
{
    if (tg_is_name(name, longest, dash))
        return true;
    const char *allowed = dash ? "letters, digits, '_' and '-'" : "letters, digits and '_', no digit first";
    if (!name || !*name) {
        tg_fault(check, code, "give it a name", "%s has no name", what);
        return false;
    }
    char shown[TG_MAX_NAME + 2]; /* bytes that are no text must not get into messages */
    uint32_t length = 0;
    for (; length <= longest && name[length]; length++)
        shown[length] = (char)(name[length] > ' ' && name[length] <= '~' ? name[length] : '?');
    shown[length] = '\0';
    tg_fault(check, code, "choose another name", "%s: the name '%s%s' is not 1 to %u %s", what, shown,
             length > longest ? "..." : "", longest, allowed);
    return false;
}

bool tg_check_identifier(struct check *check, enum tg_code code, const char *what, const char *name)
{
    return check_name(check, code, what, name, TG_MAX_IDENTIFIER, false);
}

bool tg_check_name(struct check *check, enum tg_code code, const char *what, const char *name)
{
    return check_name(check, code, what, name, TG_MAX_NAME, true);
}

bool tg_same_name(const char *a, const char *b)
{
    return a && b && strncmp(a, b, TG_MAX_NAME + 1) == 0;
}

const char *tg_tile_text(const tg_algorithm *algorithm, uint32_t tile, struct tg_text *text)
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, tile);
    if (tensor && tg_is_name(tensor->name, TG_MAX_IDENTIFIER, false))
        (void)snprintf(text->chars, sizeof text->chars, "%s", tensor->name);
    else
        (void)snprintf(text->chars, sizeof text->chars, "tile %u", tile);
    return text->chars;
}

const char *tg_mask_text(uint32_t dims, struct tg_text *text)
{
    size_t used = 0;
    text->chars[0] = '\0';
    for (uint32_t dim = 0; dim < TG_N_DIMS; dim++)
        if (dims & 1u << dim)
            used += (size_t)snprintf(text->chars + used, sizeof text->chars - used, "%s%s", used ? ", " : "",
                                     tg_dim_name(dim));
    return used ? text->chars : "none";
}

uint32_t tg_scalar_count(const tg_algorithm *algorithm)
{
    if (!algorithm->scalars)
        return 1;
    return algorithm->n_scalars < TG_MAX_SCALARS ? algorithm->n_scalars : TG_MAX_SCALARS;
}

bool tg_scalars_are_listed(const tg_algorithm *algorithm)
{
    const uint32_t n = algorithm->n_scalars;
    return algorithm->scalars ? n >= 1 && n <= TG_MAX_SCALARS : n == 0;
}

const char *tg_scalar_text(const tg_algorithm *algorithm, uint32_t scalar, struct tg_text *text)
{
    const bool listed = algorithm->scalars && scalar < tg_scalar_count(algorithm);
    const char *name = listed ? algorithm->scalars[scalar].name : NULL;
    if (listed && tg_is_name(name, TG_MAX_IDENTIFIER, false))
        (void)snprintf(text->chars, sizeof text->chars, "%s", name);
    else if (!algorithm->scalars && scalar == 0)
        (void)snprintf(text->chars, sizeof text->chars, "scale");
    else
        (void)snprintf(text->chars, sizeof text->chars, "scalar %u", scalar);
    return text->chars;
}

/* ---- entry points ---- */

tg_status tg_algorithm_check(const tg_algorithm *algorithm, const tg_sink *sink)
{
    struct check check = {.sink = sink};
    tg_check_algorithm(&check, algorithm);
    return tg_check_status(&check);
}

/* A kernel that was written down, and not counted: no mistake of its own. */
static const char *uncounted_row(const tg_schedule *schedule)
{
    const uint32_t n = schedule->n_rows;
    return n > 0 && n < TG_MAX_ROWS ? schedule->rows[n].name : NULL;
}

/* The schedule and its algorithm. */
static void check_schedule_whole(struct check *check, const tg_schedule *schedule)
{
    bool algorithm_ok = false;
    tg_schedule bound;
    if (schedule && schedule->struct_size == sizeof *schedule && schedule->algorithm) {
        const uint32_t before = check->errors;
        tg_check_algorithm(check, schedule->algorithm);
        algorithm_ok = check->errors == before;
    }
    if (algorithm_ok) {
        bound = *schedule;
        tg_schedule_bind(&bound, NULL);
        check->uncounted = uncounted_row(schedule);
    }
    tg_check_schedule(check, algorithm_ok ? &bound : schedule, algorithm_ok);
}

tg_status tg_schedule_check(const tg_schedule *schedule, const tg_sink *sink)
{
    struct check check = {.sink = sink};
    check_schedule_whole(&check, schedule);
    return tg_check_status(&check);
}

tg_status tg_space_check(const tg_space *space, const tg_sink *sink)
{
    struct check check = {.sink = sink};
    bool schedule_ok = false;
    struct tg_table table = {0};
    if (space && space->struct_size == sizeof *space && space->schedule) {
        check_schedule_whole(&check, space->schedule);
        schedule_ok = check.errors == 0;
        table = (struct tg_table){.declared = space->schedule, .algorithm = space->schedule->algorithm};
    }
    tg_check_space(&check, space, schedule_ok ? &table : NULL);
    return tg_check_status(&check);
}

/* ---- variants ---- */

enum { MAX_LIST = 64 }; /* entries of a NULL-terminated list of a variant */

/* Entries of such a list; more than MAX_LIST are taken for a missing end. */
#define COUNT_LIST(list, length)                                                                                       \
    for ((length) = 0; (list) && (length) <= MAX_LIST && (list)[length];)                                              \
    (length)++

static uint32_t checked_length(struct check *check, uint32_t length, const char *what)
{
    if (length <= MAX_LIST)
        return length;
    tg_fault(check, TG0410, "end the list with NULL", "%s has more than %d entries", what, MAX_LIST);
    return MAX_LIST;
}

static void check_aliases(struct check *check, const tg_variant *variant)
{
    const char *const *aliases = variant->aliases;
    uint32_t n;
    COUNT_LIST(aliases, n);
    n = checked_length(check, n, "aliases");
    for (uint32_t i = 0; i < n; i++) {
        if (!tg_check_name(check, TG0403, "alias", aliases[i]))
            continue;
        bool twice = tg_same_name(aliases[i], variant->name);
        for (uint32_t j = 0; j < i; j++)
            twice = twice || tg_same_name(aliases[i], aliases[j]);
        if (twice)
            tg_fault(check, TG0404, "remove it", "alias '%s' is given twice", aliases[i]);
    }
}

/* Another way to compute the same: other statements and intermediates between the same tensors. */
static bool same_interface(const tg_algorithm *a, const tg_algorithm *b)
{
    const uint32_t most = a->n_tensors > b->n_tensors ? a->n_tensors : b->n_tensors;
    bool same = a->scalars == b->scalars && a->n_scalars == b->n_scalars && tg_same_name(a->name, b->name);
    for (uint32_t t = 1; same && t < most; t++) {
        const tg_tensor none = {0}, *x = t < a->n_tensors ? &a->tensors[t] : &none,
                        *y = t < b->n_tensors ? &b->tensors[t] : &none;
        if ((x->flags | y->flags) & (TG_IN | TG_OUT))
            same = tg_same_name(x->name, y->name) && x->dtype == y->dtype && x->flags == y->flags &&
                   memcmp(x->axes, y->axes, sizeof x->axes) == 0;
    }
    return same;
}

/* It is the variant's, or a sound one that computes the same. */
static bool check_algorithm_of(struct check *check, const tg_algorithm *own, const tg_variant *variant,
                               bool algorithm_ok)
{
    if (own == variant->algorithm || !own || !algorithm_ok)
        return own == variant->algorithm;
    const uint32_t before = check->errors;
    tg_check_algorithm(check, own);
    return check->errors == before && same_interface(own, variant->algorithm);
}

/* All that is sound of a variant's tables: points by their names. */
struct sound {
    uint64_t tables; /* a bit for each of the first 64, if all points are sound */
    const tg_schedule *declared[MAX_LIST];
    const char *names[4 * MAX_LIST];
    uint32_t n_tables, n_names;
};

static void check_point_name(struct check *check, const char *name, struct sound *sound)
{
    bool twice = false;
    for (uint32_t i = 0; i < sound->n_names; i++)
        twice |= tg_same_name(sound->names[i], name);
    if (twice)
        tg_fault(check, TG0404, "rename one", "two schedules or points have the name '%s'", name);
    if (sound->n_names < TG_COUNT(sound->names))
        sound->names[sound->n_names++] = name;
}

/* One table, point by point; what is wrong with the first is said of it alone. */
static void check_table(struct check *check, const struct tg_table *table, struct sound *sound)
{
    const uint32_t before = check->errors;
    const tg_point *point;
    for (uint32_t at = 0; tg_point_next(table, &at, &point) && check->errors == before;) {
        tg_schedule bound;
        check->file = table->declared->file;
        check->line = 0;
        if (point && !tg_check_name(check, TG0403, "point", point->name))
            return;
        if (tg_point_bind(table, point, NULL, &bound, check->sink) != TG_OK) {
            tg_fault(check, TG0412, "write changes as chunk=128 H.warps=4", "point %s cannot be applied", point->name);
            return;
        }
        check->uncounted = uncounted_row(table->declared);
        tg_check_schedule(check, &bound, true);
        check_point_name(check, bound.name, sound);
    }
    if (check->errors == before)
        sound->tables |= (uint64_t)1 << sound->n_tables;
}

/* A table whose algorithm is not sound, or not ours. */
static void check_unbound(struct check *check, const tg_schedule *declared, const tg_algorithm *algorithm)
{
    tg_schedule copy;
    const bool readable = declared->struct_size == sizeof *declared;
    if (readable) {
        copy = *declared;
        copy.algorithm = algorithm;
        copy.n_rows = declared->n_rows ? declared->n_rows : tg_row_count(declared);
    }
    tg_check_schedule(check, readable ? &copy : declared, false);
}

static void check_schedules(struct check *check, const tg_variant *variant, bool algorithm_ok, const char *what,
                            struct sound *sound)
{
    struct tg_table table = {0};
    *sound = (struct sound){.tables = 0};
    for (; tg_table_next(variant, &table); sound->n_tables++) {
        const tg_schedule *declared = table.declared;
        const bool readable = declared->struct_size == sizeof *declared;
        if (sound->n_tables == MAX_LIST) {
            tg_fault(check, TG0410, "end the list with NULL", "schedules has more than %d entries", MAX_LIST);
            return;
        }
        const tg_algorithm *own = readable && declared->algorithm ? declared->algorithm : table.algorithm;
        const bool ours = readable && check_algorithm_of(check, own, variant, algorithm_ok);
        sound->declared[sound->n_tables] = declared;
        if (algorithm_ok && ours)
            check_table(check, &table, sound);
        else
            check_unbound(check, declared, own);
        if (readable && own && !ours && algorithm_ok)
            tg_fault(check, TG0407,
                     "set .algorithm to the variant's, or to one of that name with the same inputs and outputs",
                     "schedule %u is of another algorithm than the %s", sound->n_tables, what);
    }
    if (sound->n_tables == 0)
        tg_fault(check, TG0406, "give at least one", "the %s has no schedule", what);
}

static void check_names(struct check *check, const tg_variant *variant, struct sound *sound)
{
    for (uint32_t i = 0; variant->names && i < MAX_LIST && variant->names[i].name; i++) {
        const tg_alias *alias = &variant->names[i];
        tg_schedule schedule;
        if (!tg_check_name(check, TG0403, "name", alias->name) ||
            tg_variant_schedule_named(variant, alias->text ? alias->text : "", &schedule, check->sink) != TG_OK)
            tg_fault(check, TG0412, "begin it with the name of a point or schedule, then changes such as H.warps=4",
                     "name %u is of no point of the variant", i);
        else
            check_point_name(check, alias->name, sound);
    }
}

static void check_spaces(struct check *check, const tg_variant *variant, const struct sound *sound)
{
    const tg_space *const *spaces = variant->spaces;
    uint32_t n;
    COUNT_LIST(spaces, n);
    n = checked_length(check, n, "spaces");
    for (uint32_t i = 0; i < n; i++) {
        const bool readable = spaces[i]->struct_size == sizeof *spaces[i];
        struct tg_table table = {0};
        uint32_t at = 0;
        while (readable && at < MAX_LIST && tg_table_next(variant, &table) && table.declared != spaces[i]->schedule)
            at++;
        const bool is_ours = readable && table.declared && table.declared == spaces[i]->schedule;
        const tg_point *point;
        uint32_t first = 0; /* a table may have no point for this algorithm */
        const bool is_sound =
            is_ours && at < MAX_LIST && (sound->tables >> at & 1) && tg_point_next(&table, &first, &point);
        tg_check_space(check, spaces[i], is_sound ? &table : NULL);
        if (readable && spaces[i]->schedule && !is_ours)
            tg_fault(check, TG0408, "add its schedule to .schedules",
                     "space %u is of a schedule that the variant does not list", i);
    }
}

/* A variant or, of another, its backward: `what` it is called. */
static bool check_variant(struct check *check, const tg_variant *variant, const char *what)
{
    const uint32_t before = check->errors;
    if (!tg_check_header(check, TG0402, what, variant->struct_size, sizeof *variant, variant->version))
        return false;
    bool algorithm_ok = false;
    if (variant->algorithm) {
        tg_check_algorithm(check, variant->algorithm);
        algorithm_ok = check->errors == before;
        check->file = variant->algorithm->struct_size == sizeof(tg_algorithm) ? variant->algorithm->file : NULL;
        check->line = 0;
    } else {
        tg_fault(check, TG0405, "set .algorithm", "the %s has no algorithm", what);
    }
    const char *file = check->file;
    tg_check_name(check, TG0403, what, variant->name);
    check_aliases(check, variant);
    struct sound sound;
    check_schedules(check, variant, algorithm_ok, what, &sound);
    check->file = file;
    check->line = 0;
    check_spaces(check, variant, &sound);
    if (algorithm_ok && sound.n_tables < MAX_LIST)
        check_names(check, variant, &sound);
    return algorithm_ok;
}

static const tg_tensor *tensor_of_caller(const tg_algorithm *algorithm, const char *name, uint8_t flags)
{
    for (uint32_t t = 1; t < algorithm->n_tensors; t++)
        if ((algorithm->tensors[t].flags & flags) && tg_same_name(algorithm->tensors[t].name, name))
            return &algorithm->tensors[t];
    return NULL;
}

/* Each tensor is the forward's of that name, or the gradient of one, as large, and drawn as it is. */
static void check_gradient_tensors(struct check *check, const tg_algorithm *forward, const tg_algorithm *backward)
{
    enum { SIZE_FLAGS = TG_NO_BATCH | TG_SHARED };
    for (uint32_t t = 1; t < backward->n_tensors; t++) {
        const tg_tensor *tensor = &backward->tensors[t];
        const bool is_input = tensor->flags & TG_IN;
        if (!(tensor->flags & (TG_IN | TG_OUT)))
            continue;
        const tg_tensor *of = is_input ? tensor_of_caller(forward, tensor->name, TG_IN | TG_OUT) : NULL;
        if (!of && tensor->name[0] == 'd')
            of = tensor_of_caller(forward, tensor->name + 1, is_input ? TG_OUT : TG_IN);
        if (!of)
            tg_fault(check, TG0411, is_input ? "dX is the gradient of an output X" : "dX is the gradient of an input X",
                     "the backward's %s %s is neither a tensor of the forward nor the gradient of one",
                     is_input ? "input" : "output", tensor->name);
        else if (memcmp(of->axes, tensor->axes, sizeof of->axes) != 0 || ((of->flags ^ tensor->flags) & SIZE_FLAGS))
            tg_fault(check, TG0411, "give it the same axes, TG_NO_BATCH and TG_SHARED",
                     "the backward's %s has other axes than the forward's %s", tensor->name, of->name);
        else if (is_input && tg_same_name(of->name, tensor->name) && of->drawn != tensor->drawn)
            tg_fault(check, TG0411, "give it the same .drawn: both are of one call",
                     "the backward's %s is drawn otherwise than the forward's", tensor->name);
    }
}

tg_status tg_variant_check(const tg_variant *variant, const tg_sink *sink)
{
    struct check check = {.sink = sink};
    if (!variant) {
        tg_fault(&check, TG0401, "pass a tg_variant", "the variant is NULL");
        return TG_E_DECLARATION;
    }
    const bool forward_ok = check_variant(&check, variant, "variant");
    const bool has_backward = variant->struct_size == sizeof *variant && variant->backward;
    if (has_backward && check_variant(&check, variant->backward, "backward") && forward_ok)
        check_gradient_tensors(&check, variant->algorithm, variant->backward->algorithm);
    return tg_check_status(&check);
}
