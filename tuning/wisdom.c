/* tuning/wisdom.c - schedules as wisdom keeps them: as text, and filed under what their code depends on. */
#include "tuning/tuning.h"

#include <stdio.h>
#include <string.h>

struct line {
    char *text;
    size_t n;
};

static void append(void *user, const char *bytes, size_t n)
{
    struct line *line = user;
    const size_t room = TG_SCHEDULE_TEXT - 1 - line->n;
    n = n < room ? n : room;
    memcpy(line->text + line->n, bytes, n);
    line->n += n;
    line->text[line->n] = '\0';
}

void tg_schedule_text(const tg_variant *variant, const tg_schedule *schedule, char text[TG_SCHEDULE_TEXT])
{
    struct line line = {.text = text};
    text[0] = '\0';
    tg_variant_schedule_text(variant, schedule, &(tg_writer){append, &line});
}

bool tg_wisdom_of(const tg_device *device, const tg_variant *variant, const tg_shape_class *class,
                  const tg_sizes *sizes, tg_wisdom *entry)
{
    char group[16] = "", tokens[16] = "";
    *entry = (tg_wisdom){.cc = device->cc_major * 10 + device->cc_minor,
                         .dqk = class->dqk,
                         .dhv = class->dhv,
                         .batch = sizes->batch,
                         .heads = sizes->heads,
                         .tokens = sizes->tokens};
    snprintf(entry->device, sizeof entry->device, "%s", device->name);
    snprintf(entry->dtype, sizeof entry->dtype, "%s", tg_dtype_name(class->io));
    if (class->group > 1)
        snprintf(group, sizeof group, "+g%u", class->group);
    if (class->tokens)
        snprintf(tokens, sizeof tokens, "+t%u", class->tokens);
    const int n = snprintf(entry->variant, sizeof entry->variant, "%s%s%s%s%s", variant->name, group, tokens,
                           class->packed ? "+cu" : "", class->pooled ? "+pool" : "");
    if (n < (int)sizeof entry->variant)
        return true;
    entry->variant[0] = '\0';
    return false;
}
