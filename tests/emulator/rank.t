# In a cluster the addresses of shared variables have the rank of their CTA in the bits above 24. A wgmma descriptor holds
# 18 bits of an address: more of them change its leading dimension.
-- launch 2 128 4096
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p2, %r2, 0;
mad.lo.u32 %r4, %r1, 16, %r3;
shr.u32 %r5, %r1, 4;
mad.lo.u32 %r5, %r5, 0x00800080, 0x3f803f80;
st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};
mov.u32 %r5, 0x3f803f80;
st.shared.v4.u32 [%r4+2048], {%r5, %r5, %r5, %r5};
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r6, %r3, 4;
and.b32 %r6, %r6, 0x3ffff;
cvt.u64.u32 %rd3, %r6;
or.b64 %rd4, %rd3, 0x1000080000;
add.u64 %rd5, %rd4, 128;
setp.ne.u32 %p1, %r1, %r1;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd4, %rd5, %p1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
and.b32 %r7, %r1, 31;
setp.eq.u32 %p3, %r7, 0;
shr.u32 %r7, %r1, 5;
mad.lo.u32 %r7, %r2, 4, %r7;
mul.wide.u32 %rd6, %r7, 8;
add.u64 %rd6, %rd2, %rd6;
@%p3 st.global.v2.f32 [%rd6], {%f1, %f3};
-- out 0x41800000 0x42000000 0x42800000 0x43000000 0x43800000 0x44000000 0x44800000 0x45000000 0x41800000 0x42000000 0x42800000 0x43000000 0x43800000 0x44000000 0x44800000 0x45000000
-- mutate numbers | and.b32 %r6, %r6, 0x3ffff;\n | 
-- mutate numbers | and.b32 %r6, | @%p2 and.b32 %r6,
-- mutate out-of-bounds | or.b64 %rd4, %rd3, 0x1000080000; | or.b64 %rd4, %rd3, 0x1004000000; | the descriptor of A

# What a CTA does with addresses of its own, rank and all.
-- launch 2 32 2048
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
mov.u64 %rd3, smem;
setp.eq.u32 %p1, %r1, 0;
mov.u32 %r20, 0;
mapa.shared::cluster.u32 %r4, %r3, %r2;
setp.eq.u32 %p2, %r4, %r3;
@%p2 or.b32 %r20, %r20, 1;
cvta.shared.u64 %rd4, %rd3;
mapa.u64 %rd5, %rd4, %r2;
setp.eq.u64 %p2, %rd5, %rd4;
@%p2 or.b32 %r20, %r20, 2;
cvta.to.shared.u64 %rd5, %rd4;
setp.eq.u64 %p2, %rd5, %rd3;
@%p2 or.b32 %r20, %r20, 4;
cvt.u64.u32 %rd5, %r3;
setp.eq.u64 %p2, %rd5, %rd3;
@%p2 or.b32 %r20, %r20, 8;
getctarank.shared::cluster.u32 %r4, %r3;
setp.eq.u32 %p2, %r4, %r2;
@%p2 or.b32 %r20, %r20, 16;
getctarank.u64 %r4, %rd4;
setp.eq.u32 %p2, %r4, %r2;
@%p2 or.b32 %r20, %r20, 32;
isspacep.shared::cta %p2, %rd4;
@%p2 or.b32 %r20, %r20, 64;
isspacep.shared::cluster %p2, %rd4;
@%p2 or.b32 %r20, %r20, 128;
mov.u32 %r4, smem+64;
sub.u32 %r4, %r4, %r3;
setp.eq.u32 %p2, %r4, 64;
@%p2 or.b32 %r20, %r20, 256;
mad.lo.u32 %r5, %r1, 16, %r3;
mul.lo.u32 %r6, %r1, 10;
mad.lo.u32 %r6, %r2, 1000, %r6;
add.u32 %r7, %r6, 1;
add.u32 %r8, %r6, 2;
add.u32 %r9, %r6, 3;
st.shared.v4.u32 [%r5], {%r6, %r7, %r8, %r9};
@%p1 st.shared::cta.u32 [smem+1024], 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3+1032], 1;
@%p1 mbarrier.init.b64 [%rd4+1040], 32;
@%p1 fence.mbarrier_init.release.cluster;
bar.warp.sync -1;
ld.shared.u32 %r10, [smem+20];
ld.u32 %r11, [%rd4+40];
ld.shared::cluster.u32 %r12, [%r3+60];
atom.shared.add.u32 %r13, [%r3+1024], 2;
red.shared::cta.add.u32 [smem+1024], 1;
red.add.u32 [%rd4+1024], 1;
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r14}, [%r5];
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5+640], {%r14};
mul.wide.u32 %rd6, %r1, 4;
add.u64 %rd6, %rd1, %rd6;
mad.lo.u32 %r15, %r1, 4, %r3;
cp.async.ca.shared.global [%r15+1152], [%rd6], 4;
cp.async.wait_all;
mul.wide.u32 %rd7, %r2, 64;
add.u64 %rd8, %rd1, %rd7;
add.u64 %rd9, %rd2, %rd7;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+1032], 64;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+512], [%rd8], 64, [%r3+1032];
mbarrier.arrive.b64 %rd10, [%rd4+1040];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+1032], 0;
@!%p3 bra wait;
all:
mbarrier.try_wait.parity.b64 %p3, [%rd4+1040], 0;
@!%p3 bra all;
bar.warp.sync -1;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd9+64], [%r3+512], 64;
@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group 0;
ld.shared.u32 %r16, [%r3+676];
ld.shared.u32 %r17, [%r3+1172];
ld.shared.u32 %r18, [%r3+1024];
mul.wide.u32 %rd11, %r2, 32;
add.u64 %rd11, %rd2, %rd11;
@%p1 st.global.v4.u32 [%rd11], {%r20, %r10, %r11, %r12};
@%p1 st.global.v4.u32 [%rd11+16], {%r16, %r17, %r18, 0};
-- out 511 11 22 33 21 5 128 0 511 1011 1022 1033 1021 5 128 0 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
-- mutate in-flight,unwritten-read,mbarrier,proxy | wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+1032], 0;\n@!%p3 bra wait;\n | 
-- mutate out-of-bounds | atom.shared.add.u32 %r13, [%r3+1024] | atom.shared.add.u32 %r13, [%r3+2048] | 4 bytes at shared offset 2048; the CTA has 2048 bytes

# An address without a rank is none: an H200 does not find the second CTA's memory by it.
-- launch 2 32 128
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
and.b32 %r4, %r3, 0xffffff;
mad.lo.u32 %r5, %r2, 100, %r1;
mad.lo.u32 %r6, %r1, 4, %r4;
mad.lo.u32 %r7, %r1, 4, %r3;
st.shared.u32 [%r7], %r5;
ld.shared.u32 %r8, [%r7];
barrier.cluster.arrive;
barrier.cluster.wait;
mad.lo.u32 %r9, %r2, 32, %r1;
mul.wide.u32 %rd3, %r9, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r8;
-- out 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 100 101 102
-- mutate out-of-bounds | st.shared.u32 [%r7] | st.shared.u32 [%r6] | at shared offset
-- mutate out-of-bounds | ld.shared.u32 %r8, [%r7] | ld.shared.u32 %r8, [%r6] | at shared offset
-- mutate out-of-bounds | st.shared.u32 [%r7] | st.shared::cluster.u32 [%r6] | an address of no CTA
-- mutate out-of-bounds | mad.lo.u32 %r7, %r1, 4, %r3; | xor.b32 %r10, %r2, 1;\nmapa.shared::cluster.u32 %r4, %r3, %r10;\nmad.lo.u32 %r7, %r1, 4, %r4; | at shared offset
