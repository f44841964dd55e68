/* tests/plain/registers.c - which registers values have, how long, and which share those of a local. */
#include "plain.h"

#include <stdlib.h>
#include <string.h>

_Noreturn void give_up(struct writer *w, const char *reason)
{
    w->reason = reason;
    longjmp(w->unknown, 1);
}

static void *grown(struct writer *w, void *memory, size_t n, size_t size)
{
    void *more = realloc(memory, n * size);
    if (!more)
        give_up(w, "no memory");
    return more;
}

/* Until the end, and zero. */
void *keep(struct writer *w, size_t n, size_t size)
{
    if ((w->n_blocks & (w->n_blocks - 1)) == 0)
        w->blocks = grown(w, w->blocks, w->n_blocks ? 2 * w->n_blocks : 1, sizeof *w->blocks);
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        give_up(w, "no memory");
    return w->blocks[w->n_blocks++] = memory;
}

/* ---- items by value ---- */

static uint32_t *place_of(struct writer *w, LLVMValueRef value)
{
    uint32_t at = (uint32_t)((uintptr_t)value >> 4) * 2654435761u;
    for (;; at++) {
        uint32_t *place = &w->table[at & (w->table_size - 1)];
        if (!*place || w->items[*place - 1].value == value)
            return place;
    }
}

struct item *item_of(struct writer *w, LLVMValueRef value)
{
    const uint32_t place = *place_of(w, value);
    return place ? &w->items[place - 1] : NULL;
}

static void add_item(struct writer *w, LLVMValueRef value, LLVMOpcode opcode, uint32_t block)
{
    *place_of(w, value) = w->n_items + 1;
    w->items[w->n_items++] = (struct item){.value = value, .opcode = opcode, .block = block};
}

static void add_items(struct writer *w)
{
    uint32_t n = LLVMCountParams(w->function), block = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(w->function); b; b = LLVMGetNextBasicBlock(b), n++)
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            n++;
    for (w->table_size = 64; w->table_size < 2 * n;)
        w->table_size *= 2;
    w->items = keep(w, n, sizeof *w->items);
    w->table = keep(w, w->table_size, sizeof *w->table);
    w->ends = keep(w, n, sizeof *w->ends);
    w->events = keep(w, n, sizeof *w->events);
    for (uint32_t i = 0; i < LLVMCountParams(w->function); i++)
        add_item(w, LLVMGetParam(w->function, i), A_VALUE, 0);
    w->first = w->n_items;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(w->function); b; b = LLVMGetNextBasicBlock(b), block++) {
        add_item(w, LLVMBasicBlockAsValue(b), A_BLOCK, block);
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            add_item(w, i, LLVMGetInstructionOpcode(i), block);
    }
}

/* ---- how long ---- */

/* What it gives may be what it has been given. */
static bool hands_on(LLVMOpcode opcode)
{
    return opcode == LLVMBitCast || opcode == LLVMExtractValue || opcode == LLVMInsertElement ||
           opcode == LLVMExtractElement || opcode == LLVMGetElementPtr || opcode == LLVMPtrToInt ||
           opcode == LLVMIntToPtr;
}

static uint32_t last_use(struct writer *w, uint32_t i)
{
    const struct item *item = &w->items[i];
    uint32_t last = i;
    for (LLVMUseRef use = LLVMGetFirstUse(item->value); use; use = LLVMGetNextUse(use)) {
        const struct item *user = item_of(w, LLVMGetUser(use));
        if (!user || user->block != item->block)
            return ESCAPES;
        const uint32_t until = hands_on(user->opcode) ? user->last : (uint32_t)(user - w->items);
        last = until > last ? until : last;
    }
    return last;
}

/* Its loads and stores, in order: what else is done with a local is not known here. */
static void note_event(struct writer *w, uint32_t i)
{
    const struct item *item = &w->items[i];
    if (item->opcode != LLVMLoad && item->opcode != LLVMStore)
        return;
    struct item *local = item_of(w, LLVMGetOperand(item->value, item->opcode == LLVMStore));
    if (local && local->opcode == LLVMAlloca)
        w->events[local->event + local->n_events++] = i;
}

static void find_events(struct writer *w)
{
    uint32_t n = 0;
    for (uint32_t i = w->first; i < w->n_items; i++) {
        struct item *item = &w->items[i];
        if (item->opcode != LLVMAlloca)
            continue;
        item->event = n;
        for (LLVMUseRef use = LLVMGetFirstUse(item->value); use; use = LLVMGetNextUse(use), n++) {
            const LLVMValueRef user = LLVMGetUser(use);
            if (!LLVMIsALoadInst(user) && !(LLVMIsAStoreInst(user) && LLVMGetOperand(user, 1) == item->value))
                give_up(w, "an address of a local");
        }
    }
    for (uint32_t i = w->first; i < w->n_items; i++)
        note_event(w, i);
}

void registers_begin(struct writer *w)
{
    add_items(w);
    for (uint32_t i = w->n_items; i-- > 0;)
        if (w->items[i].opcode != A_BLOCK)
            w->items[i].last = last_use(w, i);
    find_events(w);
    for (uint32_t i = w->first; i < w->n_items; i++) {
        struct item *item = &w->items[i];
        if (item->opcode != LLVMAlloca)
            continue;
        const struct form form = form_of(w, LLVMGetAllocatedType(item->value));
        item->last = ESCAPES;
        own(w, item, &form);
        pin(w, item->regs, item->n_regs);
    }
}

void registers_end(struct writer *w)
{
    for (uint32_t i = 0; i < w->n_blocks; i++)
        free(w->blocks[i]);
    free(w->blocks);
    for (int c = 0; c < N_CLASSES; c++) {
        free(w->unused[c]);
        free(w->is_pinned[c]);
    }
}

/* ---- types ---- */

static uint8_t class_of(struct writer *w, LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        switch (LLVMGetIntTypeWidth(type)) {
        case 1:
            return CLASS_PREDICATE;
        case 16:
            return CLASS_16;
        case 32:
            return CLASS_32;
        case 64:
            return CLASS_64;
        default:
            give_up(w, "an integer type");
        }
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        return CLASS_16;
    case LLVMFloatTypeKind:
        return CLASS_32;
    case LLVMDoubleTypeKind:
        return CLASS_64;
    case LLVMPointerTypeKind:
        return LLVMGetPointerAddressSpace(type) == 3 ? CLASS_32 : CLASS_64;
    default:
        give_up(w, "a type");
    }
}

static struct form form_of_vector(struct writer *w, LLVMTypeRef type)
{
    struct form s = {.n_elements = LLVMGetVectorSize(type)};
    const uint8_t class = class_of(w, LLVMGetElementType(type));
    s.is_pairs = class == CLASS_16 && s.n_elements % 2 == 0;
    s.n_parts = s.is_pairs ? s.n_elements / 2 : s.n_elements;
    if (class == CLASS_PREDICATE || s.n_parts > MOST_PARTS)
        give_up(w, "a vector type");
    memset(s.class, s.is_pairs ? CLASS_32 : class, s.n_parts);
    return s;
}

struct form form_of(struct writer *w, LLVMTypeRef type)
{
    struct form s = {.n_parts = 1, .n_elements = 1};
    LLVMTypeRef elements[MOST_PARTS];
    switch (LLVMGetTypeKind(type)) {
    case LLVMVectorTypeKind:
        return form_of_vector(w, type);
    case LLVMStructTypeKind:
        s.n_parts = s.n_elements = LLVMCountStructElementTypes(type);
        if (s.n_parts > MOST_PARTS)
            give_up(w, "a struct");
        LLVMGetStructElementTypes(type, elements);
        for (uint32_t i = 0; i < s.n_parts; i++)
            s.class[i] = class_of(w, elements[i]);
        return s;
    default:
        s.class[0] = class_of(w, type);
        return s;
    }
}

/* ---- registers ---- */

struct reg new_register(struct writer *w, uint8_t class)
{
    if (w->n_unused[class])
        return w->unused[class][--w->n_unused[class]];
    if (w->n_used[class] == w->room_pinned[class]) {
        const uint32_t room = w->room_pinned[class] ? 2 * w->room_pinned[class] : 256;
        w->is_pinned[class] = grown(w, w->is_pinned[class], room, sizeof **w->is_pinned);
        memset(w->is_pinned[class] + w->n_used[class], 0, room - w->n_used[class]);
        w->room_pinned[class] = room;
    }
    return (struct reg){.class = class, .n = w->n_used[class]++};
}

void pin(struct writer *w, const struct reg *regs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (regs[i].class < N_CLASSES)
            w->is_pinned[regs[i].class][regs[i].n] = true;
}

static void release(struct writer *w, struct reg r)
{
    const uint8_t class = r.class;
    if (w->is_pinned[class][r.n])
        return;
    if (w->n_unused[class] == w->room[class]) {
        w->room[class] = w->room[class] ? 2 * w->room[class] : 256;
        w->unused[class] = grown(w, w->unused[class], w->room[class], sizeof **w->unused);
    }
    w->unused[class][w->n_unused[class]++] = r;
}

void release_ended(struct writer *w)
{
    for (uint32_t i = w->ends[w->at]; i; i = w->items[i - 1].next_to_end)
        for (uint32_t k = 0; k < w->items[i - 1].n_regs; k++)
            release(w, w->items[i - 1].regs[k]);
}

void end_with_last(struct writer *w, struct item *item)
{
    if (item->last == ESCAPES)
        return;
    item->next_to_end = w->ends[item->last];
    w->ends[item->last] = (uint32_t)(item - w->items) + 1;
}

/* Registers of its own. */
void own(struct writer *w, struct item *item, const struct form *form)
{
    item->n_regs = form->n_parts;
    item->regs = keep(w, form->n_parts, sizeof *item->regs);
    for (uint32_t i = 0; i < form->n_parts; i++)
        item->regs[i] = new_register(w, form->class[i]);
    end_with_last(w, item);
}

void share(struct item *item, const struct item *from)
{
    item->regs = from->regs;
    item->n_regs = from->n_regs;
    item->elements = from->elements;
    item->offset = from->offset;
}

/* ---- locals ---- */

/* The first store to the local behind instruction `at`, of its block; ESCAPES: there is none. */
static uint32_t next_store(const struct writer *w, const struct item *local, uint32_t at)
{
    const uint32_t *events = w->events + local->event;
    uint32_t low = 0, high = local->n_events;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (events[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < local->n_events && w->items[events[low]].block == w->items[at].block; low++)
        if (w->items[events[low]].opcode == LLVMStore)
            return events[low];
    return ESCAPES;
}

static bool has_event_between(const struct writer *w, const struct item *local, uint32_t begin, uint32_t end)
{
    for (uint32_t i = 0; i < local->n_events; i++)
        if (w->events[local->event + i] > begin && w->events[local->event + i] < end)
            return true;
    return false;
}

static void note_reading(struct item *local, uint32_t until)
{
    local->busy = until > local->busy ? until : local->busy;
}

/* Whether what is loaded can be read where it lies, as nothing is stored there before its last use. */
bool lives_in_local(struct writer *w, struct item *load, const struct item *local)
{
    if (load->last == ESCAPES || load->last > next_store(w, local, (uint32_t)(load - w->items)))
        return false;
    share(load, local);
    note_reading(item_of(w, local->value), load->last);
    return true;
}

static void find_elements(struct writer *w, struct item *call)
{
    call->of_struct = keep(w, LLVMCountStructElementTypes(LLVMTypeOf(call->value)), sizeof *call->of_struct);
    for (LLVMUseRef use = LLVMGetFirstUse(call->value); use; use = LLVMGetNextUse(use)) {
        const LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAExtractValueInst(user) && !call->of_struct[LLVMGetIndices(user)[0]])
            call->of_struct[LLVMGetIndices(user)[0]] = item_of(w, user);
    }
}

struct item *element_of_call(struct writer *w, struct item *call, uint32_t index)
{
    if (!call->of_struct)
        find_elements(w, call);
    return call->of_struct[index];
}

/* Assembly whose first operands are in the registers of its results says so behind these, which are two characters each. */
int tied_to(LLVMValueRef call, uint32_t operand)
{
    size_t n;
    LLVMValueRef code = LLVMGetCalledValue(call);
    LLVMTypeRef type = LLVMTypeOf(call);
    if (!LLVMIsAInlineAsm(code) || LLVMGetTypeKind(type) == LLVMVoidTypeKind)
        return -1;
    const uint32_t n_results = LLVMGetTypeKind(type) == LLVMStructTypeKind ? LLVMCountStructElementTypes(type) : 1;
    const char *constraints = LLVMGetInlineAsmConstraintString(code, &n);
    return operand < n_results && n > 3 * n_results && constraints[3 * n_results] == '0' ? (int)operand : -1;
}

/* Which operand of the user it is: they are an array of LLVM's, whose C API does not tell. */
static uint32_t operand_of(LLVMValueRef user, LLVMUseRef use)
{
    const char *const first = (const char *)LLVMGetOperandUse(user, 0);
    return (uint32_t)(((const char *)use - first) / ((const char *)LLVMGetOperandUse(user, 1) - first));
}

/* Which of the user's values is in the same registers; NULL: none. */
static struct item *same_in_user(struct writer *w, LLVMUseRef use, struct item *user)
{
    if (user->opcode == LLVMBitCast)
        return user;
    if (user->opcode != LLVMCall)
        return NULL;
    const int tied = tied_to(user->value, operand_of(user->value, use));
    if (tied < 0)
        return NULL;
    return LLVMGetTypeKind(LLVMTypeOf(user->value)) == LLVMStructTypeKind ? element_of_call(w, user, (uint32_t)tied)
                                                                          : user;
}

/* The local that the item is stored to, itself or what its registers become, if nobody looks at that from now on until then. */
static struct item *home_until(struct writer *w, struct item *item, uint32_t last)
{
    last = item->last > last ? item->last : last;
    if (last == ESCAPES)
        return NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(item->value); use; use = LLVMGetNextUse(use)) {
        struct item *user = item_of(w, LLVMGetUser(use)), *home = NULL;
        const uint32_t at = (uint32_t)(user - w->items);
        if (user->opcode == LLVMStore && LLVMGetOperand(user->value, 0) == item->value) {
            home = item_of(w, LLVMGetOperand(user->value, 1));
            if (home && home->opcode == LLVMAlloca && home->busy <= w->at && last <= next_store(w, home, at) &&
                !has_event_between(w, home, w->at, at))
                return home;
            continue;
        }
        struct item *same = same_in_user(w, use, user);
        if (same && user->opcode == LLVMCall && item->last == at)
            home = home_until(w, same, 0);
        else if (same && user->opcode == LLVMBitCast)
            home = home_until(w, same, last);
        if (home)
            return home;
    }
    return NULL;
}

struct item *home_of(struct writer *w, uint32_t i)
{
    struct item *item = &w->items[i], *home = home_until(w, item, 0);
    if (home)
        note_reading(home, item->last);
    return home;
}
