/* cli/layout.c - [B, NH, T, d] and [B, T, NH, d]: in device memory a matter of strides, in files one of copies. */
#include "cli.h"

#include <string.h>

bool layout_is_known(struct context *context, const char *layout)
{
    if (!layout || strcmp(layout, "bhtd") == 0 || strcmp(layout, "bthd") == 0)
        return true;
    complain(context, "choose bhtd or bthd", "--layout: unknown layout '%s'", layout);
    return false;
}

bool is_turned_in_files(const struct context *context, const tg_host_tensor *tensor)
{
    const char *layout = context->options.file_layout;
    return layout && strcmp(layout, "bthd") == 0 && tensor->has_tokens;
}

void layout_turn(const tg_host_tensor *tensor, size_t element, const void *from, void *to, bool is_from_file)
{
    const size_t heads = (size_t)tensor->extent[1], tokens = (size_t)tensor->extent[2];
    size_t row = element;
    for (int i = 3; i < tensor->rank; i++)
        row *= (size_t)tensor->extent[i];
    for (size_t b = 0; b < (size_t)tensor->extent[0]; b++)
        for (size_t h = 0; h < heads; h++)
            for (size_t t = 0; t < tokens; t++) {
                const size_t ours = ((b * heads + h) * tokens + t) * row, files = ((b * tokens + t) * heads + h) * row;
                memcpy((char *)to + (is_from_file ? ours : files), (const char *)from + (is_from_file ? files : ours),
                       row);
            }
}
