# Shuffles: every mode, at the ends of the warp and of segments of 8; the predicate says whether the source was inside.
-- launch 1 32 0
-- kernel
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
shfl.sync.up.b32 %r2|%p1, %r1, 3, 0, -1;
shfl.sync.down.b32 %r3, %r1, 3, 31, -1;
shfl.sync.bfly.b32 %r4, %r1, 5, 31, -1;
shfl.sync.idx.b32 %r5, %r1, 9, 31, -1;
shfl.sync.down.b32 %r6|%p2, %r1, 1, 0x181f, -1;
shfl.sync.idx.b32 %r7, %r1, 2, 0x181f, -1;
shl.b32 %r3, %r3, 5; shl.b32 %r4, %r4, 10; shl.b32 %r5, %r5, 15; shl.b32 %r6, %r6, 20; shl.b32 %r7, %r7, 25;
or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4; or.b32 %r2, %r2, %r5; or.b32 %r2, %r2, %r6; or.b32 %r2, %r2, %r7;
selp.b32 %r8, 0x40000000, 0, %p1;
selp.b32 %r9, 0x80000000, 0, %p2;
or.b32 %r2, %r2, %r8; or.b32 %r2, %r2, %r9;
st.global.u32 [%rd3], %r2;
-- out 0x84149460 0x84249081 0x84349ca2 0xc44498c0 0xc45484e1 0xc4648102 0xc4748d23 0x44748944 0xd494b565 0xd4a4b186 0xd4b4bda7 0xd4c4b9c8 0xd4d4a5e9 0xd4e4a20a 0xd4f4ae2b 0x54f4aa4c 0xe514d66d 0xe524d28e 0xe534deaf 0xe544dad0 0xe554c6f1 0xe564c312 0xe574cf33 0x6574cb54 0xf594f775 0xf5a4f396 0xf5b4ffb7 0xf5c4fbd8 0xf5d4e7f9 0xf5e4e3ba 0xf5f4efdb 0x75f4ebfc
-- mutate divergent | shfl.sync.up.b32 %r2|%p1, %r1, 3, 0, -1; | setp.lt.u32 %p3, %r1, 9;\n@%p3 shfl.sync.up.b32 %r2, %r1, 3, 0, -1; | lanes 0x000001ff execute it
-- mutate divergent | shfl.sync.up.b32 %r2|%p1, %r1, 3, 0, -1; | setp.lt.u32 %p3, %r1, 9;\n@%p3 shfl.sync.idx.b32 %r2, %r1, 20, 31, 0x1ff; | does not execute the shuffle

# Votes, reductions, matches, election.
-- launch 1 32 0
-- target sm_90a
-- kernel
setp.lt.u32 %p1, %r1, 20;
vote.sync.all.pred %p2, %p1, -1;
vote.sync.any.pred %p3, %p1, -1;
vote.sync.uni.pred %p4, %p1, -1;
vote.sync.ballot.b32 %r2, !%p1, -1;
sub.u32 %r3, %r1, 7;
redux.sync.min.s32 %r4, %r3, -1;
redux.sync.max.u32 %r5, %r3, -1;
redux.sync.add.s32 %r6, %r3, -1;
redux.sync.xor.b32 %r7, %r3, -1;
and.b32 %r8, %r1, 3;
match.any.sync.b32 %r9, %r8, -1;
selp.b32 %r10, 1, 0, %p2; selp.b32 %r11, 2, 0, %p3; selp.b32 %r12, 4, 0, %p4;
or.b32 %r10, %r10, %r11; or.b32 %r10, %r10, %r12;
setp.ne.u32 %p5, %r1, 1;
@%p5 bra end;
st.global.v4.u32 [%rd2], {%r10, %r2, %r4, %r5};
st.global.v4.u32 [%rd2+16], {%r6, %r7, %r9, %r9};
end:
-- out 2 0xfff00000 -7 -1 272 0xffffffe0 0x22222222
