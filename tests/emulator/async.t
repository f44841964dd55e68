# Two groups in flight; waits until one is left, then none.
-- launch 1 64 2048
-- kernel
shl.b32 %r2, %r1, 4;
mov.u32 %r3, smem;
add.u32 %r4, %r3, %r2;
cvt.u64.u32 %rd3, %r2;
add.u64 %rd4, %rd1, %rd3;
cp.async.cg.shared.global [%r4], [%rd4], 16;
cp.async.commit_group;
cp.async.ca.shared.global [%r4+1024], [%rd4+1024], 16;
cp.async.commit_group;
cp.async.wait_group 1;
bar.sync 0;
xor.b32 %r5, %r2, 512;
add.u32 %r5, %r3, %r5;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5];
cp.async.wait_group 0;
bar.sync 1;
ld.shared.u32 %r14, [%r5+1024];
add.u32 %r10, %r10, %r14;
mul.wide.u32 %rd5, %r1, 4;
add.u64 %rd5, %rd2, %rd5;
st.global.u32 [%rd5], %r10;
-- out 512 520 528
-- mutate in-flight | cp.async.wait_group 1;\n |  | committed but not waited for
-- mutate in-flight | cp.async.wait_group 1; | cp.async.wait_group 2; | cp.async of warp
-- mutate in-flight | cp.async.wait_group 0;\n | 
-- mutate in-flight | cp.async.commit_group;\ncp.async.wait_group 1; | cp.async.wait_group 0; | never committed
-- mutate shared-race,in-flight,unwritten-read | bar.sync 0;\n | 
-- mutate shared-race,in-flight,unwritten-read | bar.sync 1;\n | 
-- mutate in-flight | cp.async.wait_group 1; | st.shared.u32 [%r4], 1; | writes
-- mutate misaligned | [%r4+1024], [%rd4+1024] | [%r4+1032], [%rd4+1024] | shared offset
-- mutate misaligned | [%r4+1024], [%rd4+1024] | [%r4+1024], [%rd4+1028] | cp.async from global
-- mutate out-of-bounds | [%r4+1024], [%rd4+1024] | [%r4+1040], [%rd4+1024] | the CTA has 2048 bytes
-- mutate out-of-bounds | [%r4+1024], [%rd4+1024] | [%r4+1024], [%rd4+3088]

# A ring of two stages, refilled: without the barrier at its end a slow warp's data is overwritten.
-- launch 1 64 2048
-- kernel
shl.b32 %r2, %r1, 4;
mov.u32 %r3, smem;
add.u32 %r4, %r3, %r2;
cvt.u64.u32 %rd3, %r2;
add.u64 %rd4, %rd1, %rd3;
xor.b32 %r5, %r2, 512;
add.u32 %r5, %r3, %r5;
mov.u32 %r20, 0;
mov.u32 %r21, 0;
cp.async.cg.shared.global [%r4], [%rd4], 16;
cp.async.commit_group;
loop:
xor.b32 %r22, %r21, 1024;
add.u32 %r23, %r4, %r22;
cp.async.cg.shared.global [%r23], [%rd4], 16;
cp.async.commit_group;
cp.async.wait_group 1;
bar.sync 0;
add.u32 %r24, %r5, %r21;
ld.shared.u32 %r25, [%r24];
bar.sync 1;
mov.u32 %r21, %r22;
add.u32 %r20, %r20, 1;
setp.lt.u32 %p1, %r20, 5;
@%p1 bra loop;
mul.wide.u32 %rd5, %r1, 4;
add.u64 %rd5, %rd2, %rd5;
st.global.u32 [%rd5], %r25;
-- out 128 132 136
-- mutate shared-race,in-flight,unwritten-read | bar.sync 1;\n | 
-- mutate in-flight | cp.async.wait_group 1; | cp.async.wait_group 2;

# Zero fill counts as written; and wait_all needs no commit.
-- launch 1 32 512
-- kernel
shl.b32 %r2, %r1, 4;
mov.u32 %r3, smem;
add.u32 %r4, %r3, %r2;
cvt.u64.u32 %rd3, %r2;
add.u64 %rd4, %rd1, %rd3;
and.b32 %r7, %r1, 1;
shl.b32 %r7, %r7, 3;
cp.async.cg.shared.global [%r4], [%rd4], 16, %r7;
cp.async.wait_all;
bar.warp.sync -1;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r4];
add.u32 %r10, %r10, %r11;
add.u32 %r10, %r10, %r12;
add.u32 %r10, %r10, %r13;
mul.wide.u32 %rd5, %r1, 4;
add.u64 %rd5, %rd2, %rd5;
st.global.u32 [%rd5], %r10;
-- out 0 9 0 25 0 41
-- mutate unwritten-read | [%rd4], 16, %r7; | [%rd2], 16, %r7; | never written
-- mutate in-flight | cp.async.wait_all; | cp.async.wait_group 0; | never committed
-- mutate out-of-bounds | %r7, 3; | %r7, 5; | with a source of

# 4 and 8 bytes; what was not written in global memory is not written in shared memory either.
-- launch 1 32 512
-- kernel
shl.b32 %r2, %r1, 3;
mov.u32 %r3, smem;
add.u32 %r4, %r3, %r2;
cvt.u64.u32 %rd3, %r2;
add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
cp.async.ca.shared.global [%r4], [%rd4], 8;
cp.async.ca.shared.global [%r4+256], [%rd4+4], 4;
cp.async.ca.shared.global [%r4+260], [%rd4+4], 4;
cp.async.commit_group;
cp.async.wait_group 0;
ld.shared.v2.u32 {%r10, %r11}, [%r4];
ld.shared.u32 %r12, [%r4+256];
st.global.v2.u32 [%rd5], {%r10, %r12};
-- out 0 1 2 3 4 5
-- mutate unwritten-read | [%rd4+4], 4; | [%rd5+4], 4; | never written

# CTAs that exit with a copy in flight leave nothing behind for those after them.
-- launch 64 32 512
-- kernel
mov.u32 %r2, %ctaid.x;
and.b32 %r3, %r2, 1;
setp.eq.u32 %p1, %r3, 0;
mov.u32 %r4, smem;
mad.lo.u32 %r4, %r1, 16, %r4;
mul.wide.u32 %rd3, %r1, 16;
add.u64 %rd3, %rd1, %rd3;
@%p1 cp.async.cg.shared.global [%r4], [%rd3], 16;
@%p1 cp.async.commit_group;
@%p1 bra done;
st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r1};
bar.sync 0;
cp.async.wait_all;
bar.sync 0;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r4];
add.u32 %r10, %r10, %r11;
add.u32 %r10, %r10, %r12;
add.u32 %r10, %r10, %r13;
shr.u32 %r2, %r2, 1;
mad.lo.u32 %r2, %r2, 32, %r1;
mul.wide.u32 %rd4, %r2, 4;
add.u64 %rd4, %rd2, %rd4;
st.global.u32 [%rd4], %r10;
done:
-- out 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 9 10 11
-- mutate unwritten-read | st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r1};\n | 
