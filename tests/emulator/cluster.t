# Two CTAs exchange words through their shared memory.
-- launch 4 64 264
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
mad.lo.u32 %r5, %r1, 4, %r3;
mov.u32 %r6, %ctaid.x;
mad.lo.u32 %r7, %r6, 100, %r1;
setp.eq.u32 %p3, %r6, 1;
st.shared.u32 [%r5], %r7;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
xor.b32 %r8, %r2, 1;
mapa.shared::cluster.u32 %r9, %r5, %r8;
ld.shared::cluster.u32 %r10, [%r9];
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
st.shared.u32 [%r5], %r1;
setp.lt.u32 %p1, %r1, 2;
mad.lo.u32 %r11, %r6, 2, %r1;
mul.wide.u32 %rd3, %r11, 4;
add.u64 %rd3, %rd2, %rd3;
@%p1 st.global.u32 [%rd3], %r10;
-- out 100 101 0 1 300 301 200 201
-- mutate cluster | barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n |  | may not have begun
-- mutate cluster | barrier.cluster.wait.acquire.aligned;\n |  | may not have begun
-- mutate barrier-mismatch | barrier.cluster.arrive.release.aligned;\n |  | barrier.cluster.arrive must come before
-- mutate barrier-mismatch | barrier.cluster.wait.acquire.aligned; | barrier.cluster.arrive; | barrier.cluster.wait must come between
-- mutate shared-race | arrive.release | arrive.relaxed | which warp
-- mutate shared-race | barrier.cluster.arrive.aligned; | barrier.cluster.arrive.relaxed.aligned; | of CTA
-- mutate cluster,shared-race | barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n | 
-- mutate cluster | barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nst.shared.u32 [%r5], %r1; |  | of the cluster
-- mutate shared-race | ld.shared::cluster.u32 %r10, [%r9]; | ld.shared::cluster.u32 %r10, [%r9];\nst.shared.u32 [%r5], 7; | of CTA
-- mutate out-of-bounds | xor.b32 %r8, %r2, 1; | mov.u32 %r8, 2; | CTA 2 of the cluster, which has 2
-- mutate out-of-bounds | [%r9]; | [%r9+264]; | the CTA has 264 bytes
-- mutate out-of-bounds | [%r9]; | [%r9+0x2000000]; | an address of no CTA
-- mutate out-of-bounds | ld.shared::cluster.u32 %r10, [%r9]; | ld.shared.u32 %r10, [%r9]; | shared offset
-- mutate barrier-mismatch | barrier.cluster.arrive.release.aligned; | setp.ne.u32 %p2, %r1, 5;\n@%p2 barrier.cluster.arrive; | lanes 0xffffffdf of the warp's 0xffffffff
-- mutate cluster | barrier.cluster.arrive.release.aligned; | @%p3 exit;\nbarrier.cluster.arrive.release.aligned; | has ended
-- mutate cluster | barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nst.shared.u32 [%r5], %r1; | mov.u32 %r12, 0;\nspin:\nld.shared.u32 %r13, [%r5];\nadd.u32 %r12, %r12, 1;\nsetp.lt.u32 %p6, %r12, 200;\n@%p6 bra spin; | may end before
-- mutate shared-race | ld.shared::cluster.u32 %r10, [%r9]; | mov.u32 %r12, 0;\nspin:\nld.shared.u32 %r10, [%r5];\nadd.u32 %r12, %r12, 1;\nsetp.lt.u32 %p6, %r12, 200;\n@%p6 bra spin;\nbar.sync 0;\nst.shared::cluster.u32 [%r9], %r1; | of the cluster read with no barrier between
-- mutate barrier-mismatch | st.shared.u32 [%r5], %r7; | st.shared.u32 [%r5], %r7;\n@%p3 bar.sync 1, 96; | 
-- mutate deadlock | st.shared.u32 [%r5], %r7; | st.shared.u32 [%r5], %r7;\nsetp.eq.u32 %p4, %r7, 100;\n@!%p4 bra go;\nmbarrier.init.shared.b64 [%r3+256], 1;\nhang:\nmbarrier.try_wait.parity.shared.b64 %p5, [%r3+256], 0;\n@!%p5 bra hang;\ngo: | the cluster's barrier (3 of 4 warps)

# Stores, atomics, generic addresses. Warps that have ended count as arrived.
-- launch 3 64 128
-- cluster 3
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.ge.u32 %p2, %r1, 32;
@%p1 st.shared.u32 [%r3+64], 0;
@%p2 exit;
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
add.u32 %r4, %r2, 1;
rem.u32 %r4, %r4, 3;
mapa.shared::cluster.u32 %r5, %r3, %r4;
mapa.shared::cluster.u32 %r12, %r3, 0;
cvt.u64.u32 %rd3, %r3;
cvta.shared.u64 %rd3, %rd3;
mapa.u64 %rd4, %rd3, %r4;
getctarank.u64 %r6, %rd4;
getctarank.shared::cluster.u32 %r7, %r5;
isspacep.shared::cluster %p3, %rd4;
isspacep.shared::cta %p4, %rd4;
isspacep.shared::cluster %p5, %rd3;
selp.u32 %r8, 1, 0, %p3;
selp.u32 %r9, 2, 0, %p4;
selp.u32 %r10, 4, 0, %p5;
or.b32 %r8, %r8, %r9;
or.b32 %r8, %r8, %r10;
mad.lo.u32 %r11, %r2, 10, 5;
@%p1 st.shared::cluster.u32 [%r5], %r11;
@%p1 st.u32 [%rd4+4], %r8;
atom.shared::cluster.add.u32 %r13, [%r12+64], 1;
red.relaxed.cluster.shared::cluster.add.u32 [%r12+64], 1;
barrier.cluster.arrive;
barrier.cluster.wait;
ld.shared.v2.u32 {%r14, %r15}, [%r3];
ld.shared.u32 %r16, [%r3+64];
add.u32 %r6, %r6, %r7;
mul.wide.u32 %rd5, %r2, 16;
add.u64 %rd5, %rd2, %rd5;
@%p1 st.global.v4.u32 [%rd5], {%r14, %r15, %r16, %r6};
-- out 25 5 192 2 5 5 0 4 15 5 0 0
-- mutate shared-race,unwritten-read | barrier.cluster.arrive;\nbarrier.cluster.wait;\n | 
-- mutate shared-race | st.shared::cluster.u32 [%r5], %r11; | st.shared::cluster.u32 [%r12], %r11;
-- mutate shared-race | atom.shared::cluster.add.u32 %r13, [%r12+64], 1; | st.shared::cluster.u32 [%r12+64], 1;
-- mutate lane-conflict | @%p1 st.shared::cluster.u32 [%r5], %r11; | st.shared::cluster.u32 [%r5], %r1;
-- mutate misaligned | [%rd4+4] | [%rd4+6] | not a multiple of 4

# An arrival at another CTA's mbarrier tells it of a store there; the barrier's making is told of by a relaxed arrival.
-- launch 2 32 64
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r2, 0;
and.pred %p3, %p1, %p2;
mov.u32 %r10, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
mapa.shared::cluster.u32 %r4, %r3, 0;
mapa.shared::cluster.u32 %r5, %r3, 1;
loop:
and.b32 %r11, %r10, 1;
@!%p2 bra take;
@%p1 st.shared::cluster.u32 [%r5+16], %r10;
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
full:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r3], %r11;
@!%p4 bra full;
bra next;
take:
empty:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r3], %r11;
@!%p4 bra empty;
ld.shared.u32 %r12, [%r3+16];
add.u32 %r13, %r13, %r12;
bar.warp.sync -1;
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
next:
add.u32 %r10, %r10, 1;
setp.lt.u32 %p5, %r10, 5;
@%p5 bra loop;
@!%p2 st.global.u32 [%rd2], %r12;
barrier.cluster.arrive.relaxed;
barrier.cluster.wait;
-- out 4
-- mutate shared-race | @%p1 st.shared::cluster.u32 [%r5+16], %r10;\n@%p1 mbarrier.arrive.release.cluster | @%p1 st.shared::cluster.u32 [%r5+16], %r10;\n@%p1 mbarrier.arrive.release.cta | which warp 0 of CTA 0 of the cluster wrote
-- mutate shared-race | @%p1 st.shared::cluster.u32 [%r5+16], %r10;\n@%p1 mbarrier.arrive.release.cluster.shared | @%p1 st.shared::cluster.u32 [%r5+16], %r10;\n@%p1 mbarrier.arrive.shared
-- mutate shared-race | empty:\nmbarrier.try_wait.parity.acquire.cluster | empty:\nmbarrier.try_wait.parity.acquire.cta
-- mutate shared-race | full:\nmbarrier.try_wait.parity.acquire.cluster | full:\nmbarrier.try_wait.parity.acquire.cta | which warp 0 of CTA 1 of the cluster read
-- mutate shared-race | @%p1 fence.mbarrier_init.release.cluster;\n |  | initialises with no barrier between
-- mutate shared-race | @%p1 fence.mbarrier_init.release.cluster; | fence.proxy.async; | initialises with no barrier between
-- mutate mbarrier,cluster | barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n | 
-- mutate deadlock | bar.warp.sync -1;\n@%p1 mbarrier.arrive | bar.warp.sync -1;\n@%p3 mbarrier.arrive | CTA 1 of the cluster
-- mutate mbarrier | [%r5];\nfull | [%r5+8];\nfull | there is no mbarrier at shared offset 8
-- mutate out-of-bounds | [%r5];\nfull | [%r5+64];\nfull | an mbarrier at shared offset 64
-- mutate out-of-bounds | .shared::cta.b64 %p4, [%r3], %r11;\n@!%p4 bra empty | .shared::cta.b64 %p4, [%r4], %r11;\n@!%p4 bra empty | an mbarrier at shared offset

# The same at the scope of the CTA, behind the two fences that are one of the cluster's shared memory to the assembler.
-- launch 2 32 64
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r2, 0;
and.pred %p3, %p1, %p2;
mov.u32 %r10, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
mapa.shared::cluster.u32 %r4, %r3, 0;
mapa.shared::cluster.u32 %r5, %r3, 1;
loop:
and.b32 %r11, %r10, 1;
@!%p2 bra take;
@%p1 st.shared::cluster.u32 [%r5+16], %r10;
@%p1 fence.acq_rel.cta;
@%p1 fence.proxy.async.shared::cta;
@%p1 mbarrier.arrive.shared::cluster.b64 _, [%r5];
full:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3], %r11;
@!%p4 bra full;
bra next;
take:
empty:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3], %r11;
@!%p4 bra empty;
ld.shared.u32 %r12, [%r3+16];
add.u32 %r13, %r13, %r12;
bar.warp.sync -1;
fence.acq_rel.cta;
fence.proxy.async.shared::cta;
@%p1 mbarrier.arrive.shared::cluster.b64 _, [%r4];
next:
add.u32 %r10, %r10, 1;
setp.lt.u32 %p5, %r10, 5;
@%p5 bra loop;
@!%p2 st.global.u32 [%rd2], %r12;
barrier.cluster.arrive.relaxed;
barrier.cluster.wait;
-- out 4
-- mutate shared-race | @%p1 fence.acq_rel.cta;\n |  | which warp 0 of CTA 0 of the cluster wrote
-- mutate shared-race | @%p1 fence.proxy.async.shared::cta;\n |  | which warp 0 of CTA 0 of the cluster wrote
-- mutate shared-race | @%p1 fence.acq_rel.cta;\n@%p1 fence.proxy.async.shared::cta;\n | @%p1 fence.proxy.async.shared::cta;\n@%p1 fence.acq_rel.cta;\n
-- mutate shared-race | bar.warp.sync -1;\nfence.acq_rel.cta;\n | bar.warp.sync -1;\n | which warp 0 of CTA 1 of the cluster read
-- mutate shared-race | @%p1 mbarrier.arrive.shared::cluster.b64 _, [%r5]; | @%p1 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r5];
-- mutate shared-race | @%p1 st.shared::cluster.u32 [%r5+16], %r10;\n@%p1 fence.acq_rel.cta;\n@%p1 fence.proxy.async.shared::cta;\n | @%p1 fence.acq_rel.cta;\n@%p1 fence.proxy.async.shared::cta;\n@%p1 st.shared::cluster.u32 [%r5+16], %r10;\n

# Each of two CTAs loads one half of the words for both; a consumer's release comes back before the next round.
-- launch 4 32 1024
-- cluster 2
-- target sm_90a
-- map a in i32 dims=32,32 strides=128 box=8,4
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
mov.b64 %rd3, a;
cvta.param.u64 %rd3, %rd3;
@%p1 mbarrier.init.shared::cta.b64 [%r3+512], 1;
@%p1 mbarrier.init.shared::cta.b64 [%r3+520], 2;
@%p1 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
shl.b32 %r4, %r2, 7;
add.u32 %r5, %r3, %r4;
mapa.shared::cluster.u32 %r6, %r3, 0;
mapa.shared::cluster.u32 %r7, %r3, 1;
shl.b32 %r8, %r2, 3;
mov.u16 %h1, 3;
mov.u32 %r10, 0;
mov.u32 %r14, 0;
loop:
and.b32 %r11, %r10, 1;
xor.b32 %r12, %r11, 1;
@!%p1 bra full;
free:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3+520], %r12;
@!%p2 bra free;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 256;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%rd3, {%r8, %r10}], [%r3+512], %h1;
full:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+512], %r11;
@!%p2 bra full;
mad.lo.u32 %r13, %r1, 8, %r3;
ld.shared.v2.u32 {%r15, %r16}, [%r13];
add.u32 %r14, %r14, %r15;
add.u32 %r14, %r14, %r16;
bar.warp.sync -1;
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6+520];
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7+520];
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 6;
@%p3 bra loop;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mov.u32 %r17, %ctaid.x;
mad.lo.u32 %r18, %r17, 32, %r1;
mul.wide.u32 %rd5, %r18, 4;
add.u64 %rd5, %rd2, %rd5;
st.global.u32 [%rd5], %r14;
-- out 966 990 1014 1038 1350 1374 1398 1422 1734 1758 1782 1806 2118 2142 2166 2190 1062 1086 1110 1134 1446 1470 1494 1518 1830 1854 1878 1902 2214 2238 2262 2286 966
-- mutate out-of-bounds | mov.u16 %h1, 3; | mov.u16 %h1, 7; | copies to the CTAs 0x7 of the cluster, which has 2
-- mutate out-of-bounds | mov.u16 %h1, 3; | mov.u16 %h1, 0; | copies to the CTAs 0x0
-- mutate deadlock | mov.u16 %h1, 3; | mov.u16 %h1, 1; | bytes are due
-- mutate in-flight | free:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3+520], %r12;\n@!%p2 bra free;\n | 
-- mutate in-flight | free:\nmbarrier.try_wait.parity.acquire.cluster | free:\nmbarrier.try_wait.parity.acquire.cta
-- mutate shared-race | _, [%r7+520];\n | _, [%r7+520];\n@%p1 ld.shared.u32 %r19, [%r3+128];\n
-- mutate in-flight,unwritten-read,mbarrier,proxy,deadlock | full:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+512], %r11;\n@!%p2 bra full; | full:
-- mutate proxy,shared-race | @%p1 fence.mbarrier_init.release.cluster;\n |  | mbarrier at shared offset
-- mutate mbarrier,cluster | barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\nshl | shl
-- mutate mbarrier,deadlock,in-flight,unwritten-read | _, [%r3+512], 256; | _, [%r3+512], 128;
-- mutate cluster | barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\nmov.u32 %r17 | mov.u32 %r17 | of the cluster
-- mutate cluster | arrive.release.aligned | arrive.relaxed.aligned | may end before

# A ring of eight: each sends 64 bytes to the next one's shared memory, which tells it when they are there; then it may
# write there again.
-- launch 8 32 256
-- cluster 8
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.lt.u32 %p2, %r1, 16;
mad.lo.u32 %r4, %r1, 4, %r3;
mad.lo.u32 %r5, %r2, 100, %r1;
@%p1 mbarrier.init.shared::cta.b64 [%r3+128], 1;
@%p1 mbarrier.init.shared::cta.b64 [%r3+136], 1;
@%p1 fence.mbarrier_init.release.cluster;
@%p2 st.shared.u32 [%r4], %r5;
fence.proxy.async;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+128], 64;
barrier.cluster.arrive;
barrier.cluster.wait;
add.u32 %r6, %r2, 1;
and.b32 %r6, %r6, 7;
add.u32 %r7, %r2, 7;
and.b32 %r7, %r7, 7;
mapa.shared::cluster.u32 %r8, %r3, %r6;
mapa.shared::cluster.u32 %r9, %r3, %r7;
@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8+64], [%r3], 64, [%r8+128];
wait:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3+128], 0;
@!%p3 bra wait;
@%p2 ld.shared.u32 %r10, [%r4+64];
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9+136];
sent:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3+136], 0;
@!%p3 bra sent;
@%p2 st.shared.u32 [%r4], 0;
barrier.cluster.arrive;
barrier.cluster.wait;
mad.lo.u32 %r11, %r2, 16, %r1;
mul.wide.u32 %rd3, %r11, 4;
add.u64 %rd3, %rd2, %rd3;
@%p2 st.global.u32 [%rd3], %r10;
-- out 700 701 702 703 704 705 706 707 708 709 710 711 712 713 714 715 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 100 101
-- mutate in-flight | sent:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3+136], 0;\n@!%p3 bra sent;\n |  | writes shared b
-- mutate in-flight | sent:\nmbarrier.try_wait.parity.acquire.cluster | sent:\nmbarrier.try_wait.parity.acquire.cta | from which a bulk copy to shared memory was made
-- mutate proxy | fence.proxy.async;\n |  | reads through the async proxy shared bytes 0..
-- mutate in-flight,unwritten-read | wait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3+128], 0;\n@!%p3 bra wait; | 
-- mutate misaligned | [%r3], 64, [%r8+128] | [%r3], 60, [%r8+128] | both must be multiples of 16
-- mutate misaligned | [%r8+64], [%r3] | [%r8+72], [%r3] | a bulk copy at shared offset 72
-- mutate out-of-bounds | 64, [%r8+128] | 64, [%r3+128] | which reports to an mbarrier of CTA
-- mutate out-of-bounds | [%r8+64], [%r3] | [%r8+208], [%r3] | the CTA has 256 bytes
-- mutate unwritten-read | [%r8+64], [%r3], | [%r8+64], [%r3+64], | nothing has written
-- mutate cluster,mbarrier,shared-race | barrier.cluster.arrive;\nbarrier.cluster.wait;\n | 
-- mutate deadlock | @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9+136];\n |  | CTAs 0 to 7 of the cluster, each:

# What is still to be read from a CTA keeps it from ending.
-- launch 2 32 256
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r2, 0;
and.pred %p3, %p1, %p2;
@%p1 mbarrier.init.shared::cta.b64 [%r3+128], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+128], 16;
@%p1 st.shared.v4.u32 [%r3], {1, 2, 3, 4};
fence.proxy.async;
barrier.cluster.arrive;
barrier.cluster.wait;
mapa.shared::cluster.u32 %r8, %r3, 1;
@%p3 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8+64], [%r3], 16, [%r8+128];
@%p2 bra over;
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3+128], 0;
@!%p4 bra wait;
@%p1 ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3+64];
@%p1 st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13};
over:
barrier.cluster.arrive;
barrier.cluster.wait;
-- out 1 2 3 4
-- mutate in-flight,cluster | over:\nbarrier.cluster.arrive;\nbarrier.cluster.wait; | over:
-- mutate in-flight,cluster | over:\nbarrier.cluster.arrive; | over:\nbarrier.cluster.arrive.relaxed;
-- mutate in-flight,cluster | @%p2 bra over; | @%p2 exit;

# Global memory: the cluster's barrier orders its CTAs, and no others. All get 32 bytes at once without a tensor map.
-- launch 4 32 256
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
mov.u32 %r4, %clusterid.x;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r2, 0;
and.pred %p3, %p1, %p2;
@%p1 mbarrier.init.shared::cta.b64 [%r3+128], 1;
@%p1 fence.mbarrier_init.release.cluster;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+128], 32;
mul.wide.u32 %rd3, %r4, 32;
add.u64 %rd3, %rd2, %rd3;
mov.u32 %r5, %ctaid.x;
add.u32 %r5, %r5, 1;
mad.lo.u32 %r6, %r2, 16, 0;
cvt.u64.u32 %rd4, %r6;
add.u64 %rd4, %rd3, %rd4;
@%p1 st.global.v4.u32 [%rd4], {%r5, %r5, %r5, %r5};
fence.proxy.async;
barrier.cluster.arrive;
barrier.cluster.wait;
mov.u16 %h1, 3;
@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd3], 32, [%r3+128], %h1;
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3+128], 0;
@!%p4 bra wait;
ld.shared.u32 %r7, [%r3+8];
ld.shared.u32 %r8, [%r3+24];
mad.lo.u32 %r7, %r7, 10, %r8;
barrier.cluster.arrive;
barrier.cluster.wait;
@%p1 st.global.u32 [%rd4], %r7;
@%p1 st.global.u32 [%rd4+4], %r5;
-- out 12 1 1 1 12 2 2 2 34 3 3 3 34 4 4 4
-- mutate global-race | fence.proxy.async;\nbarrier.cluster.arrive; | fence.proxy.async;\nbarrier.cluster.arrive.relaxed; | has stored to
-- mutate global-race | @%p1 st.global.u32 [%rd4], %r7; | xor.b32 %r6, %r6, 16;\nmul.wide.u32 %rd5, %r6, 1;\nadd.u64 %rd5, %rd3, %rd5;\n@%p1 st.global.u32 [%rd5+4], %r7; | different value
-- mutate global-race | mul.wide.u32 %rd3, %r4, 32; | mul.wide.u32 %rd3, %r4, 16;

# The thread that makes an mbarrier is the one whose fence counts.
-- launch 2 64 64
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r1, 32;
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
xor.b32 %r4, %r2, 1;
mapa.shared::cluster.u32 %r5, %r3, %r4;
@%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
wait:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r3], 0;
@!%p4 bra wait;
mul.wide.u32 %rd3, %r2, 4;
add.u64 %rd3, %rd2, %rd3;
@%p1 st.global.u32 [%rd3], 7;
-- out 7 7
-- mutate shared-race | @%p1 fence.mbarrier_init.release.cluster; | bar.sync 1;\n@%p2 fence.mbarrier_init.release.cluster; | initialises with no barrier between

# Words that report to an mbarrier beside them in the other CTA; sent again when its last ones have been read.
-- launch 2 32 1088
-- cluster 2
-- target sm_90a
-- kernel
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3+1024], 1;
@%p1 mbarrier.init.shared::cta.b64 [%r3+1032], 1;
@%p1 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
xor.b32 %r4, %r2, 1;
mapa.shared::cluster.u32 %r5, %r3, %r4;
mad.lo.u32 %r6, %r1, 16, %r5;
mad.lo.u32 %r7, %r1, 16, %r3;
mov.u32 %r8, 0;
mov.u32 %r9, 0;
loop:
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+1024], 512;
mad.lo.u32 %r10, %r2, 1000, %r8;
add.u32 %r11, %r10, %r1;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r6], {%r10, %r11, %r1, %r8}, [%r5+1024];
full:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3+1024], %r8;
@!%p2 bra full;
ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%r7];
add.u32 %r9, %r9, %r12;
add.u32 %r9, %r9, %r13;
add.u32 %r9, %r9, %r14;
add.u32 %r9, %r9, %r15;
bar.warp.sync -1;
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5+1032];
read:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3+1032], %r8;
@!%p2 bra read;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p3, %r8, 2;
@%p3 bra loop;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mad.lo.u32 %r18, %r2, 32, %r1;
mul.wide.u32 %rd5, %r18, 4;
add.u64 %rd5, %rd2, %rd5;
st.global.u32 [%rd5], %r9;
-- out 4003 4007 4011 4015 4019 4023 4027 4031 4035 4039 4043 4047 4051 4055 4059 4063 4067 4071 4075 4079 4083 4087 4091 4095 4099 4103 4107 4111 4115 4119 4123 4127 3 7 11
-- mutate in-flight,unwritten-read | full:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3+1024], %r8;\n@!%p2 bra full; | 
-- mutate shared-race,in-flight | read:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3+1032], %r8;\n@!%p2 bra read; | 
-- mutate in-flight | @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5+1032]; | @%p1 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r5+1032]; | no wait for its mbarrier
-- mutate deadlock | _, [%r3+1024], 512; | _, [%r3+1024], 528; | 16 bytes are due
-- mutate mbarrier,in-flight | _, [%r3+1024], 512; | _, [%r3+1024], 496;
-- mutate misaligned | mad.lo.u32 %r6, %r1, 16, %r5; | mad.lo.u32 %r6, %r1, 16, %r5;\nadd.u32 %r6, %r6, 8; | not a multiple of 16
-- mutate out-of-bounds | [%r5+1024]; | [%r3+1024]; | which reports to an mbarrier of CTA
