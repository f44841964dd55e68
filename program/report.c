/* program/report.c - diagnostics go to the caller's sink; nothing here prints.
 *
 * Messages may be long (the emulator's reports are pages), so a message that does not fit the stack
 * buffer is formatted again on the heap; when that fails too, the beginning is still delivered. */
#include "program/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void tg_report(const tg_sink *sink, tg_severity severity, const char *code, const char *file, int line,
               const char *hint, const char *format, ...)
{
    if (!sink || !sink->emit)
        return;
    char brief[1024];
    char *text = brief;
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int length = vsnprintf(brief, sizeof brief, format, values);
    if (length >= (int)sizeof brief) {
        char *whole = malloc((size_t)length + 1);
        if (whole) {
            (void)vsnprintf(whole, (size_t)length + 1, format, again);
            text = whole;
        }
    }
    va_end(again);
    va_end(values);
    tg_diag diag = {severity, code, file, line, length < 0 ? format : text, hint};
    sink->emit(sink->user, &diag);
    if (text != brief)
        free(text);
}

const char *tg_status_name(tg_status status)
{
    static const char *const names[] = {
        [TG_OK] = "ok",
        [TG_E_ARGUMENT] = "wrong argument",
        [TG_E_DECLARATION] = "wrong declaration",
        [TG_E_UNSUPPORTED] = "unsupported",
        [TG_E_COMPILE] = "compilation failed",
        [TG_E_NO_DRIVER] = "no driver",
        [TG_E_NO_DEVICE] = "no device",
        [TG_E_DRIVER] = "driver call failed",
        [TG_E_MEMORY] = "out of memory",
        [TG_E_FILE] = "file error",
        [TG_E_FORMAT] = "damaged or of another version",
        [TG_E_VERSION] = "built for another version",
        [TG_E_NUMERICS] = "outside the tolerance",
    };
    size_t n_names = sizeof names / sizeof *names;
    return (size_t)status < n_names ? names[status] : "unknown status";
}

uint32_t tg_dtype_bytes(tg_dtype dtype)
{
    switch (dtype) {
    case TG_BF16:
    case TG_F16:
        return 2;
    case TG_F32:
    case TG_I32:
        return 4;
    case TG_F32X2:
        return 8;
    case TG_DTYPE_NONE:
    case TG_IO:
        break;
    }
    return 0;
}

const char *tg_dtype_name(tg_dtype dtype)
{
    static const char *const names[] = {
        [TG_DTYPE_NONE] = "none", [TG_IO] = "io",       [TG_BF16] = "bf16", [TG_F16] = "f16",
        [TG_F32] = "f32",         [TG_F32X2] = "f32x2", [TG_I32] = "i32",
    };
    return (size_t)dtype < sizeof names / sizeof *names ? names[dtype] : "unknown";
}
