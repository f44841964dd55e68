/* cfg.c - where diverged lanes meet again: the immediate post-dominator of each conditional jump.
 *
 * The compiler of a real GPU puts its reconvergence points there, so PTX that is right by the rules
 * for aligned barriers and warp collectives finds its warps whole. Post-dominators are found by the
 * iteration of Cooper, Harvey and Kennedy on the reversed graph; the exit is a node of its own,
 * after all blocks. */
#include "emu.h"

#include <stdlib.h>

insn_run run_bra, run_brx, run_exit;

struct block {
    u32 first, last; /* instructions */
    u32 *next;
    u32 n_next;
    u32 order; /* in the post-order of the reversed graph */
    u32 ipdom;
};

struct graph {
    struct kernel *kernel;
    struct block *blocks; /* the exit is blocks[n_blocks] */
    u32 n_blocks;
    u32 *block_of; /* instruction -> block */
    u32 **preds;
    u32 *n_preds;
    u32 *sequence; /* blocks by descending order */
    u32 n_sequence;
    u32 only_exit; /* the one block whose exit counts, or NO_PC */
};

static bool is_jump(const struct insn *in)
{
    return in->run == run_bra || in->run == run_brx || in->run == run_exit;
}

static void mark_leaders(const struct kernel *k, bool *leader)
{
    leader[0] = true;
    for (u32 i = 0; i < k->n_code; i++) {
        const struct insn *in = &k->code[i];
        if (!is_jump(in))
            continue;
        leader[i + 1] = true;
        if (in->run == run_bra)
            leader[in->imm] = true;
        for (u32 t = 0; in->run == run_brx && t < k->tables[in->imm].n; t++)
            leader[k->tables[in->imm].target[t]] = true;
    }
}

static void add_next(struct graph *g, struct block *b, u32 target)
{
    const u32 t = target >= g->kernel->n_code ? g->n_blocks : g->block_of[target];
    b->next[b->n_next++] = t;
    g->preds[t] = realloc(g->preds[t], (g->n_preds[t] + 1) * sizeof(u32));
    g->preds[t][g->n_preds[t]++] = (u32)(b - g->blocks);
}

static void add_edges(struct graph *g, struct block *b)
{
    const struct kernel *k = g->kernel;
    const struct insn *in = &k->code[b->last];
    const u32 n_targets = in->run == run_brx ? k->tables[in->imm].n : 1;
    b->next = malloc((n_targets + 1) * sizeof(u32));
    if (in->run == run_bra)
        add_next(g, b, (u32)in->imm);
    for (u32 t = 0; in->run == run_brx && t < n_targets; t++)
        add_next(g, b, k->tables[in->imm].target[t]);
    const bool counts = g->only_exit == NO_PC || g->only_exit == (u32)(b - g->blocks);
    if (in->run == run_exit && counts)
        add_next(g, b, k->n_code);
    if (!is_jump(in) || in->guard != PRED_TRUE << 1)
        add_next(g, b, b->last + 1);
}

static void build(struct graph *g)
{
    struct kernel *k = g->kernel;
    bool *leader = calloc(k->n_code + 2, sizeof *leader);
    mark_leaders(k, leader);
    g->block_of = calloc(k->n_code + 1, sizeof(u32));
    for (u32 i = 0; i < k->n_code; i++) {
        g->n_blocks += leader[i];
        g->block_of[i] = g->n_blocks - 1;
    }
    g->blocks = calloc(g->n_blocks + 1, sizeof *g->blocks);
    g->preds = calloc(g->n_blocks + 1, sizeof *g->preds);
    g->n_preds = calloc(g->n_blocks + 1, sizeof *g->n_preds);
    for (u32 i = 0; i < k->n_code; i++) {
        struct block *b = &g->blocks[g->block_of[i]];
        if (leader[i])
            b->first = i;
        b->last = i;
    }
    for (u32 i = 0; i < g->n_blocks; i++)
        add_edges(g, &g->blocks[i]);
    free(leader);
}

/* Depth first from the exit, backwards, without recursion: code may be long. */
static void number(struct graph *g)
{
    const u32 n = g->n_blocks + 1;
    u32 *stack = malloc(n * sizeof(u32)), *position = calloc(n, sizeof(u32)), depth = 0, order = 0;
    bool *seen = calloc(n, sizeof *seen);
    g->sequence = malloc(n * sizeof(u32));
    stack[depth++] = g->n_blocks;
    seen[g->n_blocks] = true;
    while (depth) {
        const u32 b = stack[depth - 1];
        if (position[b] < g->n_preds[b]) {
            const u32 p = g->preds[b][position[b]++];
            if (!seen[p]) {
                seen[p] = true;
                stack[depth++] = p;
            }
        } else {
            g->blocks[b].order = order++;
            g->sequence[order - 1] = b;
            depth--;
        }
    }
    g->n_sequence = order;
    free(stack);
    free(position);
    free(seen);
}

static u32 intersect(const struct graph *g, u32 a, u32 b)
{
    while (a != b) {
        while (g->blocks[a].order < g->blocks[b].order)
            a = g->blocks[a].ipdom;
        while (g->blocks[b].order < g->blocks[a].order)
            b = g->blocks[b].ipdom;
    }
    return a;
}

static void find_post_dominators(struct graph *g)
{
    for (u32 i = 0; i <= g->n_blocks; i++)
        g->blocks[i].ipdom = NO_PC;
    g->blocks[g->n_blocks].ipdom = g->n_blocks;
    for (bool changed = true; changed;) {
        changed = false;
        for (u32 i = g->n_sequence - 1; i-- > 0;) { /* all but the exit */
            struct block *b = &g->blocks[g->sequence[i]];
            u32 d = NO_PC;
            for (u32 s = 0; s < b->n_next; s++)
                if (g->blocks[b->next[s]].ipdom != NO_PC)
                    d = d == NO_PC ? b->next[s] : intersect(g, d, b->next[s]);
            changed |= d != b->ipdom;
            b->ipdom = d;
        }
    }
}

static void graph_free(struct graph *g)
{
    for (u32 i = 0; i <= g->n_blocks; i++) {
        free(g->blocks[i].next);
        free(g->preds[i]);
    }
    free(g->blocks);
    free(g->preds);
    free(g->n_preds);
    free(g->block_of);
    free(g->sequence);
}

/* How many blocks come to this exit. */
static u32 count_reaching(struct kernel *k, u32 exit_block)
{
    struct graph g = {.kernel = k, .only_exit = exit_block};
    build(&g);
    number(&g);
    const u32 n = g.n_sequence;
    graph_free(&g);
    return n;
}

/* The unconditional exit to which most of the code leads; the others are early ones. */
static u32 find_main_exit(struct kernel *k, const struct graph *g)
{
    u32 most = 0, best = NO_PC, n_exits = 0;
    for (u32 i = 0; i < g->n_blocks; i++) {
        const struct insn *in = &k->code[g->blocks[i].last];
        if (in->run != run_exit || in->guard != PRED_TRUE << 1 || ++n_exits > 16)
            continue;
        const u32 n = count_reaching(k, i);
        if (n >= most) {
            most = n;
            best = i;
        }
    }
    return best;
}

static void set_reconvergence(struct graph *g)
{
    number(g);
    find_post_dominators(g);
    for (u32 i = 0; i < g->n_blocks; i++) {
        const u32 d = g->blocks[i].ipdom;
        if (d < g->n_blocks)
            g->kernel->code[g->blocks[i].last].reconverge = g->blocks[d].first;
    }
}

/* Sets insn->reconverge of all jumps; NO_PC: the lanes meet only at the end, or never. Lanes that
 * exit early are gone and nobody waits for them, so the main exit alone decides where it can; what
 * does not lead there goes by all exits. */
void find_reconvergence(struct kernel *k)
{
    struct graph all = {.kernel = k, .only_exit = NO_PC}, last = {.kernel = k};
    for (u32 i = 0; i < k->n_code; i++)
        k->code[i].reconverge = NO_PC;
    build(&all);
    last.only_exit = find_main_exit(k, &all);
    set_reconvergence(&all);
    graph_free(&all);
    if (last.only_exit == NO_PC)
        return;
    build(&last);
    set_reconvergence(&last);
    graph_free(&last);
}
