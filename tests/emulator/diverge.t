# Lanes part and meet again: nested ifs, a loop with as many turns as the lane has bits, an early exit of none.
-- launch 2 64 0
-- kernel
mov.u32 %r2, 0;
mov.u32 %r3, %r1;
loop:
setp.eq.u32 %p1, %r3, 0;
@%p1 bra done;
and.b32 %r4, %r3, 1;
setp.eq.u32 %p2, %r4, 0;
@%p2 bra even;
add.u32 %r2, %r2, 100;
bra next;
even:
add.u32 %r2, %r2, 1;
next:
shr.u32 %r3, %r3, 1;
bra.uni loop;
done:
activemask.b32 %r5;
popc.b32 %r5, %r5;
shl.b32 %r5, %r5, 16;
add.u32 %r2, %r2, %r5;
bar.sync 0;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
mov.u32 %r6, %ctaid.x;
setp.eq.u32 %p3, %r6, 1;
@%p3 st.global.u32 [%rd3], %r2;
-- out 0x200000 0x200064 0x200065 0x2000c8 0x200066 0x2000c9 0x2000c9 0x20012c

# A cold block after the end of the loop's code: the meeting point comes first in the text.
-- launch 1 32 0
-- kernel
and.b32 %r2, %r1, 3;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra cold;
mov.u32 %r3, 1;
join:
bar.sync 0;
vote.sync.ballot.b32 %r4, %p1, -1;
add.u32 %r3, %r3, %r4;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r3;
bra end;
cold:
mov.u32 %r3, 2;
bra join;
end:
-- out 0x11111113 0x11111112 0x11111112 0x11111112 0x11111113

# brx.idx with lanes going to three places; scopes hide names.
-- launch 1 32 0
-- kernel
targets: .branchtargets A, B, C;
rem.u32 %r2, %r1, 3;
brx.idx %r2, targets;
A: { .reg .b32 %r3; mov.u32 %r3, 50; mov.u32 %r5, 10; } bra J;
B: mov.u32 %r5, 20; bra J;
C: mov.u32 %r5, 30;
J: bar.warp.sync 0xffffffff;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r5;
-- out 10 20 30 10 20
-- mutate out-of-bounds | rem.u32 %r2, %r1, 3; | rem.u32 %r2, %r1, 4; | brx.idx 3 of 3

# Half of the warp leaves; the rest goes on and may still use collectives among itself.
-- launch 1 32 0
-- kernel
setp.ge.u32 %p1, %r1, 16;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
@%p1 ret;
redux.sync.add.u32 %r2, %r1, 0xffff;
st.global.u32 [%rd3], %r2;
-- out 120 120
-- mutate divergent | 0xffff | -1 | but lanes 0x0000ffff execute it

# Special registers, of a block that does not fill its last warp.
-- launch 3 48 16
-- kernel
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %laneid; shr.u32 %r6, %r1, 5;
mov.u32 %r7, %lanemask_lt; mov.u32 %r8, %tid.y; mov.u32 %r9, %dynamic_smem_size; mov.u32 %r10, %clock;
mov.u64 %rd5, %globaltimer; mov.u32 %r11, %ntid.z;
setp.ne.u32 %p1, %r1, 40; setp.ne.u32 %p2, %r2, 2; or.pred %p1, %p1, %p2;
@%p1 bra end;
st.global.v4.u32 [%rd2], {%r2, %r3, %r4, %r5};
st.global.v4.u32 [%rd2+16], {%r6, %r7, %r8, %r9};
st.global.u32 [%rd2+32], %r11;
end:
-- out 2 3 48 8 1 255 0 16 1

# Lanes that leave inside a branch do not come back at its end.
-- launch 1 32 0
-- kernel
setp.ge.u32 %p1, %r1, 4;
mov.u32 %r2, 7;
@%p1 bra far;
mov.u32 %r2, 8;
bra join;
far:
setp.ge.u32 %p2, %r1, 8;
@%p2 ret;
join:
redux.sync.add.u32 %r2, %r2, 0xff;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r2;
-- out 60 60 60 60 60 60 60 60
