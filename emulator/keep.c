/* keep.c - device memory as it was between two launches, to return to: tests run what follows again and again, with one thing
 * changed. A copy of all of it, of what was ever written, and of what the launch ahead has touched. */
#include "driver.h"

#include <stdlib.h>

struct copy_of {
    struct allocation *allocation;
    u8 *data, *written, *ahead; /* written, ahead: NULL as there */
};

struct kept {
    u32 n;
    u64 n_launches;
    bool lets_next_begin;
    struct copy_of copies[];
};

void keep_drop(struct memory *m)
{
    for (u32 i = 0; m->kept && i < m->kept->n; i++) {
        free(m->kept->copies[i].data);
        free(m->kept->copies[i].written);
        free(m->kept->copies[i].ahead);
    }
    free(m->kept);
    m->kept = NULL;
}

/* When an allocation is freed: there is no way back to it. */
void keep_forget(struct memory *m, const struct allocation *a)
{
    for (u32 i = 0; m->kept && i < m->kept->n; i++)
        if (m->kept->copies[i].allocation == a)
            keep_drop(m);
}

/* NULL of NULL; false when there is no memory for it. */
static bool copy(u8 **to, const u8 *from, u64 bytes)
{
    *to = from ? malloc(bytes + 1) : NULL;
    if (*to)
        memcpy(*to, from, bytes);
    return *to || !from;
}

static bool keep_all(struct memory *m)
{
    for (u32 i = 0; i < m->n; i++) {
        struct allocation *a = m->list[i];
        struct copy_of *c = &m->kept->copies[m->kept->n];
        if (a->is_freed)
            continue;
        m->kept->n++;
        c->allocation = a;
        if (!copy(&c->data, a->data, a->bytes) || !copy(&c->written, a->written, a->bytes) ||
            !copy(&c->ahead, a->ahead, a->bytes))
            return false;
    }
    return true;
}

API int tgemu_keep(void)
{
    struct memory *m = &driver.memory;
    driver_lock();
    keep_drop(m);
    m->kept = calloc(1, sizeof *m->kept + m->n * sizeof *m->kept->copies);
    const bool ok = m->kept && keep_all(m);
    if (ok) {
        m->kept->n_launches = driver.n_launches;
        m->kept->lets_next_begin = m->lets_next_begin;
    } else {
        keep_drop(m);
    }
    driver_unlock(CUDA_SUCCESS);
    return ok ? 0 : -1;
}

/* The bytes of a table as they were kept; it is there or not as it was then. */
static bool put_back(u8 **table, const u8 *kept, u64 bytes)
{
    if (*table && kept) {
        memcpy(*table, kept, bytes);
        return true;
    }
    free(*table);
    return copy(table, kept, bytes);
}

API int tgemu_return(void)
{
    struct memory *m = &driver.memory;
    driver_lock();
    bool ok = m->kept != NULL;
    for (u32 i = 0; ok && i < m->kept->n; i++) {
        const struct copy_of *c = &m->kept->copies[i];
        struct allocation *a = c->allocation;
        ok = put_back(&a->data, c->data, a->bytes) && put_back(&a->written, c->written, a->bytes) &&
             put_back(&a->ahead, c->ahead, a->bytes);
    }
    if (ok) {
        m->lets_next_begin = m->kept->lets_next_begin;
        driver.n_launches = m->kept->n_launches;
        driver_forget_errors();
    }
    driver_unlock(CUDA_SUCCESS);
    return ok ? 0 : -1;
}
