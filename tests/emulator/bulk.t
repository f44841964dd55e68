# A bulk load with its mbarrier, then a bulk store of what threads have made of it.
-- launch 1 64 1024
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
shl.b32 %r2, %r1, 2;
add.u32 %r4, %r3, %r2;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3+512], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
@!%p1 bra loaded;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1+64], 128, [%r3+512];
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3+128], [%rd1+1024], 128, [%r3+512];
loaded:
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+512], 0;
@!%p2 bra wait;
ld.shared.u32 %r6, [%r4];
add.u32 %r6, %r6, 1;
st.shared.u32 [%r4+256], %r6;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra done;
cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3+256], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
st.shared.u32 [%r3+256], 0;
cp.async.bulk.wait_group 0;
ld.global.u32 %r7, [%rd2+128];
st.global.u32 [%rd2+256], %r7;
done:
-- out 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 257 258 259 260 261 262 263 264 265 266 267 268 269 270 271 272 273 274 275 276 277 278 279 280 281 282 283 284 285 286 287 288 257
-- mutate in-flight,unwritten-read | @!%p2 bra wait; | 
-- mutate in-flight | wait:\nmbarrier.try_wait.parity | wait:\nmbarrier.try_wait.parity.relaxed.cta | no wait for its mbarrier, at shared offset 512, has come before
-- mutate in-flight | wait: | @%p1 ld.shared.u32 %r6, [%r4];\nwait: | lane 0
-- mutate deadlock | _, [%r3+512], 256; | _, [%r3+512], 272; | 0 of 1 arrivals and 16 bytes are due
-- mutate mbarrier | _, [%r3+512], 256; | _, [%r3+512], 240; | 16 bytes more arrive at the mbarrier at shared offset 512
-- mutate proxy | @%p1 fence.mbarrier_init.release.cluster;\n |  | whose mbarrier.init no fence.mbarrier_init
-- mutate proxy | fence.proxy.async.shared::cta;\n |  | reads through the async proxy shared bytes 256..
-- mutate proxy | fence.proxy.async.shared::cta;\nbar.sync 0; | bar.sync 0;\nfence.proxy.async; | no fence.proxy.async by that thread comes between
-- mutate proxy | fence.proxy.async.shared::cta; | @%p1 fence.proxy.async; | warp 0 lane 1 has written
-- mutate proxy | fence.proxy.async.shared::cta; | fence.proxy.async.global;
-- mutate proxy | fence.proxy.async.shared::cta; | fence.mbarrier_init.release.cluster;
-- mutate proxy | st.shared.u32 [%r4+256], %r6;\nfence.proxy.async.shared::cta; | fence.proxy.async.shared::cta;\nst.shared.u32 [%r4+256], %r6;
-- mutate shared-race,unwritten-read | fence.proxy.async.shared::cta;\nbar.sync 0; | fence.proxy.async;
-- mutate in-flight | cp.async.bulk.wait_group.read 0;\n |  | committed, and no cp.async.bulk.wait_group
-- mutate in-flight | cp.async.bulk.commit_group;\n |  | never committed
-- mutate in-flight | cp.async.bulk.wait_group.read 0;\nst.shared.u32 [%r3+256], 0; | st.shared.u32 [%r3+480], 0; | writes shared byte 480
-- mutate shared-race,in-flight | @!%p1 bra done; | setp.eq.u32 %p3, %r1, 32;\n@%p3 st.shared.u32 [%r3+260], 0;\n@!%p1 bra done;
-- mutate in-flight | cp.async.bulk.wait_group.read 0; | cp.async.bulk.wait_group.read 1;
-- mutate misaligned | [%rd1+64], 128 | [%rd1+68], 128 | both must be multiples of 16
-- mutate misaligned | [%rd1+64], 128 | [%rd1+64], 120
-- mutate misaligned | [%r3+256], 256; | [%r3+264], 256; | a bulk copy at shared offset 264
-- mutate out-of-bounds | [%rd1+1024], 128 | [%rd1+4080], 128 | bytes at
-- mutate out-of-bounds | [%r3+256], 256; | [%r3+800], 256; | the CTA has 1024 bytes
-- mutate mbarrier | [%rd1+64], 128, [%r3+512] | [%rd1+64], 128, [%r3+520] | there is no mbarrier at shared offset 520
-- mutate mbarrier | [%r3+256], 256; | [%r3+384], 256; | reads the mbarrier
-- mutate in-flight | [%r3], [%rd1+64], 128 | [%r3+192], [%rd1+64], 128 | starts a bulk copy to shared byte 192

# What is in flight may not be written, by anyone; nor may the CTA end. What was never written in global memory is not
# written in shared memory either.
-- launch 2 64 1024
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p3, %r1, 32;
@%p1 mbarrier.init.shared::cta.b64 [%r3+512], 2;
@%p1 fence.proxy.async;
bar.sync 0;
@!%p1 bra wait;
createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r3], [%rd1], 256, [%r3+512], %rd5;
mov.u16 %h1, 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r3+256], [%rd1+4080], 16, [%r3+512], %h1, %rd5;
cp.async.bulk.prefetch.L2.global [%rd1], 256;
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+512], 0;
@!%p2 bra wait;
@%p3 st.shared.u32 [%r3], 5;
bar.sync 0;
mov.u32 %r5, %ctaid.x;
ld.shared.v2.u32 {%r6, %r7}, [%r3];
ld.shared.u32 %r8, [%r3+260];
mul.wide.u32 %rd6, %r5, 16;
add.u64 %rd6, %rd2, %rd6;
@%p1 st.global.v4.u32 [%rd6], {%r5, %r6, %r7, %r8};
-- out 0 5 1 1021 1 5 1 1021
-- mutate in-flight,proxy | wait: | wait:\n@%p3 st.shared.u32 [%r3+8], 5;
-- mutate in-flight | cp.async.bulk.prefetch.L2.global [%rd1], 256;\nwait: | @%p1 st.shared.u32 [%r3+8], 5;\nwait: | writes
-- mutate in-flight | wait: | cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r3+512];\nwait:
-- mutate mbarrier | [%r3], [%rd1], 256 | [%r3+384], [%rd1], 256 | writes the mbarrier
-- mutate unwritten-read | [%r3], [%rd1], 256 | [%r3], [%rd2+64], 256 | was copied from global bytes never written
-- mutate out-of-bounds | mov.u16 %h1, 1; | mov.u16 %h1, 3; | to the CTAs 0x3 of the cluster
-- mutate mbarrier | wait: | @%p1 mbarrier.inval.shared.b64 [%r3+512];\nwait: | a copy will report to it
-- mutate proxy | @%p3 st.shared.u32 [%r3], 5;\n | @%p3 st.shared.u32 [%r3], 5;\nbar.sync 0;\n@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r3+512];\n | writes through the async proxy

# A load that nobody waits for; a store that is not waited for.
-- launch 1 32 1024
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
st.shared.u32 [%r3+128], 9;
st.shared.u32 [%r3+132], 9;
st.shared.u32 [%r3+136], 9;
st.shared.u32 [%r3+140], 9;
fence.proxy.async;
@%p1 mbarrier.init.shared::cta.b64 [%r3+512], 1;
@%p1 fence.mbarrier_init.release.cluster;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 128, [%r3+512];
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 128;
poll:
mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3+512], 0;
@!%p2 bra poll;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3+128], 16;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2+16], [%r3+16], 16;
@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group.read 0;
-- out 9 9 9 9 4 5 6 7
-- mutate in-flight | @%p1 cp.async.bulk.wait_group.read 0;\n |  | may still read there
-- mutate in-flight | mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3+512], 0;\n@!%p2 bra poll;\n |
-- mutate in-flight | mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3+512], 0;\n@!%p2 bra poll;\n@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3+128], 16;\n@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2+16], [%r3+16], 16; | | may still be in flight

# Each CTA copies words in and out of its own place; those of another are in a race.
-- launch 4 32 1024
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd3, %r2, 64;
mov.u64 %rd4, %rd3;
add.u64 %rd4, %rd1, %rd4;
add.u64 %rd5, %rd1, %rd3;
add.u64 %rd6, %rd2, %rd3;
@%p1 mbarrier.init.shared::cta.b64 [%r3+512], 1;
@%p1 fence.mbarrier_init.release.cluster;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 64;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd4], 64, [%r3+512];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+512], 0;
@!%p2 bra wait;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd5], [%r3], 64;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd6], [%r3], 64;
@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group.read 0;
-- out 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
-- mutate global-race | mov.u64 %rd4, %rd3; | xor.b64 %rd4, %rd3, 64;
-- mutate global-race | mul.wide.u32 %rd3, %r2, 64; | mul.wide.u32 %rd3, %r2, 32;

# Another warp may write the source once the thread has waited, and it knows.
-- launch 1 64 1024
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r1, 32;
@%p1 st.shared.v4.u32 [%r3], {1, 2, 3, 4};
fence.proxy.async;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 16;
@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group.read 0;
bar.sync 0;
@%p2 st.shared.v4.u32 [%r3], {5, 6, 7, 8};
-- out 1 2 3 4
-- mutate shared-race,in-flight,unwritten-read,proxy | bar.sync 0;\n | 

# A second copy to where two warps have read, each its half of the first.
-- launch 1 64 1024
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
mad.lo.u32 %r4, %r1, 4, %r3;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3+512], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 256;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r3+512];
one:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+512], 0;
@!%p2 bra one;
ld.shared.u32 %r5, [%r4];
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 256;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1+256], 256, [%r3+512];
two:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+512], 1;
@!%p2 bra two;
ld.shared.u32 %r6, [%r4];
mad.lo.u32 %r5, %r5, 1000, %r6;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r5;
-- out 64 1065 2066 3067
-- mutate shared-race,in-flight | ld.shared.u32 %r5, [%r4];\nbar.sync 0; | ld.shared.u32 %r5, [%r4];

# What was stored is no word for what lies beside it.
-- launch 1 32 1024
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3+512], 1;
@%p1 fence.mbarrier_init.release.cluster;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+512], 64;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1+64], 64, [%r3+512];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+512], 0;
@!%p2 bra wait;
@%p1 st.shared.u32 [%r3], 5;
ld.shared.u32 %r5, [%r3+4];
st.global.u32 [%rd2], %r5;
-- out 17
-- mutate unwritten-read | [%rd1+64] | [%rd2+64] | was copied from global bytes never written
