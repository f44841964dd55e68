# 64 x 8 = (64 x 16) (16 x 8), all ones: A in two tiles of 8 rows by 16, B in one; then again from registers.
-- launch 1 128 8192
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
shl.b32 %r4, %r1, 4;
add.u32 %r4, %r3, %r4;
mov.u32 %r5, 0x3f803f80;
st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};
st.shared.v4.u32 [%r4+2048], {%r5, %r5, %r5, %r5};
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r6, %r3, 4;
cvt.u64.u32 %rd3, %r6;
or.b64 %rd4, %rd3, 0x1000080000;
add.u64 %rd5, %rd4, 128;
mov.f32 %f1, 0f3F800000;
mov.f32 %f2, 0f40000000;
mov.f32 %f3, 0f3F800000;
mov.f32 %f4, 0f40000000;
setp.ne.u32 %p1, %r3, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd4, %rd5, %p1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5}, %rd5, %p1, 1, -1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 1;
st.shared.u32 [%r4+4096], %r1;
wgmma.wait_group.sync.aligned 0;
add.f32 %f1, %f1, %f2;
mov.u32 %r5, 0;
bar.sync 0;
st.shared.u32 [%r4], %r5;
mul.wide.u32 %rd6, %r1, 16;
add.u64 %rd6, %rd2, %rd6;
st.global.v4.f32 [%rd6], {%f1, %f2, %f3, %f4};
done:
-- out 0x40400000 0x40000000 0x3f800000 0x40000000
-- mutate wgmma | wgmma.fence.sync.aligned;\n |  | no wgmma.fence has come before the first wgmma
-- mutate wgmma | setp.ne.u32 %p1, %r3, 0;\nwgmma.fence.sync.aligned; | wgmma.fence.sync.aligned;\nadd.f32 %f3, %f3, %f3;\nsetp.ne.u32 %p1, %r3, 0; | touched after the last wgmma.fence
-- mutate wgmma | wgmma.fence.sync.aligned; | wgmma.fence.sync.aligned;\nmov.u32 %r5, 0x3f803f80; | at line 30: mov.u32
-- mutate wgmma | wgmma.wait_group.sync.aligned 0;\n |  | no wgmma.wait_group of this warp covers yet
-- mutate wgmma | wgmma.wait_group.sync.aligned 0; | wgmma.wait_group.sync.aligned 1; | touches a register of a wgmma
-- mutate wgmma | wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1; | wgmma.wait_group.sync.aligned 1;
-- mutate wgmma | wgmma.wait_group.sync.aligned 0;\nadd.f32 %f1, %f1, %f2;\nmov.u32 %r5, 0; | mov.u32 %r5, 0;\nwgmma.wait_group.sync.aligned 0; | touches a register of a wgmma
-- mutate wgmma | wgmma.wait_group.sync.aligned 0; | ld.shared.f32 %f2, [%r3];\nwgmma.wait_group.sync.aligned 0; | touches a register of a wgmma
-- mutate wgmma | {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5} | {%f1, %f2, %f3, %f4}, {%r5, %f1, %r5, %r5}
-- mutate in-flight | wgmma.wait_group.sync.aligned 1; | st.shared.u32 [%r3], 7;\nwgmma.wait_group.sync.aligned 1; | by wgmma of warpgroup 0, for which no wgmma.wait_group has come
-- mutate in-flight | wgmma.wait_group.sync.aligned 1; | wgmma.wait_group.sync.aligned 1;\nst.shared.u32 [%r3+2048], 7; | wgmma
-- mutate in-flight | wgmma.wait_group.sync.aligned 1; | wgmma.wait_group.sync.aligned 1;\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 st.shared.u32 [%r3+2048], 7;
-- mutate proxy | fence.proxy.async.shared::cta;\n | | no fence.proxy.async by that thread
-- mutate proxy | fence.proxy.async.shared::cta;\nbar.sync 0; | bar.sync 0;\nfence.proxy.async.shared::cta;
-- mutate shared-race,unwritten-read | bar.sync 0;\n | 
-- mutate shared-race,in-flight | bar.sync 0;\nshr.u32 | bar.sync 0;\nsetp.ge.u32 %p2, %r1, 96;\n@%p2 st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};\nfence.proxy.async;\nshr.u32
-- mutate unwritten-read | add.u64 %rd5, %rd4, 128; | add.u64 %rd5, %rd4, 256; | nothing has written
-- mutate out-of-bounds | add.u64 %rd5, %rd4, 128; | add.u64 %rd5, %rd4, 600; | the descriptor of B
-- mutate wgmma | add.u64 %rd5, %rd4, 128; | or.b64 %rd5, %rd4, 0x10000000000000; | bits that mean nothing
-- mutate wgmma | add.u64 %rd5, %rd4, 128; | cvt.u64.u32 %rd5, %r1;\nadd.u64 %rd5, %rd4, %rd5; | disagree on the descriptor of B
-- mutate wgmma | add.u64 %rd5, %rd4, 128; | shr.u32 %r7, %r1, 5;\ncvt.u64.u32 %rd5, %r7;\nadd.u64 %rd5, %rd4, %rd5; | the warps of the warpgroup disagree: descriptors
-- mutate wgmma | setp.ne.u32 %p1, %r3, 0; | setp.gt.u32 %p1, %r1, 5; | disagree on scale-d
-- mutate wgmma | setp.ne.u32 %p1, %r3, 0; | setp.gt.u32 %p1, %r1, 31; | the warps of the warpgroup disagree
-- mutate divergent | wgmma.fence.sync.aligned; | setp.gt.u32 %p2, %r1, 3;\n@%p2 wgmma.fence.sync.aligned; | all 32 must execute it together
-- mutate wgmma,deadlock | wgmma.fence.sync.aligned; | setp.gt.u32 %p2, %r1, 31;\n@%p2 bra go;\nwgmma.fence.sync.aligned;\ngo: | 
-- mutate deadlock | wgmma.fence.sync.aligned; | wgmma.fence.sync.aligned;\nsetp.gt.u32 %p2, %r1, 95;\n@%p2 bra done; | the wgmma of the other warps of its warpgroup
-- mutate wgmma | wgmma.wait_group.sync.aligned 0;\nadd.f32 %f1, %f1, %f2;\nmov.u32 %r5, 0;\nbar.sync 0;\nst.shared.u32 [%r4], %r5;\nmul.wide.u32 %rd6, %r1, 16;\nadd.u64 %rd6, %rd2, %rd6;\nst.global.v4.f32 [%rd6], {%f1, %f2, %f3, %f4}; |  | no wgmma.wait_group of its covers this

# A ring of two stages: a warp loads, a warpgroup multiplies and gives the stage back by one thread.
-- launch 1 160 2048
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
setp.ge.u32 %p1, %r1, 128;
setp.eq.u32 %p2, %r1, 0;
setp.eq.u32 %p3, %r1, 128;
@%p2 mbarrier.init.shared::cta.b64 [%r3+1024], 1;
@%p2 mbarrier.init.shared::cta.b64 [%r3+1032], 1;
@%p2 mbarrier.init.shared::cta.b64 [%r3+1040], 1;
@%p2 mbarrier.init.shared::cta.b64 [%r3+1048], 1;
@%p2 fence.mbarrier_init.release.cluster;
bar.sync 0;
mov.u32 %r10, 0;
mov.u32 %r5, 0;
@%p1 bra producer;
loop:
and.b32 %r11, %r10, 1;
shr.u32 %r12, %r10, 1;
and.b32 %r12, %r12, 1;
shl.b32 %r13, %r11, 3;
add.u32 %r13, %r13, %r3;
full:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13+1024], %r12;
@!%p4 bra full;
shl.b32 %r14, %r11, 8;
add.u32 %r14, %r14, %r3;
shr.u32 %r14, %r14, 4;
cvt.u64.u32 %rd4, %r14;
or.b64 %rd4, %rd4, 0x1000080000;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5}, %rd4, 0, 1, 1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
@%p2 mbarrier.arrive.shared::cta.b64 _, [%r13+1040];
add.u32 %r10, %r10, 1;
setp.lt.u32 %p5, %r10, 7;
@%p5 bra loop;
mul.wide.u32 %rd6, %r1, 16;
add.u64 %rd6, %rd2, %rd6;
st.global.v4.f32 [%rd6], {%f1, %f2, %f3, %f4};
bra done;
producer:
@!%p3 bra done;
load:
and.b32 %r11, %r10, 1;
shr.u32 %r12, %r10, 1;
and.b32 %r12, %r12, 1;
xor.b32 %r12, %r12, 1;
shl.b32 %r13, %r11, 3;
add.u32 %r13, %r13, %r3;
shl.b32 %r14, %r11, 8;
add.u32 %r14, %r14, %r3;
empty:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r13+1040], %r12;
@!%p4 bra empty;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13+1024], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r14], [%rd1], 256, [%r13+1024];
add.u32 %r10, %r10, 1;
setp.lt.u32 %p5, %r10, 7;
@%p5 bra load;
done:
-- out 0 0 0 0
-- mutate in-flight | wgmma.wait_group.sync.aligned 0;\n@%p2 mbarrier.arrive.shared::cta.b64 _, [%r13+1040]; | @%p2 mbarrier.arrive.shared::cta.b64 _, [%r13+1040];\nwgmma.wait_group.sync.aligned 0; | wgmma of warpgroup 0
-- mutate deadlock | xor.b32 %r12, %r12, 1;\n |  | warps 0 to 3: each waits for the end of phase 0 (parity 0)
-- mutate in-flight,mbarrier,deadlock | @!%p4 bra empty; | 
-- mutate in-flight,unwritten-read | @!%p4 bra full; | 
-- mutate mbarrier | shl.b32 %r14, %r11, 8;\nadd.u32 %r14, %r14, %r3;\nshr.u32 | mov.u32 %r14, 1008;\nadd.u32 %r14, %r14, %r3;\nshr.u32 | reads the mbarrier at shared offset 1024
-- mutate in-flight | full:\nmbarrier.try_wait.parity | full:\nmbarrier.try_wait.parity.relaxed.cta | no wait for its mbarrier
-- mutate in-flight | empty:\nmbarrier.try_wait.parity | empty:\nmbarrier.try_wait.parity.relaxed.cta | no wgmma.wait_group by this warp, or by one that it has synchronised with
-- mutate deadlock,in-flight | [%r13+1040];\nadd | [%r3+1040];\nadd

# What some lanes have fenced says nothing of the others: each product reads what half of a warp has stored.
-- launch 2 128 2048
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
mad.lo.u32 %r4, %r1, 16, %r3;
and.b32 %r6, %r1, 31;
setp.lt.u32 %p2, %r6, 16;
mov.u32 %r5, 0x3f803f80;
st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r7, %r3, 4;
cvt.u64.u32 %rd3, %r7;
or.b64 %rd4, %rd3, 0x1000080000;
add.u64 %rd5, %rd4, 16;
mov.f32 %f1, 0f00000000;
mov.f32 %f2, 0f00000000;
mov.f32 %f3, 0f00000000;
mov.f32 %f4, 0f00000000;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5}, %rd4, 1, 1, 1, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5}, %rd5, 1, 1, 1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mul.wide.u32 %rd6, %r1, 16;
add.u64 %rd6, %rd2, %rd6;
st.global.v4.f32 [%rd6], {%f1, %f2, %f3, %f4};
-- out 0x42000000 0x42000000 0x42000000 0x42000000
-- mutate proxy | fence.proxy.async.shared::cta; | @%p2 fence.proxy.async; | warp 0 lane 16 has written
-- mutate proxy | fence.proxy.async.shared::cta; | @!%p2 fence.proxy.async; | warp 0 lane 0 has written
-- mutate proxy | fence.proxy.async.shared::cta; | bar.sync 1;\nmov.u32 %r8, %ctaid.x;\nsetp.eq.u32 %p3, %r8, 0;\n@%p3 fence.proxy.async; | CTA (1,0,0)

# Shapes may not change on the same accumulators without a fence.
-- launch 1 128 8192
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
shl.b32 %r4, %r1, 4;
add.u32 %r4, %r3, %r4;
mov.u32 %r5, 0x3c003c00;
st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};
st.shared.v4.u32 [%r4+2048], {%r5, %r5, %r5, %r5};
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r6, %r3, 4;
cvt.u64.u32 %rd3, %r6;
or.b64 %rd4, %rd3, 0x1000080000;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, %rd4, %rd4, 0, 1, 1, 0, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f5, %f6, %f7, %f8}, {%r5, %r5, %r5, %r5}, %rd4, 1, 1, 1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mul.wide.u32 %rd6, %r1, 32;
add.u64 %rd6, %rd2, %rd6;
st.global.v4.f32 [%rd6], {%f1, %f2, %f3, %f4};
st.global.v4.f32 [%rd6+16], {%f5, %f6, %f7, %f8};
-- out 0x41800000 0x41800000 0x41800000 0x41800000 0x42000000 0x42000000 0x42000000 0x42000000
-- mutate wgmma | 0, 0;\nwgmma.fence.sync.aligned; | 0, 0; | a wgmma of another shape did

-- launch 1 128 0
-- target sm_90a
-- kernel
wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd4, %rd4, 0, 1, 1, 0, 0;
-- refused operands do not fit

-- launch 1 128 0
-- target sm_90
-- kernel
wgmma.fence.sync.aligned;
-- refused needs .target sm_90a
